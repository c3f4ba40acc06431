import { ZpublishError } from "../errors.js";
import { settlesWithin } from "../event-loop/settles-within.js";
import type { ChunkWorker } from "./chunk-worker.js";

/** The workers of a pool. A task acquires one and releases or discards it; the caller bounds how many it has at a time. */
export interface WorkerSet {
  /**
   * Takes an idle worker, or creates one. While workers fail to start, it waits for the next attempt or an idle worker.
   * @param isFresh Whether the worker must not have run a task before.
   * @throws ZpublishError `overloaded` if workers repeatedly fail to start, `draining` after `close`.
   */
  acquire(isFresh: boolean): Promise<ChunkWorker>;
  release(worker: ChunkWorker): void;
  /** Ends a worker. @param hasStarted False if it failed to start, which delays the next attempts more and more. */
  discard(worker: ChunkWorker, hasStarted: boolean): void;
  /** Workers with a running thread. */
  readonly alive: number;
  /** True if workers repeatedly failed to start and none is alive. */
  readonly isBroken: boolean;
  /** Ends all workers. */
  close(): Promise<void>;
}

const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 10_000;
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
  /** Workers that have not finished a task yet: whether they can start is not known. */
  const untried = new Set<ChunkWorker>();
  /** Tasks that wait for a worker, each by the function that makes it look again. */
  const waiting = new Set<() => void>();
  let failedStarts = 0;
  let retryAt = 0;
  let isClosed = false;

  function create(): ChunkWorker {
    const worker = createWorker(() => remove(worker));
    all.add(worker);
    untried.add(worker);
    return worker;
  }

  function remove(worker: ChunkWorker): void {
    all.delete(worker);
    untried.delete(worker);
    const index = idle.indexOf(worker);
    if (index >= 0) idle.splice(index, 1);
    void worker.end();
  }

  function recordStart(worker: ChunkWorker): void {
    if (!untried.delete(worker)) return;
    failedStarts = 0;
    retryAt = 0;
  }

  function recordFailedStart(): void {
    const now = performance.now();
    // Workers that were started together fail together: that is one failure.
    if (now < retryAt) return;
    retryAt = now + Math.min(FIRST_PAUSE_MS * 2 ** failedStarts, MAX_PAUSE_MS);
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
      recordStart(worker);
      idle.push(worker);
      for (const wake of waiting) wake();
    },
    discard(worker, hasStarted) {
      if (hasStarted) recordStart(worker);
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
