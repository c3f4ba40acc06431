import type { ChunkOutcome } from "../codec/made-chunk.js";
import { createHistogram, type Histogram } from "../observe/histogram.js";
import type { DeathKind } from "./chunk-worker.js";

/** The state of a pool now. */
interface PoolState {
  /** Tasks that wait. */
  readonly queued: number;
  readonly running: number;
  /** Workers with a running thread. */
  readonly threads: number;
  /** True if workers repeatedly failed to start and none is alive. */
  readonly isBroken: boolean;
}

/** The state of a pool, and what it has counted since its start. */
export interface EncodePoolStats extends PoolState {
  /** Tasks that a worker finished, with a chunk or an error. */
  readonly completed: number;
  /** Tasks that failed, cancelled ones left out. */
  readonly failed: number;
  /** Tasks tried a second time. */
  readonly retried: number;
  /** Workers that had to be replaced, by cause. */
  readonly workerDeaths: Readonly<Record<DeathKind, number>>;
  /** Chunks that were put into quarantine. */
  readonly quarantined: number;
  /** Seconds in the queue. */
  readonly wait: Histogram;
  /** Seconds per stage, of chunks that were made. */
  readonly stages: { readonly read: Histogram; readonly decode: Histogram; readonly encode: Histogram };
}

/** The stats as the pool updates them. */
export interface PoolCounts extends EncodePoolStats {
  completed: number;
  failed: number;
  retried: number;
  quarantined: number;
  readonly workerDeaths: Record<DeathKind, number>;
}

/** Stats of a pool that has not been needed yet. */
export const IDLE_POOL_STATS: EncodePoolStats = createPoolCounts({
  queued: 0,
  running: 0,
  threads: 0,
  isBroken: false,
});

/** Creates stats with all counts at 0. @param state Its properties are read whenever the stats are. */
export function createPoolCounts(state: PoolState): PoolCounts {
  return Object.assign(Object.create(state) as PoolState, {
    completed: 0,
    failed: 0,
    retried: 0,
    quarantined: 0,
    workerDeaths: { crashed: 0, outOfMemory: 0, timedOut: 0, couldNotStart: 0 },
    wait: createHistogram(),
    stages: { read: createHistogram(), decode: createHistogram(), encode: createHistogram() },
  });
}

/** Counts the outcome of a worker. */
export function countOutcome(counts: PoolCounts, outcome: ChunkOutcome): void {
  counts.completed++;
  if (outcome.status !== "encoded") return;
  const { read, decode, encode } = outcome.timings;
  counts.stages.read.observe(read / 1000);
  counts.stages.decode.observe(decode / 1000);
  counts.stages.encode.observe(encode / 1000);
}
