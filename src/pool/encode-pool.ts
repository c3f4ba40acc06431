import { fileURLToPath } from "node:url";
import type { Log } from "../observe/log.js";
import { settlesWithin } from "../settles-within.js";
import { createArrayKeys } from "./array-keys.js";
import type { ChunkOutcome, ChunkTask, WorkerData } from "./chunk-task.js";
import type { ChunkWorker } from "./chunk-worker.js";
import {
  abandonedOutcome,
  brokenOutcome,
  drainingOutcome,
  failedOutcome,
  overloadedOutcome,
} from "./failed-outcome.js";
import { type DeathMarks, judgeDeath } from "./judge-death.js";
import { createLingeringThreads } from "./lingering-threads.js";
import { countOutcome, createPoolCounts, type EncodePoolStats } from "./pool-stats.js";
import { createQuarantine } from "./quarantine.js";
import { createSpareMemory } from "./spare-memory.js";
import { createStartAttempts } from "./start-attempts.js";
import { defaultMemoryBudget, memoryOfTask } from "./task-memory.js";
import { createTaskSchedule, type PoolTask } from "./task-schedule.js";
import { createWorkerCrew } from "./worker-crew.js";
import type { WorkerDeath } from "./worker-death.js";

/** Threads that make chunks. What is done when they die is in `README.md`. */
export interface EncodePool {
  /**
   * Makes one served chunk in a worker, as soon as one is free: first come, first served, but for what
   * `task-schedule.ts` says. Never rejects: a task too many, or while no worker can be started, is a failed outcome of code
   * `overloaded`, one after closing `draining`, one over which workers died `codec-failed`, one from a place that does not
   * answer `source-unreadable`.
   * @param isWanted Asked when the task's turn comes, or others need its place: where nobody waits for the chunk any
   * more it is not made (`overloaded`), so that clients that have gone do not hold up those that are there. Default: wanted.
   * @param onApart Called, maybe more than once, when the task waits or runs apart from others: it takes no worker from them.
   */
  makeChunk(task: ChunkTask, isWanted?: () => boolean, onApart?: () => void): Promise<ChunkOutcome>;
  /**
   * Takes back the memory of a chunk that nobody reads any more, for a later one: what is left to the garbage collector costs
   * it 6 ms for every 64 MB.
   */
  recycle?(bytes: Uint8Array<ArrayBuffer>): void;
  readonly stats: EncodePoolStats;
  /** Ends all workers. What still waits or runs comes out as failed (`draining`). */
  close(): Promise<void>;
}

export interface EncodePoolOptions {
  /** Workers at most; each is started when there is work for it, and ends after a minute without. */
  readonly threads: number;
  /** Tasks that may wait, half of them those of suspects. Chunks wait rather than being turned away: many clients read an error as fill value. */
  readonly maxQueued?: number;
  /** A worker that takes longer for one chunk is ended. */
  readonly taskTimeoutMs?: number;
  /** JavaScript heap of one worker. Default 512 MiB. Chunks are array buffers, which do not count here. */
  readonly workerHeapBytes?: number;
  /** For all chunks that are made at a time; see `task-schedule.ts`. Default: half of this machine's. */
  readonly memoryBudgetBytes?: number;
  /** Passed on to workers. Default 30,000. */
  readonly sourceTimeoutMs?: number;
  /** Whether workers use the WebAssembly kernel. Default true. */
  readonly useKernel?: boolean;
  /** Whether workers say the checksums of what they make, for whoever stores it. Default false. */
  readonly withChecksums?: boolean;
  readonly log: Log;
  /** The compiled worker; another only in tests. */
  readonly workerFile?: string;
}

const DEFAULT_MAX_QUEUED = 16_384;
const DEFAULT_TASK_TIMEOUT_MS = 120_000;
const DEFAULT_SOURCE_TIMEOUT_MS = 30_000;
const DEFAULT_HEAP_BYTES = 512 * 2 ** 20;

/** A task that takes longer makes way for those of other arrays, if they wait. */
const SLOW_AFTER_MS = 10_000;
/** How long closing waits for threads to end. */
const CLOSE_TIMEOUT_MS = 2_000;

const ALWAYS = () => true;
const IGNORE = () => undefined;

/** Where a task runs: on one of the workers for all, made way for others, or on the suspects' own worker. */
type Place = "shared" | "aside" | "apart";

interface RunningTask {
  readonly queued: PoolTask;
  readonly startedAt: number;
  place: Place;
}

