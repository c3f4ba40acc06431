import type { Log } from "../observe/log.js";
import type { ChunkOutcome } from "./chunk-task.js";
import { failedOutcome } from "./failed-outcome.js";
import type { PoolCounts } from "./pool-stats.js";
import type { Quarantine } from "./quarantine.js";
import type { StartAttempts } from "./start-attempts.js";
import type { PoolTask, TaskSchedule } from "./task-schedule.js";
import type { WorkerDeath } from "./worker-death.js";

/** Where deaths leave their marks. */
export interface DeathMarks {
  readonly counts: PoolCounts;
  readonly schedule: TaskSchedule;
  readonly quarantine: Quarantine;
  readonly starts: StartAttempts;
  readonly log: Log;
  readonly threads: number;
  readonly taskTimeoutMs: number;
}

/** A task that killed a worker sooner than this is tried again: nobody waits twice for what takes long. */
const RETRY_WITHIN_MS = 10_000;

const DEEDS = {
  crashed: "crashed",
  outOfMemory: "ran out of memory",
  timedOut: "was ended at the time limit",
} as const;

/**
 * What becomes of a task whose worker has died after so long. It is done again if it was not begun, or if it is the first worker
 * that died over it, soon, and not at the time limit; else its chunk goes into quarantine. In both cases its array is suspect.
 * @returns The outcome; undefined: it is to be done again.
 */
export function judgeDeath(
  queued: PoolTask,
  death: WorkerDeath,
  tookMs: number,
  marks: DeathMarks,
): ChunkOutcome | undefined {
  const { counts, schedule, quarantine, starts, log, threads, taskTimeoutMs } = marks;
  const { kind } = death;
  // At most every worker there is may turn out to be worn out.
  if (kind === "wornOut" && queued.notBegun <= threads) {
    queued.notBegun++;
    return undefined;
  }
  if (kind === "couldNotStart") {
    log.error({ err: death }, "a worker could not start");
    counts.workerDeaths.couldNotStart++;
    starts.failed(performance.now());
    queued.notBegun++;
    return undefined;
  }
  starts.succeeded();
  queued.deaths++;
  const cause = kind === "wornOut" ? "crashed" : kind;
  counts.workerDeaths[cause]++;
  const { plan, chunkCoords, isUrgent = false } = queued.task;
  log.error({ err: death, path: plan.path, chunkCoords }, `a worker ${DEEDS[cause]}`);
  if (!isUrgent) schedule.strike(queued.arrayKey, tookMs);
  if (cause !== "timedOut" && queued.deaths === 1 && tookMs <= Math.min(RETRY_WITHIN_MS, taskTimeoutMs / 2)) {
    counts.retried++;
    return undefined;
  }
  const limit = cause === "timedOut" ? ` of ${taskTimeoutMs} ms` : "";
  const reason = `array '${plan.path}': the worker for chunk ${chunkCoords.join(".") || "0"} ${DEEDS[cause]}${limit}`;
  if (!isUrgent) {
    counts.quarantined++;
    quarantine.add(queued.chunkId, reason);
  }
  return failedOutcome("codec-failed", reason);
}
