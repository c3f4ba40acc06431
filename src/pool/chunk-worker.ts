import type { Worker } from "node:worker_threads";
import { FixedQueue, Piscina } from "piscina";
import { messageOf } from "../errors.js";
import type { ChunkOutcome, WorkerData, WorkerTask } from "./chunk-task.js";
import { WorkerDeath } from "./worker-death.js";
import { WORN_OUT_EXIT_CODE } from "./worn-out-exit-code.js";

/** One worker: a thread that is started with its first task, and ends after a minute without one. */
export interface ChunkWorker {
  /**
   * Does one task; the next only when that has settled. After a rejection the worker is at its end: there is to be another.
   * @param timeoutMs From when there is a thread for it; starting one may take half a minute.
   * @throws WorkerDeath, and nothing else
   */
  run(task: WorkerTask, timeoutMs: number): Promise<ChunkOutcome>;
  /** Whether there is a thread that has started. */
  readonly isAlive: boolean;
  /**
   * Ends the thread; does not wait for it. A task under way is rejected (`crashed`).
   * @returns When the thread is gone, which may be never: one that waits for the system, in a read of a file system that
   * does not answer, ends with that call only, whatever `terminate()` says.
   */
  end(): Promise<void>;
}

export interface ChunkWorkerOptions {
  /** The compiled worker. */
  readonly filename: string;
  readonly workerData: WorkerData;
  /** JavaScript heap; chunks are array buffers, which do not count. */
  readonly heapBytes: number;
  /** Called when the thread dies between two tasks. */
  readonly onIdleDeath: (error: unknown) => void;
}

const IDLE_TIMEOUT_MS = 60_000;
/** On a machine that is busy with anything else, a thread takes seconds to start: no reason to give up. */
const START_TIMEOUT_MS = 30_000;
/** What a task leaves behind is little; 48 by default, of which a thread takes as much as it is given. */
const MAX_YOUNG_HEAP_MB = 6;

/** How often a thread is told to end, at most, and after what time again: twice as long each time. */
const MAX_TELLS = 4;
const TELL_AGAIN_MS = 250;

/** What is under way. */
interface Attempt {
  readonly reject: (death: WorkerDeath) => void;
  /** Called when there is a thread for it. */
  readonly begin: () => void;
  /** Whether a thread was there to begin it. */
  wasBegun: boolean;
}

/**
 * The only file that knows piscina. What to know of version 5.3.2:
 *
 * - Errors lose class and fields on the way out of a worker, and piscina's own have no code: workers return errors as data.
 * - A task in its queue waits for ever when the last worker dies and no further task arrives, or when a worker ends before
 *   it is ready without an error. In a pool of several, who cannot start is not told from who crashed. So each worker
 *   is a pool of one, which is thrown away with its thread.
 * - `destroy()` waits for the thread's end, without a limit.
 * - Threads without a task wait in `Atomics.wait`, and now and then one that is told to end there goes on waiting (Node.js 20.20: ten in
 *   half an hour in which workers died all the time). Told again, it ends.
 */
