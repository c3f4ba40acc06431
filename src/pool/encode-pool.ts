import { fileURLToPath } from "node:url";
import { Piscina } from "piscina";
import { type ErrorCode, type ErrorDetails, messageOf } from "../errors.js";
import type { Log } from "../observe/log.js";
import type { ChunkOutcome, ChunkTask, WorkerData, WorkerTask } from "./chunk-task.js";
import { WORN_OUT_EXIT_CODE } from "./worn-out-exit-code.js";

/** Threads that make chunks. */
export interface EncodePool {
  /**
   * Makes one served chunk in a worker, as soon as one is free: first come, first served. Never rejects: a task too many
   * is a failed outcome of code `overloaded`, one after closing `draining`, a crashed or stuck worker `codec-failed`.
   * @param isWanted Asked when the task's turn comes, or others need its place: where nobody waits for the chunk any
   * more it is not made (`overloaded`), so that clients that have gone do not hold up those that are there. Default: wanted.
   */
  makeChunk(task: ChunkTask, isWanted?: () => boolean): Promise<ChunkOutcome>;
  /**
   * Takes back the memory of a chunk that nobody reads any more, for a later one: what is left to the garbage collector costs
   * it 6 ms for every 64 MB.
   */
  recycle?(bytes: Uint8Array<ArrayBuffer>): void;
  /** Tasks that wait for a worker. */
  readonly queued: number;
  /** Ends all workers. What still waits or runs comes out as failed (`draining`). */
  close(): Promise<void>;
}

