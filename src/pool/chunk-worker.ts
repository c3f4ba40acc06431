import type { Worker } from "node:worker_threads";
import { FixedQueue, Piscina } from "piscina";
import { messageOf, ZpublishError } from "../errors.js";
import { settlesWithin } from "../event-loop/settles-within.js";
import { failedCall, movedMemory, type TaskAnswer, type WorkerData, type WorkerTask } from "./chunk-task.js";

/** One worker. Its thread starts with the first task and ends after a minute without one. */
interface ChunkWorker {
  /**
   * Runs one task; the next one only after this has settled. After a rejection the worker cannot be used any more.
   * @param timeoutMs Time limit, counted from when the thread has started.
   * @throws WorkerDeath, and nothing else.
   */
  run(task: WorkerTask, timeoutMs: number): Promise<TaskAnswer>;
  /** True if its thread has started and not ended. */
  readonly isAlive: boolean;
  /**
   * Terminates the thread; the running task is rejected. One that starts is terminated when it has started.
   * @returns Resolves when the thread has ended. A thread inside a system call, such as a read of a file system that hangs, ends
   * only after that call.
   */
  end(): Promise<void>;
}

/** Why a worker ended while it had a task. `crashed` includes uncaught errors and `process.exit`. */
export type DeathKind = "crashed" | "outOfMemory" | "timedOut" | "couldNotStart";

/** The end of a worker. The message is for the log: it may contain paths of the machine. */
export class WorkerDeath extends Error {
  override readonly name = "WorkerDeath";
  readonly kind: DeathKind;

  constructor(kind: DeathKind, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.kind = kind;
  }
}

/** Options of {@link createChunkWorker}. */
interface ChunkWorkerOptions {
  /** The compiled worker. */
  readonly filename: string;
  readonly workerData: WorkerData;
  /** Limit of the JavaScript heap. Chunks are array buffers, which do not count. */
  readonly heapBytes: number;
  /** Called when the thread ends between two tasks; then again with the error if it crashed. */
  readonly onIdleEnd: (error?: unknown) => void;
}

const IDLE_TIMEOUT_MS = 60_000;
/** On a busy machine a thread takes seconds to start. */
const START_TIMEOUT_MS = 30_000;
/** A task leaves little behind; the default is 48, and a thread uses all it is given. */
const MAX_YOUNG_HEAP_MB = 6;
const TERMINATE_AGAIN_MS = 500;

/** A task under way. */
interface Attempt {
  readonly timeoutMs: number;
  /** Settles `run` and stops the timer. */
  readonly fail: (kind: DeathKind, message: string, cause?: unknown) => void;
  timer: NodeJS.Timeout | undefined;
  /** True if a thread was there to begin the task. */
  hasBegun: boolean;
}

/**
 * Creates a worker. The only file that knows piscina (5.3.2):
 *
 * - Errors lose class and fields between threads, and piscina's own have no code: workers return errors as data.
 * - A task in its queue waits for ever if the last worker dies and no other task arrives. In a pool of several workers, a failed
 *   start cannot be told from a crash. So each worker is a pool of one thread, which is dropped with its thread.
 * - With an AbortSignal it gives a worker one task at a time and ends the thread at an abort. So signals stay in our queue.
 * - An idle thread waits in `Atomics.wait`; now and then one ignores `terminate()` there (Node.js 20.20), but obeys the next.
 * - A thread that is terminated while it loads its modules may abort the process (Node.js 20.20: `Module::IsGraphAsync`), so `end` waits.
 */
