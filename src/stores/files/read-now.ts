import { type BigIntStats, closeSync, fstatSync, openSync, readSync } from "node:fs";
import { MAX_DIRECT_BYTES } from "./direct-reads.js";
import { isSameVersion, remainingSettleMs } from "./file-version.js";
import { type Allocate, allocateOwn, OPEN_FLAGS } from "./open-file.js";

/** A file that is open for reading by this thread itself. */
export interface FileNow {
  readonly stat: BigIntStats;
  /** Reads exactly `byteLength` bytes into memory from `allocate`. @throws Error if there are fewer. */
  readBytes(offset: number, byteLength: number, allocate?: Allocate): Uint8Array<ArrayBuffer>;
}

const BIG_INTEGERS = { bigint: true } as const;

/**
 * Runs `use` on a file of a local file system without another thread. With one, which has to wake up, a read of 590 KB from
 * memory takes five times as long.
 * @param device `st_dev` that the file must have.
 * @returns Undefined if `StoreFiles.read` has to read the file, because anything is unusual: it is missing, a link, fresh,
 * unreadable, changed meanwhile, or `use` threw.
 */
export function useNow<T>(path: string, device: bigint, use: (file: FileNow) => T): T | undefined {
  let fd: number | undefined;
  try {
    fd = openSync(path, OPEN_FLAGS);
    const stat = fstatSync(fd, BIG_INTEGERS);
    if (!stat.isFile() || stat.dev !== device || remainingSettleMs(stat) > 0) return undefined;
    const value = use({ stat, readBytes: readBytes.bind(undefined, fd) });
    return isSameVersion(stat, fstatSync(fd, BIG_INTEGERS)) ? value : undefined;
  } catch {
    return undefined;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

function readBytes(
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
