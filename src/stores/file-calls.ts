import {
  type BigIntStats,
  close,
  closeSync,
  constants,
  fstat,
  fstatSync,
  openSync,
  read,
  readFileSync,
  readSync,
} from "node:fs";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isMainThread } from "node:worker_threads";
import { createBoundedMap } from "../collections/bounded-map.js";
import { createLimiter } from "../collections/limiter.js";
import { isMissing, ZpublishError } from "../errors.js";
import type { MaybePromise } from "../event-loop/maybe-promise.js";
import { createHistogram, type Histogram } from "../observe/metrics.js";

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

/** Sets how long this thread waits for one call to a source. @param ms At least 1. Default 30,000. */
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

/**
 * Kernels take the time of their last tick, 1 to 10 ms long, so two writes within one tick leave the same time. A file younger
 * than this is checked again later.
 */
const SETTLE_MS = 20;

/** Settle time if the clock has whole seconds (ext4 with small inodes, many network file systems) or every other one (FAT). */
const COARSE_SETTLE_MS = 2_000;

const NS_PER_MS = 1_000_000n;
const NS_PER_S = 1_000_000_000n;

/** Returns the version of a file: modification time in nanoseconds and byte length, both in base 36. */
export function versionOf(stat: BigIntStats): string {
  return `${stat.mtimeNs.toString(36)}.${stat.size.toString(36)}`;
}

/** Returns the modification time in a version of a file, in milliseconds since 1970. @param version As {@link versionOf} writes it. */
export function modifiedMsOf(version: string): number {
  // Off by less than a microsecond, since nanoseconds have more digits than a number.
  return Number.parseInt(version, 36) / 1e6;
}

/** Tells whether a file was not written between two calls of `stat`. */
export function isSameVersion(a: BigIntStats, b: BigIntStats): boolean {
  return a.mtimeNs === b.mtimeNs && a.size === b.size;
}

/** Returns the milliseconds until a file is so old that another write must change its time; 0 for times in the future. */
export function remainingSettleMs({ mtimeNs }: Pick<BigIntStats, "mtimeNs">): number {
  const age = Date.now() - Number(mtimeNs / NS_PER_MS);
  // On a finer clock, one time in a billion is a whole second.
  const settleMs = mtimeNs % NS_PER_S === 0n ? COARSE_SETTLE_MS : SETTLE_MS;
  return age < 0 || age >= settleMs ? 0 : settleMs - age;
}

/** Flags of open(2) that neither follow a link nor wait for the other end of a pipe. */
export const OPEN_FLAGS = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

/**
 * An open file, and how it may be read. A descriptor takes half the time of a FileHandle, and leaves nothing to the garbage
 * collector.
 */
export interface OpenDescriptor {
  readonly fd: number;
  readonly calls: FileCalls;
  /** True if `fstat` waits for nothing but this machine. */
  readonly isLocal: boolean;
  /** Device (`st_dev`) whose files this thread may wait for, since a link may lead to another; undefined if there is none. */
  readonly blockingDevice: bigint | undefined;
  /** True if the caller uses memory from `allocate` again even if the read fails. */
  readonly reusesMemory: boolean;
}

/** Returns a view of exactly `byteLength` bytes; its buffer may be longer. */
export type Allocate = (byteLength: number) => Uint8Array<ArrayBuffer>;

/** A file that is open for reading. */
export interface OpenFile {
  readonly stat: BigIntStats;
  /** Reads exactly `byteLength` bytes into memory from `allocate`. Default: memory of their own. */
  readBytes(offset: number, byteLength: number, allocate?: Allocate): MaybePromise<Uint8Array<ArrayBuffer>>;
}

/** Error of a file that is shorter than `fstat` said: it is being written. */
class FileChanged extends Error {}

/** Calls `fstat`, in this thread if the file system is local: the answer is in memory. */
function statOpen({ fd, calls, isLocal }: OpenDescriptor): BigIntStats | Promise<BigIntStats> {
  if (isLocal) return fstatSync(fd, { bigint: true });
  return calls.call<BigIntStats>((done) => fstat(fd, { bigint: true }, done));
}

/**
 * Closes a file. If a call hangs, closes it when the call is answered: another file could get the descriptor's number.
 * @param error What the last use of the file threw.
 */