export function createChunkWorker(options: ChunkWorkerOptions): ChunkWorker {
  const { onIdleEnd } = options;
  const queue = new FixedQueue();
  const piscina = createThreadPool(options, queue);
  let isAlive = false;
  let attempt: Attempt | undefined;
  let ending: Promise<void> | undefined;
  /** Undefined before the first task. */
  let started: Promise<void> | undefined;

  piscina.on("workerCreate", () => {
    isAlive = true;
    if (attempt !== undefined) begin(attempt);
  });
  piscina.on("workerDestroy", () => {
    isAlive = false;
    for (const thread of piscina.threads) terminateUntilGone(thread);
    const lost = attempt;
    if (lost === undefined) onIdleEnd();
    // If it ended with an error, that is emitted next and says more.
    else if (!lost.hasBegun) queueMicrotask(() => lost.fail("couldNotStart", "it ended while it started"));
  });
  piscina.on("error", (error: unknown) => {
    if (attempt !== undefined) attempt.fail("couldNotStart", messageOf(error), error);
    // The answer of a thread that is being ended comes without its task.
    else if (ending === undefined) onIdleEnd(error);
  });

  function begin(current: Attempt): void {
    current.hasBegun = true;
    limit(current, current.timeoutMs);
  }

  function limit(current: Attempt, ms: number): void {
    clearTimeout(current.timer);
    const expire = () => {
      if (current.timer !== timer) return;
      current.fail(current.hasBegun ? "timedOut" : "couldNotStart", `it took longer than ${ms} ms`);
      void end();
    };
    // If the event loop stood still, the answer may be there already: it is taken first.
    const timer = setTimeout(() => setImmediate(expire), ms);
    current.timer = timer;
  }

  async function endThread(): Promise<void> {
    if (!isAlive && started !== undefined) {
      while (queue.size > 0) queue.shift();
      attempt?.fail("couldNotStart", "it is not needed any more");
      await settlesWithin(started, START_TIMEOUT_MS);
    }
    await piscina.destroy().catch(() => undefined);
  }

  function end(): Promise<void> {
    ending ??= endThread();
    return ending;
  }

  /** @throws Error if the system has no thread to give. */
  function post(task: WorkerTask): Promise<TaskAnswer> {
    try {
      return piscina.run(task, { transferList: movedMemory(task) });
    } catch (error) {
      // The task is in the queue all the same; its promise would be rejected unhandled.
      while (queue.size > 0) queue.shift();
      throw error;
    }
  }

  return {
    get isAlive() {
      return isAlive;
    },
    run(task, timeoutMs) {
      return new Promise<TaskAnswer>((resolve, reject) => {
        const settle = () => {
          clearTimeout(current.timer);
          current.timer = undefined;
          if (attempt === current) attempt = undefined;
        };
        const current: Attempt = {
          timeoutMs,
          fail(kind, message, cause) {
            settle();
            reject(new WorkerDeath(kind, message, cause));
          },
          timer: undefined,
          hasBegun: false,
        };
        attempt = current;
        started ??= startOf(piscina);
        if (isAlive) begin(current);
        else limit(current, Math.max(timeoutMs, START_TIMEOUT_MS));
        try {
          post(task).then(
            (answer) => {
              settle();
              resolve(answer);
            },
            (error: unknown) => {
              const { task: sent } = task;
              if (!isAlive || !("module" in sent)) {
                current.fail(kindOf(error), messageOf(error), error);
                return;
              }
              // The thread has not got the data, which cannot be copied.
              settle();
              resolve(failedCall(sent, error));
            },
          );
        } catch (error) {
          current.fail("couldNotStart", messageOf(error), error);
        }
      });
    },
    end,
  };
}

