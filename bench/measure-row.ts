import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { askAtOnce } from "./load/ask-at-once.js";
import type { LoadRequest, LoadResult } from "./load/load.js";
import { runNodeLoad } from "./load/node-load.js";
import { runWrk } from "./load/wrk-load.js";
import { checkSubject, expectedBody, prepareSite } from "./prepare-site.js";
import { readProcessCost } from "./process-cost.js";
import type { Workload } from "./rows.js";
import type { RunningSubject, Site, Subject } from "./subjects/subject.js";

/** One subject in one round of one row: a line of the raw results. */
export interface Round extends LoadResult {
  readonly row: string;
  readonly subject: string;
  /** From 0. */
  readonly round: number;
  readonly requestsPerSecond: number;
  /** Of bodies, without headers; undefined where the bodies are a peer's own. */
  readonly mibPerSecond?: number | undefined;
  /** Of the server and its workers; undefined where it is not ours, too little to tell, or the system does not say. */
  readonly cpuSecondsPerGb?: number | undefined;
  readonly cpuMicrosPerRequest?: number | undefined;
  readonly peakBytes?: number | undefined;
  /** Of status line and headers of one answer. */
  readonly headByteLength: number;
}

export interface MeasureOptions {
  readonly rounds: number;
  readonly seconds: number;
  readonly hasWrk: boolean;
  /** A folder for files of this row. */
  readonly scratch: string;
  onRound(done: number, subject: string): void;
}

export interface RowResult {
  readonly rounds: readonly Round[];
  /** Subjects that were left out, and why. */
  readonly notes: readonly string[];
}

/** The system counts in steps of 10 ms: less than this is too coarse to be shown. */
const MIN_CPU_SECONDS = 0.1;

/** Load that is not counted, before the first round of a warm row. */
const WARM_UP_SECONDS = 1;

/** A subject that has been checked. */
interface Contestant {
  readonly subject: Subject;
  readonly headers: Readonly<Record<string, string>>;
  readonly headByteLength: number;
  /** Undefined in cold rows, where every round starts a fresh one. */
  readonly running: RunningSubject | undefined;
}

/**
 * Checks every subject and measures them in turn, the order turned round every other round.
 * @throws Error where zpublish or a subject that we start answers wrongly; a peer is left out with a note.
 */
export async function measureRow(
  row: string,
  workload: Workload,
  subjects: readonly Subject[],
  options: MeasureOptions,
): Promise<RowResult> {
  const notes: string[] = [];
  const contestants: Contestant[] = [];
  const rounds: Round[] = [];
  const site = await prepareSite(workload, freshFolder(options, "reference"));
  const bytes = workload.answers === "not-modified" ? 0 : meanBytes(site);
  try {
    for (const subject of subjects) {
      if (workload.isCold && !subject.isRestartable) {
        notes.push(`${row}: without ${subject.name}, which cannot be started again for every round`);
        continue;
      }
      const running = await startSubject(subject, site, options);
      try {
        const headers = await checkSubject(subject, running, site, workload);
        const [answer] = await askAtOnce(running.baseUrl, workload.paths[0]!, 1, headers);
        const { headByteLength } = answer!;
        if (workload.isCold) await running.stop();
        contestants.push({
          subject,
          headers,
          headByteLength,
          running: workload.isCold ? undefined : running,
        });
      } catch (error) {
        await running.stop();
        if (subject.isRestartable) throw new Error(`${row}: ${subject.name}: ${(error as Error).message}`);
        notes.push(`${row}: without ${subject.name}: ${(error as Error).message}`);
      }
    }
    if (!workload.isCold) {
      // Code that the engine has not compiled yet is not what a warm row is about.
      const short = { ...options, seconds: Math.min(options.seconds, WARM_UP_SECONDS) };
      for (const contestant of contestants) await measureOnce(contestant, site, workload, bytes, short);
    }
    for (let round = 0; round < options.rounds; round++) {
      const order = round % 2 === 0 ? contestants : [...contestants].reverse();
      for (const [i, contestant] of order.entries()) {
        options.onRound((round + i / order.length) / options.rounds, contestant.subject.name);
        const measured = await measureOnce(contestant, site, workload, bytes, options);
        if (measured.failures > 0) {
          const failed = `${measured.failures} failures beside ${measured.requests} answers${measured.firstFailure === undefined ? "" : `: ${measured.firstFailure}`}`;
          if (contestant.subject.isRestartable)
            throw new Error(`${row}: ${contestant.subject.name}: ${failed}`);
          notes.push(`${row}: without round ${round + 1} of ${contestant.subject.name}: ${failed}`);
          continue;
        }
        rounds.push({ row, subject: contestant.subject.name, round, ...measured });
      }
    }
    return { rounds, notes };
  } finally {
    for (const { running } of contestants) await running?.stop();
    rmSync(options.scratch, { recursive: true, force: true });
  }
}

async function measureOnce(
  { subject, headers, headByteLength, running }: Contestant,
  site: Site,
  { paths, isCold, connections, answers }: Workload,
  bytes: number,
  options: MeasureOptions,
): Promise<Omit<Round, "row" | "subject" | "round">> {
  const server = running ?? (await startSubject(subject, site, options));
  try {
    const load: LoadRequest = {
      baseUrl: server.baseUrl,
      paths,
      headers,
      connections,
      length: isCold ? "once" : { seconds: options.seconds },
      status: answers === "not-modified" ? 304 : 200,
      scratch: options.scratch,
    };
    const before = server.pid === undefined ? undefined : readProcessCost(server.pid);
    const result = await (options.hasWrk && !isCold ? runWrk(load) : runNodeLoad(load));
    const after = server.pid === undefined ? undefined : readProcessCost(server.pid);
    const used = before && after && after.cpuSeconds - before.cpuSeconds;
    const cpuSeconds = used === undefined || used < MIN_CPU_SECONDS ? undefined : used;
    const gigabytes = (result.requests * bytes) / 1e9;
    return {
      ...result,
      requestsPerSecond: result.requests / result.seconds,
      mibPerSecond: subject.isRestartable ? (result.requests * bytes) / 2 ** 20 / result.seconds : undefined,
      cpuSecondsPerGb: cpuSeconds !== undefined && gigabytes > 0 ? cpuSeconds / gigabytes : undefined,
      cpuMicrosPerRequest: cpuSeconds === undefined ? undefined : (cpuSeconds * 1e6) / result.requests,
      peakBytes: after?.peakBytes,
      headByteLength,
    };
  } finally {
    if (running === undefined) await server.stop();
  }
}

function meanBytes(site: Site): number {
  let sum = 0;
  for (const path of site.paths) sum += expectedBody(site, path).length;
  return sum / site.paths.length;
}

function startSubject(subject: Subject, site: Site, options: MeasureOptions): Promise<RunningSubject> {
  return subject.start({ ...site, scratch: freshFolder(options, subject.name.replace(/\W+/g, "-")) });
}

function freshFolder({ scratch }: MeasureOptions, name: string): string {
  const folder = join(scratch, name);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  return folder;
}