export function closeWhenAnswered({ fd, calls }: OpenDescriptor, error: unknown): void {
  const answered = error instanceof NoAnswerError ? error.answered : undefined;
  if (answered === undefined) calls.close(fd);
  else void answered.then(() => calls.close(fd));
}

/**
 * Runs `use` on an open file.
 * @returns Undefined if the file changed meanwhile.
 * @throws ZpublishError `source-unreadable`, system errors, and what `use` throws for an unchanged file.
 */
export async function useUnchanged<T>(
  descriptor: OpenDescriptor,
  label: Label,
  use: (file: OpenFile) => MaybePromise<T>,
): Promise<{ readonly value: T } | undefined> {
  let stat = await statOpen(descriptor);
  assertFile(stat, label);
  const wait = remainingSettleMs(stat);
  if (wait > 0) {
    await sleep(wait);
    stat = await statOpen(descriptor);
  }
  const mayBlock = stat.dev === descriptor.blockingDevice;
  const file: OpenFile = {
    stat,
    readBytes: (offset, byteLength, allocate) =>
      readBytes(descriptor, mayBlock, offset, byteLength, label, allocate),
  };
  try {
    const value = await use(file);
    return isSameVersion(stat, await statOpen(descriptor)) ? { value } : undefined;
  } catch (error) {
    if (error instanceof FileChanged) return undefined;
    if (error instanceof NoAnswerError) throw error;
    // Bytes that seem corrupt may be half of an old file and half of a new one.
    if (!isSameVersion(stat, await statOpen(descriptor))) return undefined;
    throw error;
  }
}

/** Allocates memory outside of Buffer's pool, so that the caller may move it to another thread. */
export function allocateOwn(byteLength: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.allocUnsafeSlow(byteLength).buffer as ArrayBuffer, 0, byteLength);
}

async function readBytes(
  descriptor: OpenDescriptor,
  mayBlock: boolean,
  offset: number,
  byteLength: number,
  label: Label,
  allocate: Allocate = allocateOwn,
): Promise<Uint8Array<ArrayBuffer>> {
  if (byteLength > 0x7fffffff)
    throw unreadable(label, `has ${byteLength} bytes, more than one read can take`);
  // A read that hangs may write into its memory at any later time.
  const takesCopy = !mayBlock && descriptor.reusesMemory && allocate !== allocateOwn;
  const bytes = (takesCopy ? allocateOwn : allocate)(byteLength);
  let filled = 0;
  while (filled < byteLength) {
    const bytesRead = mayBlock
      ? readSync(descriptor.fd, bytes, filled, byteLength - filled, offset + filled)
      : await readSome(descriptor, bytes, filled, offset);
    if (bytesRead === 0) throw new FileChanged();
    filled += bytesRead;
  }
  if (!takesCopy) return bytes;
  const copy = allocate(byteLength);
  copy.set(bytes);
  return copy;
}

function readSome(
  { fd, calls }: OpenDescriptor,
  bytes: Uint8Array,
  filled: number,
  offset: number,
): Promise<number> {
  return calls.call<number>((done) =>
    read(fd, bytes, filled, bytes.byteLength - filled, offset + filled, done),
  );
}

/** Longer reads by the server's thread are slow; 590 KB from memory take a tenth of a millisecond. */
const SLOW_MS = 4;
/** Time for which libuv's threads read a store after a slow read, in multiples of the time that the read took. */
const PAUSE_FACTOR = 200;
/** Time that slow reads of a store may take before its first pause. */
const FREE_MS = 50;

/** Longer reads are always made by libuv's threads; one of this length takes 1.5 ms from memory. */
const MAX_DIRECT_BYTES = 8 * 1024 * 1024;

/** Seconds per read of a stored chunk: by this thread itself, and by libuv's threads for it. */
export const sourceReadSeconds: Readonly<Record<"direct" | "threads", Histogram>> = {
  direct: createHistogram(),
  threads: createHistogram(),
};

/** Reads of one store by this thread itself. */
interface DirectReads {
  /** True if the store is quick enough at present. */
  readonly isQuick: boolean;
  /**
   * Runs a read or a check of a file, and notes whether it was slow.
   * @param seconds Histogram that receives its duration.
   */
  run<T>(read: () => T, seconds?: Histogram): T;
}

