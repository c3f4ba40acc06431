import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { DATA_DIRECTORY, packageRoot } from "./data/bench-data.js";
import { wrkVersion } from "./load/wrk-load.js";
import { describeMachine } from "./machine.js";
import { measureRow, type Round } from "./measure-row.js";
import type { BenchOptions } from "./options.js";
import { createProgress } from "./progress.js";
import { barChart } from "./report/bar-chart.js";
import { markdownReport } from "./report/markdown-table.js";
import { summarize } from "./report/summarize.js";
import { FULL_SIZE, ROWS, SMALL_SIZE, type Workload } from "./rows.js";
import { nginxSubject, nginxVersion } from "./subjects/nginx.js";
import { createPeer } from "./subjects/peer.js";
import type { Subject } from "./subjects/subject.js";
import { uwsSubject } from "./subjects/uws.js";
import { immutableZpublishSubject, zpublishSubject } from "./subjects/zpublish.js";

/** Caches, configurations and scripts of this run; whoever ends the run removes it. */
export const SCRATCH = join(DATA_DIRECTORY, `run-${process.pid}`);

/**
 * Measures rows by name and writes `results.md`, `rounds.ndjson` and `requests.svg` into a folder of `bench/results`.
 * @throws Error where a subject does not start or answers wrongly; what was measured until then is in the NDJSON.
 */
export async function runRows(names: readonly string[], options: BenchOptions): Promise<void> {
  const size = options.isSmall ? SMALL_SIZE : FULL_SIZE;
  const notes: string[] = [];
  const subjects: Subject[] = [uwsSubject];
  if (nginxVersion() === undefined) notes.push("nginx is not installed");
  else subjects.push(nginxSubject);
  subjects.push(zpublishSubject, ...options.peers.map(createPeer));
  const hasWrk = wrkVersion() !== undefined;
  if (!hasWrk)
    notes.push("wrk is not installed: the load comes from a Node process, which may itself be the limit");

  const date = new Date().toISOString();
  const results = join(packageRoot(), "bench", "results", date.slice(0, 19).replace(/:/g, "-"));
  mkdirSync(results, { recursive: true });
  const rounds: Round[] = [];
  const progress = createProgress();
  const machine = describeMachine();
  const raw = join(results, "rounds.ndjson");
  const command = [
    "npm run bench",
    ...(process.argv.length > 2 ? ["--", ...process.argv.slice(2)] : []),
  ].join(" ");
  appendFileSync(raw, `${JSON.stringify({ date, command, options, machine })}\n`);

  for (const [i, name] of names.entries()) {
    const update = (done: number, detail: string) => progress.update((i + done) / names.length, detail);
    progress.label(name);
    const workload = await ROWS[name]!.open(size, (done) =>
      update(0, `making data, ${Math.floor(done * 100)} %`),
    );
    update(0, "checking every answer");
    const result = await measureRow(name, workload, subjectsOf(workload, subjects), {
      rounds: options.rounds,
      seconds: options.seconds,
      hasWrk,
      scratch: join(SCRATCH, name),
      onRound: update,
    });
    rounds.push(...result.rounds);
    notes.push(...result.notes);
    appendFileSync(raw, result.rounds.map((round) => `${JSON.stringify(round)}\n`).join(""));
  }
  progress.end();

  const against = subjects
    .filter((subject) => subject === uwsSubject || subject === nginxSubject)
    .map(({ name }) => name);
  const summaries = summarize(rounds, against);
  const titles = Object.fromEntries(names.map((name) => [name, ROWS[name]!.title]));
  const { rounds: count, seconds } = options;
  const report = markdownReport(summaries, against, {
    command,
    date,
    machine,
    rounds: count,
    seconds,
    titles,
    notes,
  });
  writeFileSync(join(results, "results.md"), report);
  writeFileSync(join(results, "requests.svg"), barChart(summaries));
  console.log(`${report}\nWritten to ${relative(process.cwd(), results)}`);
}

/** What the look at a file costs shows where answers are known already. */
function subjectsOf({ isCold, answers }: Workload, subjects: readonly Subject[]): readonly Subject[] {
  const isLookedAt = !isCold && (answers === "stored" || answers === "not-modified");
  return isLookedAt ? [...subjects, immutableZpublishSubject] : subjects;
}