export function createChunkWorker(options: ChunkWorkerOptions): ChunkWorker {
  const { filename, workerData, heapBytes, onIdleDeath } = options;
  const queue = new FixedQueue();
  const piscina = new Piscina<WorkerTask, ChunkOutcome>({
    filename,
    taskQueue: queue,
    workerData,
    minThreads: 0,
    maxThreads: 1,
    idleTimeout: IDLE_TIMEOUT_MS,
    concurrentTasksPerWorker: 1,
    maxQueue: 1,
    resourceLimits: {
      maxOldGenerationSizeMb: Math.ceil(heapBytes / 2 ** 20),
      maxYoungGenerationSizeMb: MAX_YOUNG_HEAP_MB,
    },
  });
  /** The one there is, or was last. */
  let thread: Worker | undefined;
  let isAlive = false;
  let attempt: Attempt | undefined;
  let ending: Promise<void> | undefined;

  piscina.on("workerCreate", () => {
    isAlive = true;
    thread = piscina.threads.at(-1);
    attempt?.begin();
  });
  piscina.on("workerDestroy", () => {
    isAlive = false;
    if (thread !== undefined) void untilGone(thread);
    const lost = attempt;
    if (lost === undefined || lost.wasBegun) return;
    // An error that says why comes in this same turn, after this.
    queueMicrotask(() => lost.reject(new WorkerDeath("couldNotStart", "it ended while it started")));
  });
  piscina.on("error", (error: unknown) => {
    if (attempt === undefined) onIdleDeath(error);
    else attempt.reject(new WorkerDeath("couldNotStart", messageOf(error), error));
  });

  function end(): Promise<void> {
    ending ??= endThreads(piscina);
    return ending;
  }

  return {
    get isAlive() {
      return isAlive;
    },
    run(task, timeoutMs) {
      return new Promise<ChunkOutcome>((resolve, reject) => {
        let timer: NodeJS.Timeout | undefined;
        const limit = (ms: number) => {
          clearTimeout(timer);
          const own = setTimeout(() => {
            // Where the loop stood still, the outcome may be there already: it is taken first.
            setImmediate(() => {
              if (timer !== own) return;
              const kind = current.wasBegun ? "timedOut" : "couldNotStart";
              reject(new WorkerDeath(kind, `it took longer than ${ms} ms`));
              end();
            });
          }, ms);
          timer = own;
        };
        const settle = () => {
          clearTimeout(timer);
          timer = undefined;
          attempt = undefined;
        };
        const current: Attempt = {
          reject,
          begin() {
            current.wasBegun = true;
            limit(timeoutMs);
          },
          wasBegun: isAlive,
        };
        attempt = current;
        limit(isAlive ? timeoutMs : Math.max(timeoutMs, START_TIMEOUT_MS));
        const transferList = task.into === undefined ? [] : [task.into];
        let outcome: Promise<ChunkOutcome>;
        try {
          outcome = piscina.run(task, { transferList });
        } catch (error) {
          // The system has no thread to give. The task is in the queue all the same, and nobody would hear of its end.
          while (queue.size > 0) queue.shift();
          settle();
          reject(new WorkerDeath("couldNotStart", messageOf(error), error));
          return;
        }
        outcome
          .then(resolve, (error: unknown) => {
            reject(deathOf(error));
            end();
          })
          .finally(settle);
      });
    },
    end,
  };
}

async function endThreads(piscina: Piscina): Promise<void> {
  const gone = piscina.threads.map(untilGone);
  piscina.destroy().catch(() => undefined);
  await Promise.all(gone);
}

/** Threads that are told to end. */
const ended = new WeakMap<Worker, Promise<void>>();

/** Tells a thread to end until it has; one that waits for the system ends with its call only. */
function untilGone(thread: Worker): Promise<void> {
  // What Node.js says of one that has ended.
  if (thread.threadId === -1) return Promise.resolve();
  const known = ended.get(thread);
  if (known !== undefined) return known;
  const gone = new Promise<void>((resolve) => {
    let timer: NodeJS.Timeout | undefined;
    const tell = (afterMs: number, tells: number) => {
      if (tells === 0) return;
      timer = setTimeout(() => {
        void thread.terminate();
        tell(2 * afterMs, tells - 1);
      }, afterMs).unref();
    };
    tell(TELL_AGAIN_MS, MAX_TELLS);
    thread.once("exit", () => {
      clearTimeout(timer);
      resolve();
    });
  });
  ended.set(thread, gone);
  return gone;
}

function deathOf(error: unknown): WorkerDeath {
  const message = messageOf(error);
  if (message.endsWith(`code: ${WORN_OUT_EXIT_CODE}`)) return new WorkerDeath("wornOut", message);
  const isOutOfMemory = (error as NodeJS.ErrnoException | null)?.code === "ERR_WORKER_OUT_OF_MEMORY";
  return new WorkerDeath(isOutOfMemory ? "outOfMemory" : "crashed", message, error);
}
