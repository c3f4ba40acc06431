import { posix } from "node:path";
import { fileURLToPath } from "node:url";
import type { ChunkOutcome } from "../codec/make-chunk.js";
import { createBoundedMap } from "../collections/bounded-map.js";
import { createLimiter, type Limiter } from "../collections/limiter.js";
import { errorToData, ZpublishError } from "../errors.js";
import type { Log } from "../observe/log.js";
import { createHistogram, type Histogram } from "../observe/metrics.js";
import type { EncodingPlan } from "../zarr/plan/encoding-plan.js";
import { storedChunksOfTask } from "../zarr/plan/item-pick.js";
import {
  type CallOutcome,
  type ChunkTask,
  defaultMemoryBudget,
  type ModuleCall,
  memoryOfTask,
  movedMemory,
  type TaskAnswer,
  type WorkerData,
} from "./chunk-task.js";
import {
  createChunkWorker,
  createWorkerSet,
  type DeathKind,
  type WorkerDeath,
  type WorkerSet,
} from "./chunk-worker.js";

/** The state of a pool now, and what it has counted since its start. */
export interface EncodePoolStats {
  /** Tasks that wait. */
  readonly queued: number;
  readonly running: number;
  /** Workers with a running thread. */
  readonly threads: number;
  /** True if workers repeatedly failed to start and none is alive. */
  readonly isBroken: boolean;
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

/** Threads that make chunks. `README.md` says what happens when they die. */
export interface EncodePool {
  /**
   * Makes one served chunk in a worker; arrays take turns. Never rejects. The outcome fails with `overloaded` if too many tasks
   * wait or no worker can start, and with `codec-failed` if workers died over the chunk. It fails with `draining` after `close`,
   * and with `cancelled` after an abort.
   * @param signal Takes the task out of the queue; a task that has begun is finished.
   */
  makeChunk(task: ChunkTask, signal?: AbortSignal): Promise<ChunkOutcome>;
  /**
   * Calls the default export of a module in a worker. Never rejects, and fails as `makeChunk` does. The call gets the same object of
   * `cancelled`, and is not interrupted.
   */
  callModule(call: ModuleCall, signal?: AbortSignal): Promise<CallOutcome>;
  /**
   * Takes over the memory of a chunk for a later one. The garbage collector would need 6 ms for every 64 MB.
   * @param bytes The bytes of an outcome, which the caller no longer reads.
   */
  recycle?(bytes: Uint8Array<ArrayBuffer>): void;
  readonly stats: EncodePoolStats;
  /** Ends all workers. Tasks that wait or run fail with `draining`. */
  close(): Promise<void>;
}

/** Bounds and settings of a pool. */
export interface EncodePoolOptions {
  /** Maximum number of workers. Each starts when there is work for it, and ends after a minute without. */
  readonly threads: number;
  /** Tasks that may wait. Chunks wait rather than fail: many clients read an error as fill values. */
  readonly maxQueued?: number;
  /** A worker that takes longer for one chunk is ended. */
  readonly taskTimeoutMs?: number;
  /** JavaScript heap of one worker. Chunks are array buffers, which do not count. */
  readonly workerHeapBytes?: number;
  /** Bound of the estimated memory of all chunks being made. Default: half of this machine's memory. */
  readonly memoryBudgetBytes?: number;
  /** Time limit of one call to a source in a worker. */
  readonly sourceTimeoutMs?: number;
  /** True if workers compute checksums, for the cache. Default false. */
  readonly withChecksums?: boolean;
  readonly log: Log;
  /** The compiled worker; another one only in tests. */
  readonly workerFile?: string;
}

/** A task that killed its worker later than this is not tried again: clients would wait twice as long. */
const RETRY_WITHIN_MS = 10_000;
/** Spare buffers, besides one per worker; larger ones are left to the garbage collector. */
const SPARE_BUFFERS = 8;
const MAX_SPARE_BYTES = 8 * 2 ** 20;

const CAUSES: Record<Exclude<DeathKind, "couldNotStart">, string> = {
  crashed: "crashed",
  outOfMemory: "ran out of memory",
  timedOut: "exceeded the time limit",
};

/** Creates a pool; starts no thread before there is a task. */
export function createEncodePool(options: EncodePoolOptions): EncodePool {
  const {
    threads,
    log,
    maxQueued = 16_384,
    taskTimeoutMs = 120_000,
    workerHeapBytes = 512 * 2 ** 20,
    withChecksums = false,
    sourceTimeoutMs = 30_000,
    memoryBudgetBytes = defaultMemoryBudget(),
    workerFile: filename = fileURLToPath(new URL("../../workers/make-chunk.js", import.meta.url)),
  } = options;
  const workerData: WorkerData = { withChecksums, sourceTimeoutMs };

  const maxCost = memoryBudgetBytes / 2;
  const queue = createLimiter({ maxRunning: threads, maxPerKey: threads, maxWaiting: maxQueued, maxCost });
  /** By the id of a chunk. */
  const quarantine = createBoundedMap<Quarantined>({ maxEntries: MAX_QUARANTINED });
  const spare: ArrayBuffer[] = [];
  let isClosed = false;

  const workers = createWorkerSet((onIdleEnd) =>
    createChunkWorker({
      filename,
      workerData,
      heapBytes: workerHeapBytes,
      onIdleEnd(error) {
        onIdleEnd();
        if (error === undefined) return;
        counts.workerDeaths.crashed++;
        log.error({ err: error }, "a worker crashed without a task");
      },
    }),
  );
  const counts = createPoolCounts(queue, workers);

  async function work(job: Job): Promise<Exclude<TaskAnswer, { status: "worn-out" }>> {
    const { id, name, fields } = job;
    let { task } = job;
    log.debug(fields, "module" in task ? "calling a function" : "making a chunk");
    const isMoved = movedMemory({ task, into: undefined }).length > 0;
    for (let isRetry = false; ; ) {
      const worker = await workers.acquire(isRetry);
      const startedAt = performance.now();
      try {
        const into = "module" in task ? undefined : spare.pop();
        const answer = await worker.run({ task, into }, taskTimeoutMs);
        if (answer.status !== "worn-out") {
          workers.release(worker);
          countOutcome(counts, answer);
          return answer;
        }
        task = answer.task;
        workers.discard(worker, true);
      } catch (error) {
        const death = error as WorkerDeath;
        workers.discard(worker, death.kind !== "couldNotStart");
        if (isClosed) throw new ZpublishError("draining", "the server is shutting down");
        counts.workerDeaths[death.kind]++;
        if (death.kind === "couldNotStart") {
          log.error({ err: death }, "a worker could not start");
          continue;
        }
        log.error({ err: death, ...fields }, `a worker ${CAUSES[death.kind]}`);
        const maxRetryMs = Math.min(RETRY_WITHIN_MS, taskTimeoutMs / 2);
        if (isRetry || isMoved || death.kind === "timedOut" || performance.now() - startedAt > maxRetryMs) {
          const limit = death.kind === "timedOut" ? ` of ${taskTimeoutMs} ms` : "";
          const reason = `${name} ${CAUSES[death.kind]}${limit}`;
          if (id !== undefined) {
            counts.quarantined++;
            quarantine.set(id, { reason, untilMs: performance.now() + QUARANTINE_MS });
          }
          throw new ZpublishError("codec-failed", reason);
        }
        counts.retried++;
        isRetry = true;
      }
    }
  }

  /** Works on a job when its turn comes. @returns Its answer, or the error as data. */
  async function runInTurn<T extends ChunkOutcome | CallOutcome>(job: Job, signal?: AbortSignal, cost = 0) {
    const queuedAt = performance.now();
    const begin = () => {
      counts.wait.observe((performance.now() - queuedAt) / 1000);
      return work(job) as Promise<T>;
    };
    let outcome: T | FailedOutcome;
    try {
      assertAllowed(quarantine.get(job.id ?? ""));
      outcome = await queue.run(job.key, begin, signal, cost);
    } catch (error) {
      outcome = { status: "failed", error: errorToData(error) };
    }
    if (outcome.status === "failed" && outcome.error.code !== "cancelled") counts.failed++;
    return outcome;
  }

  return {
    stats: counts,
    makeChunk(task, signal) {
      return runInTurn<ChunkOutcome>(jobOfChunk(task), signal, costOf(task, maxCost / threads));
    },
    callModule: (call, signal) => runInTurn<CallOutcome>(jobOfCall(call), signal),
    recycle({ buffer }) {
      if (buffer.byteLength <= MAX_SPARE_BYTES && spare.length < threads + SPARE_BUFFERS) spare.push(buffer);
    },
    async close() {
      isClosed = true;
      spare.length = 0;
      await workers.close();
    },
  };
}

type FailedOutcome = Extract<ChunkOutcome, { status: "failed" }>;

/** A task in the queue. */
interface Job {
  readonly task: ChunkTask | ModuleCall;
  /** Tasks of different keys take turns. */
  readonly key: string;
  /** Identifies the task in the quarantine; undefined for calls, which other data may not kill. */
  readonly id: string | undefined;
  /** Beginning of messages about its worker. */
  readonly name: string;
  /** Fields of the log that name it. */
  readonly fields: object;
}

/** Small tasks cost nothing: if every worker has one, together they take no more than half of the budget. */
function costOf(task: ChunkTask, least: number): number {
  const memory = memoryOfTask(task);
  return memory > least ? memory : 0;
}

function jobOfChunk(task: ChunkTask): Job {
  const { plan, chunkCoords, version } = task;
  const key = arrayKeyOf(plan);
  const chunk = chunkCoords.join(".") || "0";
  const name = `array '${plan.path}': the worker for chunk ${chunk}`;
  // Which one of several chunks killed a worker is not known.
  const isOne = task.pick === undefined && task.others === undefined;
  const chunks = isOne ? [chunkCoords] : storedChunksOfTask(task);
  const id = `${key}${chunks.map((each) => each.join(".")).join(" ")}\n${version ?? ""}`;
  return { task, key, id, name, fields: { path: plan.path, chunkCoords } };
}

function jobOfCall(call: ModuleCall): Job {
  const { module } = call;
  const name = posix.basename(module);
  const worker = `module ${name}: the worker`;
  return { task: call, key: module, id: undefined, name: worker, fields: { module: name } };
}

/** Keys of arrays, by their plan. */
const ARRAY_KEYS = new WeakMap<EncodingPlan, string>();

/** Identifies an array across refreshes: the bytes that its plan makes, and where they come from. */
function arrayKeyOf(plan: EncodingPlan): string {
  let key = ARRAY_KEYS.get(plan);
  if (key === undefined) {
    key = JSON.stringify([plan.id, plan.path, plan.source]);
    ARRAY_KEYS.set(plan, key);
  }
  return key;
}

/** The stats as the pool updates them. */
interface PoolCounts extends EncodePoolStats {
  completed: number;
  failed: number;
  retried: number;
  quarantined: number;
  readonly workerDeaths: Record<DeathKind, number>;
}

/** Stats of a pool that has not been needed yet. */
export const IDLE_POOL_STATS: EncodePoolStats = createPoolCounts();

/** Creates stats with all counts at 0. The state is read whenever it is asked for. */
function createPoolCounts(queue?: Limiter, workers?: WorkerSet): PoolCounts {
  return {
    get queued() {
      return queue?.waiting ?? 0;
    },
    get running() {
      return queue?.running ?? 0;
    },
    get threads() {
      return workers?.alive ?? 0;
    },
    get isBroken() {
      return workers?.isBroken ?? false;
    },
    completed: 0,
    failed: 0,
    retried: 0,
    quarantined: 0,
    workerDeaths: { crashed: 0, outOfMemory: 0, timedOut: 0, couldNotStart: 0 },
    wait: createHistogram(),
    stages: { read: createHistogram(), decode: createHistogram(), encode: createHistogram() },
  };
}

/** Counts the outcome of a worker. */
function countOutcome(counts: PoolCounts, outcome: ChunkOutcome | CallOutcome): void {
  counts.completed++;
  if ("others" in outcome) for (const other of outcome.others ?? []) countOutcome(counts, other);
  if (outcome.status !== "encoded") return;
  const { read, decode, encode } = outcome.timings;
  counts.stages.read.observe(read / 1000);
  counts.stages.decode.observe(decode / 1000);
  counts.stages.encode.observe(encode / 1000);
}

/** Chunks in quarantine; the least recently used are evicted. */
const MAX_QUARANTINED = 4_096;
/** Time for which a chunk is refused that killed workers: not long, since that may have been an accident of load or memory. */
const QUARANTINE_MS = 30_000;

/** @throws ZpublishError `codec-failed` if a task is in quarantine */
function assertAllowed(refused: Quarantined | undefined): void {
  if (refused !== undefined && performance.now() < refused.untilMs)
    throw new ZpublishError("codec-failed", `${refused.reason}; it is not tried again for a while`);
}

/** A chunk over which workers died. */
interface Quarantined {
  readonly reason: string;
  /** Milliseconds since process start. */
  readonly untilMs: number;
}
