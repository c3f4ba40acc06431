import { join } from "node:path";
import { wrkVersion } from "./load/wrk-load.js";
import { measureRow, type RowResult } from "./measure-row.js";
import type { BenchOptions } from "./options.js";
import { FULL_SIZE, ROWS, SMALL_SIZE, type Workload } from "./rows.js";
import { nginxSubject, nginxVersion } from "./subjects/nginx.js";
import { createPeer } from "./subjects/peer.js";
import type { Subject } from "./subjects/subject.js";
import { sameHeadersUwsSubject, uwsSubject } from "./subjects/uws.js";
import { immutableZpublishSubject, nodeHttpZpublishSubject, zpublishSubject } from "./subjects/zpublish.js";

/** Who takes part in a run, and who does not and why. */
export interface Contest {
  readonly subjects: readonly Subject[];
  /** Names of the subjects that the others are compared with. */
  readonly against: readonly string[];
  readonly hasWrk: boolean;
  readonly notes: readonly string[];
}

/** What is installed here, and what the options ask for. */
export function createContest({ peers, hasSameHeaders }: BenchOptions): Contest {
  const notes: string[] = [];
  const compared: Subject[] = [uwsSubject];
  if (nginxVersion() === undefined) notes.push("nginx is not installed");
  else compared.push(nginxSubject);
  const hasWrk = wrkVersion() !== undefined;
  if (!hasWrk)
    notes.push("wrk is not installed: the load comes from a Node process, which may itself be the limit");
  const more = hasSameHeaders ? [sameHeadersUwsSubject] : [];
  return {
    subjects: [...more, ...compared, zpublishSubject, nodeHttpZpublishSubject, ...peers.map(createPeer)],
    against: compared.map(({ name }) => name),
    hasWrk,
    notes,
  };
}

/** Makes the data of a row where they are missing, checks every answer, and measures. @throws Error as `measureRow`. */
export async function runRow(
  name: string,
  { subjects, hasWrk }: Contest,
  { isSmall, rounds, seconds }: BenchOptions,
  scratch: string,
  onProgress: (done: number, detail: string) => void,
): Promise<RowResult> {
  const workload = await ROWS[name]!.open(isSmall ? SMALL_SIZE : FULL_SIZE, (done) =>
    onProgress(0, `making data, ${Math.floor(done * 100)} %`),
  );
  onProgress(0, "checking every answer");
  return measureRow(name, workload, subjectsOf(workload, subjects), {
    rounds,
    seconds,
    hasWrk,
    scratch: join(scratch, name),
    onRound: onProgress,
  });
}

/** What the look at a file costs shows where answers are known already. */
function subjectsOf({ isCold, answers }: Workload, subjects: readonly Subject[]): readonly Subject[] {
  const isLookedAt = !isCold && (answers === "stored" || answers === "not-modified");
  return isLookedAt ? [...subjects, immutableZpublishSubject] : subjects;
}
