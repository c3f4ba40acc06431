import { close, closeSync } from "node:fs";
import { isMainThread } from "node:worker_threads";
import { createLimiter } from "../../collections/limiter.js";
import { isOnLocalFileSystem } from "./local-file-systems.js";

/** What functions of `node:fs` call when they are done. */
export type Done<T> = (error: Error | null, result: T) => void;

/**
 * Calls to the file system for one store, each with a time limit.
 *
 * A call that the system does not answer (a network drive that is gone, a FUSE program that hangs) cannot be cancelled: it
 * keeps one of libuv's threads until it is answered. A store that is not local has therefore a few calls at a time, and is
 * refused more while all of them hang.
 */
export interface FileCalls {
  /** Whether the store is on a local file system, as far as was known when it was opened. */
  readonly isLocal: boolean;
  /**
   * @param start Begins a call of `node:fs`; may start others after it, one at a time, before it is done.
   * @param onLate Receives a result that came after the time limit, to release what it holds.
   * @throws NoAnswerError, and what the call failed with.
   */
  call<T>(start: (done: Done<T>) => void, onLate?: (result: T) => void): Promise<T>;
  /** Closes a descriptor that was only read from, now or later: nothing can be lost. */
  close(fd: number): void;
}

/** A file system did not answer a call within the time limit, or has not answered the calls before. */
export class NoAnswerError extends Error {
  /** The place where other errors have the system's code, which messages show. */
  readonly code: string;
  /** Resolves when the call is answered after all: until then its memory is in use. Undefined if it never began. */
  readonly answered: Promise<void> | undefined;

  constructor(problem: string, answered?: Promise<void>) {
    super(problem);
    this.code = problem;
    this.answered = answered;
  }
}

let timeoutMs = 30_000;

/**
 * Sets how long this thread waits for one call to a file system.
 * @param ms At least 1. Default 30,000.
 */
export function setSourceTimeout(ms: number): void {
  timeoutMs = ms;
}

/** libuv's own default. All threads of the process share its threads. */
const THREADS = Number.parseInt(process.env.UV_THREADPOOL_SIZE ?? "", 10) || 4;
/** A worker reads one chunk after the other. */
const MAX_PER_STORE = isMainThread ? Math.max(2, THREADS >> 2) : 1;

const limiter = createLimiter({
  maxRunning: Math.max(MAX_PER_STORE, THREADS >> 1),
  maxPerKey: MAX_PER_STORE,
  maxWaiting: Number.POSITIVE_INFINITY,
});

/** Calls beyond their time limit that are not answered yet, by store. */
const hanging = new Map<string, number>();

function countHanging(store: string, by: 1 | -1): void {
  const count = (hanging.get(store) ?? 0) + by;
  if (count > 0) hanging.set(store, count);
  else hanging.delete(store);
}

/** @param store Absolute real path of the store: looks now whether it is local. */
export function createFileCalls(store: string): FileCalls {
  const isLocal = isOnLocalFileSystem(store);
  return {
    isLocal,
    call(start, onLate) {
      return new Promise((resolve, reject) => {
        if ((hanging.get(store) ?? 0) >= MAX_PER_STORE) {
          reject(new NoAnswerError("calls before have had no answer yet"));
          return;
        }
        const run = () => startTimed(store, start, onLate, resolve, reject);
        if (isLocal) void run();
        else {
          const controller = new AbortController();
          const timer = setTimeout(() => controller.abort(), timeoutMs);
          const runInTime = () => {
            clearTimeout(timer);
            return run();
          };
          limiter.run(store, runInTime, controller.signal).catch(() => reject(noAnswer()));
        }
      });
    },
    close(fd) {
      if (isLocal) closeSync(fd);
      else void limiter.run(store, () => new Promise<void>((done) => close(fd, () => done())));
    },
  };
}

function noAnswer(answered?: Promise<void>): NoAnswerError {
  return new NoAnswerError(`no answer within ${timeoutMs / 1000} s`, answered);
}

/** @returns When the call is answered. */
function startTimed<T>(
  store: string,
  start: (done: Done<T>) => void,
  onLate: ((result: T) => void) | undefined,
  resolve: (result: T) => void,
  reject: (error: Error) => void,
): Promise<void> {
  let state: "waiting" | "hanging" | "answered" = "waiting";
  const answered = new Promise<void>((end) => {
    start((error, result) => {
      clearTimeout(timer);
      if (state === "hanging") {
        countHanging(store, -1);
        if (error === null) onLate?.(result);
      } else if (error === null) resolve(result);
      else reject(error);
      state = "answered";
      end();
    });
  });
  function expire(): void {
    if (state !== "waiting") return;
    state = "hanging";
    countHanging(store, 1);
    reject(noAnswer(answered));
  }
  // Looks once more for an answer: the event loop may have stood still, and timers come first.
  const timer = setTimeout(() => setImmediate(expire), timeoutMs);
  return answered;
}