/** Creates a pool; starts nothing before there is a task. */
export function createEncodePool(options: EncodePoolOptions): EncodePool {
  const { threads, log } = options;
  const maxQueued = options.maxQueued ?? DEFAULT_MAX_QUEUED;
  const maxSuspects = Math.max(1, maxQueued >> 1);
  const taskTimeoutMs = options.taskTimeoutMs ?? DEFAULT_TASK_TIMEOUT_MS;
  const heapBytes = options.workerHeapBytes ?? DEFAULT_HEAP_BYTES;
  const filename =
    options.workerFile ?? fileURLToPath(new URL("../../workers/make-chunk.js", import.meta.url));
  const { useKernel = true, withChecksums = false } = options;
  const { sourceTimeoutMs = DEFAULT_SOURCE_TIMEOUT_MS } = options;
  const workerData: WorkerData = { useKernel, withChecksums, sourceTimeoutMs };
  const slowAfterMs = Math.min(SLOW_AFTER_MS, taskTimeoutMs / 4);

  // Each of the shared workers may have its double while its task runs aside.
  const schedule = createTaskSchedule(options.memoryBudgetBytes ?? defaultMemoryBudget(), 2 * threads + 1);
  const quarantine = createQuarantine();
  const lingering = createLingeringThreads();
  const starts = createStartAttempts();
  const spare = createSpareMemory(threads);
  const keyOf = createArrayKeys();
  const running = new Set<RunningTask>();
  const places = { shared: 0, aside: 0, apart: 0 };
  const crew = createWorkerCrew({
    filename,
    workerData,
    heapBytes,
    onIdleDeath(error) {
      counts.workerDeaths.crashed++;
      log.error({ err: error }, "a worker without a task crashed");
    },
  });
  let alarm: NodeJS.Timeout | undefined;
  let isClosed = false;

  const isBroken = () => starts.areHopeless && crew.alive === 0;
  const counts = createPoolCounts({
    get queued() {
      return schedule.length;
    },
    get queuedSuspects() {
      return schedule.ofSuspects;
    },
    get running() {
      return running.size;
    },
    get threads() {
      return crew.alive;
    },
    get suspects() {
      return schedule.suspects;
    },
    get lingering() {
      return lingering.count;
    },
    get isBroken() {
      return isBroken();
    },
  });

  const marks: DeathMarks = { counts, schedule, quarantine, starts, log, threads, taskTimeoutMs };

  /** Begins all that can be begun, and comes back when more can. */
  function pump(): void {
    if (isClosed) return;
    clearTimeout(alarm);
    while (places.shared < threads) {
      if (schedule.length === 0) break;
      const worker = crew.take(performance.now() >= starts.notBefore);
      if (worker === undefined) break;
      const next = takeWanted(() => schedule.next());
      if (next === undefined) {
        crew.giveBack(worker, true);
        break;
      }
      begin(next, worker, "shared");
    }
    const now = performance.now();
    const wakeAt = [beginSuspect(now), makeWay(now)];
    if (schedule.length > 0 && starts.notBefore > now) wakeAt.push(starts.notBefore);
    const soonest = Math.min(...wakeAt.map((at) => at ?? Number.POSITIVE_INFINITY));
    if (soonest < Number.POSITIVE_INFINITY) alarm = setTimeout(pump, Math.max(1, Math.ceil(soonest - now)));
  }

  function takeWanted(take: () => PoolTask | undefined): PoolTask | undefined {
    for (;;) {
      const next = take();
      if (next === undefined || next.isWanted()) return next;
      settle(next, abandonedOutcome());
    }
  }

  /** @returns When to ask again; undefined: when something ends. */
  function beginSuspect(now: number): number | undefined {
    if (places.apart > 0) return undefined;
    if (now < starts.notBefore) return starts.notBefore;
    let restUntil: number | undefined;
    const next = takeWanted(() => {
      const found = schedule.nextOfSuspects(now);
      restUntil = typeof found === "number" ? found : undefined;
      return typeof found === "number" ? undefined : found;
    });
    if (next !== undefined) begin(next, crew.ofSuspects(next.deaths > 0), "apart");
    return restUntil;
  }

  /**
   * Lets tasks that take long make way for those of other arrays that wait. @returns When to ask again; undefined: when
   * something ends.
   */
  function makeWay(now: number): number | undefined {
    if (places.shared < threads) return undefined;
    let wakeAt: number | undefined;
    for (const task of running) {
      const { arrayKey } = task.queued;
      if (places.aside >= threads) break;
      if (task.place !== "shared" || !schedule.doOthersWait(arrayKey)) continue;
      const slowAt = task.startedAt + slowAfterMs;
      if (slowAt > now) {
        wakeAt = Math.min(wakeAt ?? slowAt, slowAt);
        continue;
      }
      task.place = "aside";
      places.shared--;
      places.aside++;
      schedule.watch(arrayKey).slowRunning++;
      task.queued.onApart();
      wakeAt = now;
    }
    return wakeAt;
  }

  function begin(queued: PoolTask, worker: ChunkWorker, place: Place): void {
    const startedAt = performance.now();
    const task: RunningTask = { queued, startedAt, place };
    running.add(task);
    places[place]++;
    schedule.began(queued);
    if (queued.deaths + queued.notBegun === 0) counts.wait.observe((startedAt - queued.queuedAt) / 1000);
    if (place === "apart") schedule.watch(queued.arrayKey).probesRunning++;
    worker
      .run({ task: queued.task, into: spare.take() }, taskTimeoutMs)
      .then(
        (outcome) => {
          leave(task);
          // There may be more workers than places: those that took the place of slow ones.
          crew.giveBack(worker, !isClosed && crew.idle + places.shared < threads);
          countOutcome(counts, outcome);
          starts.succeeded();
          if (task.place === "apart") acquit(queued.arrayKey);
          settle(queued, outcome);
        },
        (death: WorkerDeath) => {
          leave(task);
          const gone = crew.end(worker);
          if (death.kind === "timedOut") lingering.add(queued.task.plan.source, gone);
          const outcome = isClosed
            ? drainingOutcome()
            : judgeDeath(queued, death, performance.now() - startedAt, marks);
          if (outcome !== undefined) settle(queued, outcome);
          else schedule.putBack(queued);
          if (isBroken()) for (const waiting of schedule.removeAll()) settle(waiting, brokenOutcome());
        },
      )
      .finally(() => {
        unwatch(queued.arrayKey);
        pump();
      });
  }

  function leave(task: RunningTask): void {
    const { queued, place } = task;
    running.delete(task);
    places[place]--;
    schedule.ended(queued);
    const watch = schedule.watchOf(queued.arrayKey);
    if (watch === undefined) return;
    if (place === "aside") watch.slowRunning--;
    if (place === "apart") watch.probesRunning--;
  }

  function acquit(arrayKey: string): void {
    const watch = schedule.watchOf(arrayKey);
    if (watch !== undefined) schedule.acquit(watch);
  }

  function unwatch(arrayKey: string): void {
    const watch = schedule.watchOf(arrayKey);
    if (watch !== undefined) schedule.unwatch(watch);
    if (schedule.suspects === 0 && places.apart === 0) crew.endOfSuspects();
  }

  function settle(queued: PoolTask, outcome: ChunkOutcome): void {
    if (outcome.status === "failed") counts.failed++;
    queued.settle(outcome);
  }

  /** Why a task is not to wait at all. */
  function refusalOf(task: ChunkTask, arrayKey: string, chunkId: string): ChunkOutcome | undefined {
    if (isClosed) return drainingOutcome();
    const reason = quarantine.reasonFor(chunkId);
    if (reason !== undefined)
      return failedOutcome("codec-failed", `${reason}; it is not tried again for a while`);
    if (lingering.isBlocked(task.plan.source)) {
      const what = `array '${task.plan.path}': expected its files to be read, but workers still wait for some of them`;
      return failedOutcome("source-unreadable", what);
    }
    if (isBroken() && performance.now() < starts.notBefore) return brokenOutcome();
    return task.isUrgent ? undefined : refusalForLackOfRoom(arrayKey);
  }

  function refusalForLackOfRoom(arrayKey: string): ChunkOutcome | undefined {
    const watch = schedule.watchOf(arrayKey);
    // Suspects use no worker that may be free: their wait has its own bound.
    const suspect = watch !== undefined && watch.strikes > 0 ? watch : undefined;
    const isRoom = () =>
      schedule.length < maxQueued && (suspect === undefined || schedule.ofSuspects < maxSuspects);
    const waitsForNobody =
      suspect === undefined && places.shared < threads && schedule.length === schedule.ofSuspects;
    if (waitsForNobody || isRoom()) return undefined;
    for (const unwanted of schedule.removeUnwanted()) settle(unwanted, abandonedOutcome());
    while (!isRoom()) {
      // Suspects make room for each other only where others have more.
      const last = schedule.removeSuspect(suspect === undefined ? 0 : suspect.waiting.length + 1);
      if (last === undefined) return overloadedOutcome(suspect === undefined ? maxQueued : maxSuspects);
      settle(last, overloadedOutcome(maxQueued));
    }
    return undefined;
  }

  return {
    stats: counts,
    makeChunk(task, isWanted = ALWAYS, onApart = IGNORE) {
      const arrayKey = keyOf(task.plan);
      const chunkId = `${arrayKey}${task.chunkCoords.join(".")}\n${task.stamp ?? ""}`;
      const refusal = refusalOf(task, arrayKey, chunkId);
      if (refusal !== undefined) {
        counts.failed++;
        return Promise.resolve(refusal);
      }
      return new Promise((resolve) => {
        schedule.add({
          task,
          isWanted,
          onApart,
          settle: resolve,
          arrayKey,
          chunkId,
          memory: memoryOfTask(task.plan),
          queuedAt: performance.now(),
          deaths: 0,
          notBegun: 0,
        });
        pump();
      });
    },
    recycle: ({ buffer }) => spare.give(buffer),
    async close() {
      isClosed = true;
      clearTimeout(alarm);
      spare.clear();
      for (const waiting of schedule.removeAll()) settle(waiting, drainingOutcome());
      await settlesWithin(crew.endAll(), CLOSE_TIMEOUT_MS);
    },
  };
}
