import { type BigIntStats, constants, fstat, fstatSync, read, readSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { type FileCalls, NoAnswerError } from "./file-calls.js";
import { isSameVersion, remainingSettleMs } from "./file-version.js";
import { assertFile, type Label, unreadable } from "./unreadable-file.js";

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
  readBytes(offset: number, byteLength: number, allocate?: Allocate): Promise<Uint8Array<ArrayBuffer>>;
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
  use: (file: OpenFile) => Promise<T>,
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
