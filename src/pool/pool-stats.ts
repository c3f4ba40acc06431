import { createHistogram, type Histogram } from "../observe/histogram.js";
import type { ChunkOutcome } from "./chunk-task.js";
import type { DeathKind } from "./worker-death.js";

/** What a pool has done and is doing. */
export interface EncodePoolStats {
  /** Tasks that wait. */
  readonly queued: number;
  /** Of those, tasks of suspects: they wait for the worker that suspects have, and keep no other task from a worker. */
  readonly queuedSuspects: number;
  readonly running: number;
  /** Workers that have a thread. */
  readonly threads: number;
  /** Tasks that came to an end in a worker, well or with an error that it said. */
  readonly completed: number;
  /** Tasks that came out as failed, whoever said so. */
  readonly failed: number;
  /** Tasks tried a second time. */
  readonly retried: number;
  /** Why workers had to be replaced. */
  readonly workerDeaths: Readonly<Record<Exclude<DeathKind, "wornOut">, number>>;
  /** Chunks that were put into quarantine. */
  readonly quarantined: number;
  /** Arrays that are made apart now, because workers died over their chunks. */
  readonly suspects: number;
  /** Threads that were ended and are still there: they wait for the system. */
  readonly lingering: number;
  /** When a task last came to an end in a worker, of `performance.now()`; 0: none did. */
  readonly completedAt: number;
  /** Whether no worker lives and none can be started. */
  readonly isBroken: boolean;
  /** Seconds in the queue. */
  readonly wait: Histogram;
  /** Seconds per stage, of chunks that were made. */
  readonly stages: { readonly read: Histogram; readonly decode: Histogram; readonly encode: Histogram };
}

/** The part of the stats that is what it is now. */
type StatsNow = Pick<
  EncodePoolStats,
  "queued" | "queuedSuspects" | "running" | "threads" | "suspects" | "lingering" | "isBroken"
>;

/** The stats as the pool has them: the part that only grows is to be counted up. */
export interface PoolCounts extends StatsNow {
  completed: number;
  failed: number;
  retried: number;
  quarantined: number;
  completedAt: number;
  readonly workerDeaths: Record<Exclude<DeathKind, "wornOut">, number>;
  readonly wait: Histogram;
  readonly stages: EncodePoolStats["stages"];
}

/** Of a pool that nobody has needed yet. */
export const IDLE_POOL_STATS: EncodePoolStats = createPoolCounts({
  queued: 0,
  queuedSuspects: 0,
  running: 0,
  threads: 0,
  suspects: 0,
  lingering: 0,
  isBroken: false,
});

/** @param now Whose properties are read whenever somebody asks for them. */
export function createPoolCounts(now: StatsNow): PoolCounts {
  return Object.assign(Object.create(now) as StatsNow, {
    completed: 0,
    failed: 0,
    retried: 0,
    quarantined: 0,
    completedAt: 0,
    workerDeaths: { crashed: 0, outOfMemory: 0, timedOut: 0, couldNotStart: 0 },
    wait: createHistogram(),
    stages: { read: createHistogram(), decode: createHistogram(), encode: createHistogram() },
  });
}

/** Counts an outcome of a worker. */
export function countOutcome(counts: PoolCounts, outcome: ChunkOutcome): void {
  counts.completed++;
  counts.completedAt = performance.now();
  if (outcome.status !== "encoded") return;
  const { read, decode, encode } = outcome.timings;
  counts.stages.read.observe(read / 1000);
  counts.stages.decode.observe(decode / 1000);
  counts.stages.encode.observe(encode / 1000);
}
