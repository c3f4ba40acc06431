import { type BigIntStats, close, closeSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { isMainThread } from "node:worker_threads";
import { createLimiter } from "../collections/limiter.js";
import { isMissing, ZpublishError } from "../errors.js";

/** File systems that wait neither for another machine nor for a program. */
const LOCAL_TYPES: ReadonlySet<string> = new Set(
  "ext2 ext3 ext4 xfs btrfs f2fs zfs bcachefs tmpfs ramfs rootfs overlay squashfs erofs iso9660".split(" "),
);

/** Time until the table is read again. A store may have thousands of arrays, and a machine thousands of mounts. */
const MAX_AGE_MS = 1_000;

/** By mount point, whether its file system is local. */
let mounts: ReadonlyMap<string, boolean> = new Map();
/** Milliseconds since process start. */
let readAtMs = Number.NEGATIVE_INFINITY;

/**
 * Finds out whether a directory is on a local file system, from the kernel's table of mounts, at most a second old. A call to
 * the file system itself, such as statfs(2), could hang. False if the system has no such table.
 * @param directory Absolute path without links.
 */
export function isOnLocalFileSystem(directory: string): boolean {
  const now = performance.now();
  if (now - readAtMs > MAX_AGE_MS) {
    mounts = parseMountInfo(readMountInfo());
    readAtMs = now;
  }
  for (let path = directory; ; path = dirname(path)) {
    const isLocal = mounts.get(path);
    if (isLocal !== undefined) return isLocal;
    if (dirname(path) === path) return false;
  }
}

function readMountInfo(): string {
  try {
    return readFileSync("/proc/self/mountinfo", "utf8");
  } catch {
    return "";
  }
}

/**
 * Parses `/proc/self/mountinfo` (proc(5)): by mount point, whether its file system is local. The last of several mounts at
 * one point counts, since it hides the others.
 */
export function parseMountInfo(text: string): Map<string, boolean> {
  const found = new Map<string, boolean>();
  for (const line of text.split("\n")) {
    const fields = line.split(" ");
    const mountPoint = fields[4];
    const type = fields[fields.indexOf("-", 6) + 1];
    if (mountPoint === undefined || type === undefined) continue;
    // White space and backslashes are written as three octal digits.
    const path = mountPoint.replace(/\\([0-7]{3})/g, (_, digits: string) =>
      String.fromCharCode(Number.parseInt(digits, 8)),
    );
    found.set(path, LOCAL_TYPES.has(type));
  }
  return found;
}

/** Callback of functions of `node:fs`. */
type Done<T> = (error: Error | null, result: T) => void;

/**
 * Calls to the file system for one store, each with a time limit.
 *
 * A call that the system does not answer cannot be cancelled: it occupies one of libuv's threads until it is answered. A network
 * drive may be gone, a FUSE program may hang. So a store that is not local has few calls at a time, and further ones
 * fail while all of them hang.
 */
export interface FileCalls {
  /** True if the store was on a local file system when it was opened. */
  readonly isLocal: boolean;
  /**
   * Makes a call.
   * @param start Starts a call of `node:fs`; may start others after it, one at a time, before it is done.
   * @param onLate Receives a result that came after the time limit, to release what it holds.
   * @throws NoAnswerError, and what the call failed with.
   */
  call<T>(start: (done: Done<T>) => void, onLate?: (result: T) => void): Promise<T>;
  /** Closes a descriptor that was only read from, now or later: nothing can be lost. */
  close(fd: number): void;
}

/** Error of a file system that did not answer a call within the time limit, or has not answered the calls before. */
export class NoAnswerError extends Error {
  /** The message, since other errors have the system's code here and messages show that. */
  readonly code: string;
  /** Resolves when the call is answered; until then its memory is in use. Undefined if the call never started. */
  readonly answered: Promise<void> | undefined;

  constructor(problem: string, answered?: Promise<void>) {
    super(problem);
    this.code = problem;
    this.answered = answered;
  }
}

let timeoutMs = 30_000;

/**
 * Sets how long this thread waits for one call to a source.
 * @param ms At least 1. Default 30,000.
 */
export function setSourceTimeout(ms: number): void {
  timeoutMs = ms;
}

/** Returns how long this thread waits for one call to a source, in milliseconds. */
export function sourceTimeoutMs(): number {
  return timeoutMs;
}

/** Size of libuv's thread pool, which all threads of the process share; 4 is libuv's own default. */
const THREADS = Number.parseInt(process.env.UV_THREADPOOL_SIZE ?? "", 10) || 4;
/** Calls at a time for a store that is not local. A worker reads one chunk after the other. */
const MAX_PER_STORE = isMainThread ? Math.max(2, THREADS >> 2) : 1;

const limiter = createLimiter({
  maxRunning: Math.max(MAX_PER_STORE, THREADS >> 1),
  maxPerKey: MAX_PER_STORE,
  maxWaiting: Number.POSITIVE_INFINITY,
});

/** Number of calls beyond their time limit that are not answered yet, by store. */
const hanging = new Map<string, number>();

function countHanging(store: string, by: 1 | -1): void {
  const count = (hanging.get(store) ?? 0) + by;
  if (count > 0) hanging.set(store, count);
  else hanging.delete(store);
}

/** Creates the calls of a store, and finds out whether it is local. @param store Absolute real path of the store. */
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

/** Starts a call and its time limit. @returns Resolves when the call is answered. */
function startTimed<T>(
  store: string,
  start: (done: Done<T>) => void,
  onLate: ((result: T) => void) | undefined,
  resolve: (result: T) => void,
  reject: (error: Error) => void,
): Promise<void> {
  let state: "waiting" | "hanging" | "answered" = "waiting";
  // An answer that is there already is taken first: the event loop may have stood still, and it runs timers before callbacks.
  const timer = setTimeout(() => setImmediate(expire), timeoutMs);
  const answered = new Promise<void>((end) => {
    function done(error: Error | null, result?: T): void {
      clearTimeout(timer);
      if (state === "hanging") {
        countHanging(store, -1);
        if (error === null) onLate?.(result as T);
      } else if (error === null) resolve(result as T);
      else reject(error);
      state = "answered";
      end();
    }
    try {
      start(done);
    } catch (error) {
      // Node.js refuses some paths before it asks the system, such as one with a NUL.
      done(error as Error);
    }
  });
  function expire(): void {
    if (state !== "waiting") return;
    state = "hanging";
    countHanging(store, 1);
    reject(noAnswer(answered));
  }
  return answered;
}

/** Returns the name of a file for messages. A function, since most files need no message. */
export type Label = () => string;

/** Returns the error for a file that cannot be read, with its name in the store. */
export function unreadable(label: Label, problem: string, cause?: unknown): ZpublishError {
  const key = label();
  return new ZpublishError("source-unreadable", `'${key}' ${problem}`, { details: { key }, cause });
}

/** Asserts that a path is a file. @throws ZpublishError `source-unreadable` */
export function assertFile(stat: BigIntStats, label: Label): void {
  if (stat.isFile()) return;
  throw unreadable(label, `expected a file, found ${stat.isDirectory() ? "a directory" : "something else"}`);
}

/** Returns the code of a system error. Its message contains a path of the machine. */
export function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" ? code : "unknown error";
}

/** Returns undefined if an error says that there is no file. @throws ZpublishError `source-unreadable` for other errors. */
export function absentOrThrow(error: unknown, label: Label): undefined {
  if (isMissing(error)) return undefined;
  throw unreadable(label, `cannot be read (${codeOf(error)})`, error);
}