/** Creates a pool of one thread, which has not started. */
function createThreadPool(
  { filename, workerData, heapBytes }: ChunkWorkerOptions,
  taskQueue: FixedQueue,
): Piscina<WorkerTask, TaskAnswer> {
  return new Piscina({
    ...{ filename, taskQueue, workerData },
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
}

/** Resolves when the thread has loaded its modules, or has ended. */
function startOf(piscina: Piscina): Promise<void> {
  return new Promise((resolve) => {
    piscina.once("workerCreate", () => resolve()).once("workerDestroy", () => resolve());
  });
}

function terminateUntilGone(thread: Worker): void {
  // Node.js says so of a thread that has ended.
  if (thread.threadId === -1) return;
  const timer = setInterval(() => void thread.terminate(), TERMINATE_AGAIN_MS).unref();
  thread.once("exit", () => clearInterval(timer));
}

function kindOf(error: unknown): DeathKind {
  const { code } = error as NodeJS.ErrnoException;
  return code === "ERR_WORKER_OUT_OF_MEMORY" ? "outOfMemory" : "crashed";
}

/** The workers of a pool. A task acquires one and releases or discards it; the caller bounds how many it has at a time. */
export interface WorkerSet {
  /**
   * Takes an idle worker, or creates one. While workers fail to start, it waits for the next attempt or an idle worker.
   * @param isFresh Whether the worker must not have run a task before.
   * @throws ZpublishError `overloaded` if workers repeatedly fail to start, `draining` after `close`.
   */
  acquire(isFresh: boolean): Promise<ChunkWorker>;
  release(worker: ChunkWorker): void;
  /** Ends a worker. @param hasStarted False if it failed to start, which delays the next attempt. */
  discard(worker: ChunkWorker, hasStarted: boolean): void;
  /** Workers with a running thread. */
  readonly alive: number;
  /** True if workers repeatedly failed to start and none is alive. */
  readonly isBroken: boolean;
  /** Ends all workers. */
  close(): Promise<void>;
}

/** Time between failed starts of workers. */
const PAUSE_MS = 1_000;
/** Failed starts in a row after which tasks no longer wait for the next attempt. */
const BROKEN_AFTER = 3;
/** Time for threads to end: one that hangs in a system call may never. */
const CLOSE_TIMEOUT_MS = 2_000;

/**
 * Creates an empty set.
 * @param createWorker Creates a worker that has not started. It calls `onIdleEnd` when its thread ends between two tasks.
 */
export function createWorkerSet(createWorker: (onIdleEnd: () => void) => ChunkWorker): WorkerSet {
  /** The one used last comes last, so that those not needed reach their idle timeout. */
  const idle: ChunkWorker[] = [];
  const all = new Set<ChunkWorker>();
  /** Tasks that wait for a worker, each by the function that makes it look again. */
  const waiting = new Set<() => void>();
  let failedStarts = 0;
  let retryAt = 0;
  let isClosed = false;

  function create(): ChunkWorker {
    const worker = createWorker(() => remove(worker));
    all.add(worker);
    return worker;
  }

  function remove(worker: ChunkWorker): void {
    all.delete(worker);
    const index = idle.indexOf(worker);
    if (index >= 0) idle.splice(index, 1);
    void worker.end();
  }

  function recordFailedStart(): void {
    const now = performance.now();
    // Workers that were started together fail together: that is one failure.
    if (now < retryAt) return;
    retryAt = now + PAUSE_MS;
    failedStarts++;
  }

  function countAlive(): number {
    let alive = 0;
    for (const { isAlive } of all) if (isAlive) alive++;
    return alive;
  }

  function isBroken(): boolean {
    return failedStarts >= BROKEN_AFTER && countAlive() === 0;
  }

  async function pause(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(wake, ms);
      function wake() {
        clearTimeout(timer);
        waiting.delete(wake);
        resolve();
      }
      waiting.add(wake);
    });
  }

  return {
    async acquire(isFresh) {
      for (;;) {
        if (isClosed) throw new ZpublishError("draining", "the server is shutting down");
        const found = isFresh ? undefined : idle.pop();
        if (found !== undefined) return found;
        const pauseMs = retryAt - performance.now();
        if (pauseMs <= 0) return create();
        if (isBroken()) throw new ZpublishError("overloaded", "expected a worker to start, none does");
        await pause(pauseMs);
      }
    },
    release(worker) {
      failedStarts = 0;
      idle.push(worker);
      for (const wake of waiting) wake();
    },
    discard(worker, hasStarted) {
      if (hasStarted) failedStarts = 0;
      else recordFailedStart();
      remove(worker);
    },
    get alive() {
      return countAlive();
    },
    get isBroken() {
      return isBroken();
    },
    async close() {
      isClosed = true;
      for (const wake of waiting) wake();
      await settlesWithin(Promise.all([...all].map((worker) => worker.end())), CLOSE_TIMEOUT_MS);
    },
  };
}
