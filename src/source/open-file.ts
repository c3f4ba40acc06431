import { type BigIntStats, close, closeSync, fstat, fstatSync, read, readSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { remainingSettleMs } from "./settle-time.js";
import { type Label, requireFile, unreadable } from "./unreadable-file.js";

// Descriptors rather than FileHandles: half the time per read, and nothing left to the garbage collector.
const closeAsync = promisify(close);
const readAsync = promisify(read);
const fstatAsync = promisify(fstat) as (fd: number, options: { bigint: true }) => Promise<BigIntStats>;

/** Gives memory of at least, and a view of exactly, so many bytes. */
export type Allocate = (byteLength: number) => Uint8Array<ArrayBuffer>;

/** A file that is open for reading. */
export interface OpenFile {
  readonly stat: BigIntStats;
  /** Reads exactly `byteLength` bytes into what `allocate` gives. Default: memory of their own. */
  readBytes(offset: number, byteLength: number, allocate?: Allocate): Promise<Uint8Array<ArrayBuffer>>;
}

/** A file turned out shorter than it said: somebody writes it. */
class FileChanged extends Error {}

/** Of an open file of a local file system, all that is asked for is in memory: it is not worth another thread. */
function statOpen(fd: number, isLocal: boolean): BigIntStats | Promise<BigIntStats> {
  return isLocal ? fstatSync(fd, { bigint: true }) : fstatAsync(fd, { bigint: true });
}

/** Closes what was only read from: nothing can be lost. */
export async function closeQuietly(fd: number, isLocal: boolean): Promise<void> {
  try {
    if (isLocal) closeSync(fd);
    else await closeAsync(fd);
  } catch {
    // Nothing to be done about it.
  }
}

/**
 * Runs `use` on an open file.
 * @param isLocal Whether its file system is this machine's own.
 * @param blockingDevice This thread may wait for files of this device (`st_dev`); a link may lead to another.
 * @returns Undefined where the file changed meanwhile.
 * @throws ZpublishError `source-unreadable`, system errors, and what `use` throws of an unchanged file.
 */
export async function useUnchanged<T>(
  fd: number,
  label: Label,
  use: (file: OpenFile) => Promise<T>,
  isLocal: boolean,
  blockingDevice?: bigint,
): Promise<{ readonly value: T } | undefined> {
  let stat = await statOpen(fd, isLocal);
  requireFile(stat, label);
  const wait = remainingSettleMs(stat);
  if (wait > 0) {
    await sleep(wait);
    stat = await statOpen(fd, isLocal);
  }
  const readSome = stat.dev === blockingDevice ? readSync : readLater;
  const file: OpenFile = {
    stat,
    readBytes: (offset, byteLength, allocate) => readBytes(fd, readSome, offset, byteLength, label, allocate),
  };
  try {
    const value = await use(file);
    return isSame(stat, await statOpen(fd, isLocal)) ? { value } : undefined;
  } catch (error) {
    if (error instanceof FileChanged) return undefined;
    // What looks corrupt may be half of an old file and half of a new one.
    if (!isSame(stat, await statOpen(fd, isLocal))) return undefined;
    throw error;
  }
}

/** Not from Buffer's pool: the caller may move the memory to another thread. */
function allocateOwn(byteLength: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.allocUnsafeSlow(byteLength).buffer as ArrayBuffer, 0, byteLength);
}

type ReadSome = (
  fd: number,
  bytes: Uint8Array,
  begin: number,
  byteLength: number,
  offset: number,
) => number | Promise<number>;

const readLater: ReadSome = async (fd, bytes, begin, byteLength, offset) =>
  (await readAsync(fd, bytes, begin, byteLength, offset)).bytesRead;

async function readBytes(
  fd: number,
  readSome: ReadSome,
  offset: number,
  byteLength: number,
  label: Label,
  allocate: Allocate = allocateOwn,
): Promise<Uint8Array<ArrayBuffer>> {
  if (byteLength > 0x7fffffff)
    throw unreadable(label, `has ${byteLength} bytes, more than one read can take`);
  const bytes = allocate(byteLength);
  let filled = 0;
  while (filled < byteLength) {
    const bytesRead = await readSome(fd, bytes, filled, byteLength - filled, offset + filled);
    if (bytesRead === 0) throw new FileChanged();
    filled += bytesRead;
  }
  return bytes;
}

function isSame(a: BigIntStats, b: BigIntStats): boolean {
  return a.mtimeNs === b.mtimeNs && a.size === b.size;
}