export interface EncodePoolOptions {
  /** Workers at most; each is started when there is work for it, and ends after a minute without. */
  readonly threads: number;
  /** Tasks that may wait. Chunks wait rather than being turned away: many clients read an error as fill value. */
  readonly maxQueued?: number;
  /** A worker that takes longer for one chunk is ended. */
  readonly taskTimeoutMs?: number;
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
const IDLE_TIMEOUT_MS = 60_000;
/** JavaScript heap of a worker. Chunks are array buffers, which do not count here. */
const MAX_HEAP_MB = 512;
/** What a task leaves behind is little; 48 by default, of which a thread takes as much as it is given. */
const MAX_YOUNG_HEAP_MB = 6;

/** Memory that is kept for chunks, besides one piece for each worker. */
const SPARE_BUFFERS = 8;
/** Larger pieces are not kept. */
const MAX_SPARE_BYTES = 8 * 1024 * 1024;

const ALWAYS = () => true;

interface QueuedTask {
  readonly task: ChunkTask;
  readonly isWanted: () => boolean;
  readonly settle: (outcome: ChunkOutcome) => void;
}

/**
 * The only file that knows piscina. What to know of version 5.3.2:
 *
 * - Errors lose class and fields on the way out of a worker, and piscina's own have no code: workers return errors as data.
 * - A task in piscina's own queue waits for ever when the last worker dies and no further task arrives, or when a worker
 *   cannot start. So the queue is here: piscina gets no more tasks than it has threads, and is thrown away when it
 *   reports that a worker could not start.
 * - It replaces a crashed worker only up to `minThreads`; the next task starts one.
 */
export function createEncodePool(options: EncodePoolOptions): EncodePool {
  const { threads, log } = options;
  const maxQueued = options.maxQueued ?? DEFAULT_MAX_QUEUED;
  const taskTimeoutMs = options.taskTimeoutMs ?? DEFAULT_TASK_TIMEOUT_MS;
  const filename =
    options.workerFile ?? fileURLToPath(new URL("../../workers/make-chunk.js", import.meta.url));
  const { useKernel = true, withChecksums = false } = options;
  const workerData: WorkerData = { useKernel, withChecksums };
  const queue: QueuedTask[] = [];
  const maxSpare = threads + SPARE_BUFFERS;
  /** Memory for chunks to come. */
  const spare: ArrayBuffer[] = [];
  let queueHead = 0;
  let running = 0;
  let isClosed = false;
  let workers: Workers | undefined;

  function openWorkers(): Workers {
    const opened = createWorkers(filename, threads, workerData, (error) => {
      log.error({ err: error }, "a worker of the encode pool could not start");
      if (workers === opened) workers = undefined;
    });
    return opened;
  }

  function startQueued(): void {
    while (running < threads && queueHead < queue.length) {
      const next = queue[queueHead++] as QueuedTask;
      // Shifting one by one is slow for long queues.
      if (queueHead > 1024 || queueHead === queue.length) {
        queue.splice(0, queueHead);
        queueHead = 0;
      }
      if (!next.isWanted()) {
        next.settle(abandoned());
        continue;
      }
      running++;
      void run(next.task).then((outcome) => {
        running--;
        next.settle(outcome);
        startQueued();
      });
    }
  }

  /** Takes out of the queue what nobody waits for any more. */
  function dropAbandoned(): void {
    const waiting = queue.splice(0).slice(queueHead);
    queueHead = 0;
    for (const queued of waiting) {
      if (queued.isWanted()) queue.push(queued);
      else queued.settle(abandoned());
    }
  }

  async function run(task: ChunkTask): Promise<ChunkOutcome> {
    // At most every worker there is may turn out to be worn out.
    for (let attempt = 0; ; attempt++) {
      workers ??= openWorkers();
      try {
        return await workers.run({ task, into: spare.pop() }, taskTimeoutMs);
      } catch (error) {
        if (isClosed) return failed("draining", "the server is shutting down");
        const message = messageOf(error);
        if (message.endsWith(`code: ${WORN_OUT_EXIT_CODE}`) && attempt <= threads) continue;
        const reason = isTimeout(error) ? `took longer than ${taskTimeoutMs} ms` : `failed: ${message}`;
        const what = `array '${task.plan.path}': the worker for chunk ${task.chunkCoords.join(".") || "0"} ${reason}`;
        log.error({ err: error, path: task.plan.path, chunkCoords: task.chunkCoords }, "a worker crashed");
        return failed("codec-failed", what);
      }
    }
  }

  return {
    get queued() {
      return queue.length - queueHead;
    },
    makeChunk(task, isWanted = ALWAYS) {
      if (isClosed) return Promise.resolve(failed("draining", "the server is shutting down"));
      if (running >= threads && queue.length - queueHead >= maxQueued) dropAbandoned();
      if (running >= threads && queue.length - queueHead >= maxQueued) {
        return Promise.resolve(
          failed(
            "overloaded",
            `expected at most ${maxQueued} chunks to wait for a worker, received one more`,
          ),
        );
      }
      return new Promise((settle) => {
        queue.push({ task, isWanted, settle });
        startQueued();
      });
    },
    recycle({ buffer }) {
      if (buffer.byteLength <= MAX_SPARE_BYTES && spare.length < maxSpare) spare.push(buffer);
    },
    async close() {
      isClosed = true;
      spare.length = 0;
      for (const { settle } of queue.splice(0).slice(queueHead)) {
        settle(failed("draining", "the server is shutting down"));
      }
      queueHead = 0;
      await workers?.close();
      workers = undefined;
    },
  };
}

/** A piscina pool whose tasks always settle. */
interface Workers {
  /** @throws whatever ended the worker, or an AbortError after the timeout. */
  run(task: WorkerTask, timeoutMs: number): Promise<ChunkOutcome>;
  close(): Promise<void>;
}

function createWorkers(
  filename: string,
  threads: number,
  workerData: WorkerData,
  onBroken: (error: unknown) => void,
): Workers {
  const piscina = new Piscina<WorkerTask, ChunkOutcome>({
    filename,
    workerData,
    minThreads: 0,
    maxThreads: threads,
    idleTimeout: IDLE_TIMEOUT_MS,
    concurrentTasksPerWorker: 1,
    maxQueue: Number.POSITIVE_INFINITY,
    resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB, maxYoungGenerationSizeMb: MAX_YOUNG_HEAP_MB },
  });
  const running = new Set<(error: unknown) => void>();
  piscina.on("error", (error: unknown) => {
    onBroken(error);
    for (const reject of running) reject(error);
    void piscina.destroy().catch(() => undefined);
  });
  return {
    run(task, timeoutMs) {
      return new Promise((resolve, reject) => {
        const controller = new AbortController();
        const timer = setTimeout(() => controller.abort(), timeoutMs);
        running.add(reject);
        piscina
          .run(task, {
            signal: controller.signal,
            ...(task.into === undefined ? {} : { transferList: [task.into] }),
          })
          .then(resolve, reject)
          .finally(() => {
            clearTimeout(timer);
            running.delete(reject);
          });
      });
    },
    close: () => piscina.destroy(),
  };
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.name === "AbortError";
}

function abandoned(): ChunkOutcome {
  return failed("overloaded", "nobody waits for the chunk any more", { abandoned: true });
}

function failed(code: ErrorCode, message: string, details: ErrorDetails = {}): ChunkOutcome {
  return { status: "failed", error: { code, message, details } };
}
