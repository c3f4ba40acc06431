import { fileURLToPath } from "node:url";
import type { ChunkOutcome } from "../codec/made-chunk.js";
import { createLimiter } from "../collections/limiter.js";
import { errorToData, ZpublishError } from "../errors.js";
import type { Log } from "../observe/log.js";
import type { EncodingPlan } from "../zarr/plan/encoding-plan.js";
import type { ChunkTask, WorkerData } from "./chunk-task.js";
import { createChunkWorker, type DeathKind, type WorkerDeath } from "./chunk-worker.js";
import { countOutcome, createPoolCounts, type EncodePoolStats } from "./pool-stats.js";
import { createQuarantine } from "./quarantine.js";
import { defaultMemoryBudget, memoryOfTask } from "./task-memory.js";
import { createWorkerSet } from "./worker-set.js";

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
  } = options;
  const {
    withChecksums = false,
    sourceTimeoutMs = 30_000,
    memoryBudgetBytes = defaultMemoryBudget(),
  } = options;
  const filename =
    options.workerFile ?? fileURLToPath(new URL("../../workers/make-chunk.js", import.meta.url));
  const workerData: WorkerData = { withChecksums, sourceTimeoutMs };

  const maxCost = memoryBudgetBytes / 2;
  const queue = createLimiter({ maxRunning: threads, maxPerKey: threads, maxWaiting: maxQueued, maxCost });
  const quarantine = createQuarantine();
  const spare: ArrayBuffer[] = [];
  const arrayKeys = new WeakMap<EncodingPlan, string>();
  let running = 0;
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
  const counts = createPoolCounts({
    get queued() {
      return queue.waiting;
    },
    get running() {
      return running;
    },
    get threads() {
      return workers.alive;
    },
    get isBroken() {
      return workers.isBroken;
    },
  });

  /** Identifies an array across refreshes: the bytes that its plan makes, and where they come from. */
  function arrayKeyOf(plan: EncodingPlan): string {
    let key = arrayKeys.get(plan);
    if (key === undefined) {
      key = JSON.stringify([plan.id, plan.path, plan.source]);
      arrayKeys.set(plan, key);
    }
    return key;
  }

  /** Small tasks cost nothing: if every worker has one, together they take no more than the other half of the budget. */
  function costOf(task: ChunkTask): number {
    const memory = memoryOfTask(task);
    return memory > maxCost / threads ? memory : 0;
  }

  function assertNotQuarantined(chunkId: string): void {
    const reason = quarantine.reasonFor(chunkId);
    if (reason === undefined) return;
    throw new ZpublishError("codec-failed", `${reason}; it is not tried again for a while`);
  }

  async function make(task: ChunkTask, chunkId: string): Promise<ChunkOutcome> {
    const { plan, chunkCoords } = task;
    log.debug({ path: plan.path, chunkCoords }, "making a chunk");
    for (let isRetry = false; ; ) {
      const worker = await workers.acquire(isRetry);
      const startedAt = performance.now();
      try {
        const answer = await worker.run({ task, into: spare.pop() }, taskTimeoutMs);
        if (answer.status !== "worn-out") {
          workers.release(worker);
          countOutcome(counts, answer);
          return answer;
        }
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
        log.error({ err: death, path: plan.path, chunkCoords }, `a worker ${CAUSES[death.kind]}`);
        const maxRetryMs = Math.min(RETRY_WITHIN_MS, taskTimeoutMs / 2);
        if (isRetry || death.kind === "timedOut" || performance.now() - startedAt > maxRetryMs) {
          throw recordFailure(task, chunkId, death.kind);
        }
        counts.retried++;
        isRetry = true;
      }
    }
  }

  /** Puts a chunk into quarantine. @returns The error that says why. */
  function recordFailure(
    { plan, chunkCoords }: ChunkTask,
    chunkId: string,
    kind: Exclude<DeathKind, "couldNotStart">,
  ): ZpublishError {
    const limit = kind === "timedOut" ? ` of ${taskTimeoutMs} ms` : "";
    const chunk = chunkCoords.join(".") || "0";
    const reason = `array '${plan.path}': the worker for chunk ${chunk} ${CAUSES[kind]}${limit}`;
    counts.quarantined++;
    quarantine.add(chunkId, reason);
    return new ZpublishError("codec-failed", reason);
  }

  return {
    stats: counts,
    async makeChunk(task, signal) {
      const { plan, chunkCoords, version } = task;
      const arrayKey = arrayKeyOf(plan);
      const chunkId = `${arrayKey}${chunkCoords.join(".")}\n${version ?? ""}`;
      const queuedAt = performance.now();
      const begin = async (): Promise<ChunkOutcome> => {
        counts.wait.observe((performance.now() - queuedAt) / 1000);
        running++;
        try {
          return await make(task, chunkId);
        } finally {
          running--;
        }
      };
      let outcome: ChunkOutcome;
      try {
        assertNotQuarantined(chunkId);
        outcome = await queue.run(arrayKey, begin, signal, costOf(task));
      } catch (error) {
        outcome = { status: "failed", error: errorToData(error) };
      }
      if (outcome.status === "failed" && outcome.error.code !== "cancelled") counts.failed++;
      return outcome;
    },
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