/** By the path of a store that was slow, the end of its last pause, in milliseconds since process start. */
const pauses = createBoundedMap<number>({ maxEntries: 1_024 });

/** Returns the direct reads of a store, whose pauses all its readers share. @param store Absolute real path of the store. */
export function directReadsOf(store: string): DirectReads {
  const pausedUntilMs = () => pauses.get(store) ?? Number.NEGATIVE_INFINITY;
  return {
    get isQuick() {
      return performance.now() >= pausedUntilMs();
    },
    run(read, seconds) {
      if (performance.now() - notedAtMs > SLOW_MS / 4) {
        notedWaitMs = processorWaitMs();
        notedAtMs = performance.now();
      }
      const beganMs = performance.now();
      try {
        return read();
      } finally {
        const endMs = performance.now();
        seconds?.observe((endMs - beganMs) / 1_000);
        if (endMs - beganMs > SLOW_MS) {
          // Time in which other threads had the processor does not count: the disk was not slow.
          const slowMs = endMs - beganMs - (processorWaitMs() - notedWaitMs);
          const freeFromMs = endMs - PAUSE_FACTOR * FREE_MS;
          if (slowMs > SLOW_MS)
            pauses.set(store, Math.max(pausedUntilMs(), freeFromMs) + PAUSE_FACTOR * slowMs);
        }
      }
    },
  };
}

/** What {@link processorWaitMs} returned, and when: to ask for each of many short reads would take a tenth of their time. */
let notedWaitMs = 0;
let notedAtMs = Number.NEGATIVE_INFINITY;
let schedulerFile: number | undefined;
const text = Buffer.alloc(64);
const SPACE = 0x20;
const ZERO = 0x30;

/** Returns the milliseconds that this thread was ready to run and waited for a processor; 0 if the system does not tell. */
function processorWaitMs(): number {
  try {
    schedulerFile ??= openSync("/proc/thread-self/schedstat", "r");
    readSync(schedulerFile, text, 0, text.length, 0);
  } catch {
    return 0;
  }
  // The second of three numbers (kernel documentation, "Scheduler Statistics").
  let nanoseconds = 0;
  for (let at = text.indexOf(SPACE) + 1; at < text.length && text[at] !== SPACE; at++)
    nanoseconds = nanoseconds * 10 + text[at]! - ZERO;
  return nanoseconds / 1e6;
}

const BIG_INTEGERS = { bigint: true } as const;

/**
 * Runs `use` on a file of a local file system without another thread. With one, which has to wake up, a read of 590 KB from
 * memory takes five times as long.
 * @param device `st_dev` that the file must have.
 * @param use Returns its result at once if the bytes are there at once, as they are here.
 * @returns Undefined if `StoreFiles.read` has to read the file, because anything is unusual: it is missing, a link, fresh,
 * unreadable, changed meanwhile, or `use` threw.
 */
export function useNow<T>(
  path: string,
  device: bigint,
  use: (file: OpenFile) => MaybePromise<T>,
): T | undefined {
  let fd: number | undefined;
  try {
    fd = openSync(path, OPEN_FLAGS);
    const stat = fstatSync(fd, BIG_INTEGERS);
    if (!stat.isFile() || stat.dev !== device || remainingSettleMs(stat) > 0) return undefined;
    const value = use({ stat, readBytes: readBytesNow.bind(undefined, fd) }) as T;
    return isSameVersion(stat, fstatSync(fd, BIG_INTEGERS)) ? value : undefined;
  } catch {
    return undefined;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

function readBytesNow(
  fd: number,
  offset: number,
  byteLength: number,
  allocate: Allocate = allocateOwn,
): Uint8Array<ArrayBuffer> {
  if (byteLength > MAX_DIRECT_BYTES)
    throw new Error(`expected at most ${MAX_DIRECT_BYTES} bytes, received ${byteLength}`);
  const bytes = allocate(byteLength);
  for (let filled = 0; filled < byteLength; ) {
    const bytesRead = readSync(fd, bytes, filled, byteLength - filled, offset + filled);
    if (bytesRead === 0) throw new Error(`expected ${byteLength} bytes, received ${filled}`);
    filled += bytesRead;
  }
  return bytes;
}
