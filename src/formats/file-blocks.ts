import { createBoundedMap } from "../collections/bounded-map.js";
import { ZpublishError } from "../errors.js";
import { createSlice } from "../event-loop/cooperative-task.js";
import type { FileBlocks } from "./file-format.js";
import type { VersionedFile } from "./versioned-file.js";

/** Blocks of files behind a network: a request takes as long as about a mebibyte. */
const REMOTE_BLOCK_BYTES = 2 ** 20;
/** Blocks of local files: long enough that opening the file is the smaller part. */
const LOCAL_BLOCK_BYTES = 128 * 1024;
/** Blocks that are read with one request if the blocks before them were read. */
const MAX_AHEAD = 4;
/** Longer reads go past the cache, which they would empty. */
const MAX_CACHED_READ_BYTES = 8 * 2 ** 20;
/** Bound of the blocks of all files together: indexes are read once, a few at a time. */
const MAX_CACHED_BYTES = 64 * 2 ** 20;

const cached = createBoundedMap<Uint8Array>({
  maxBytes: MAX_CACHED_BYTES,
  byteLengthOf: (block) => block.length,
});
let created = 0;

/**
 * Creates the blocks of a file, none of which is read yet.
 * @param head First bytes of the file in that version, if they are known.
 */
export function createFileBlocks(file: VersionedFile, head?: Uint8Array): FileBlocks {
  const { name, byteLength } = file;
  const blockBytes = file.local ? LOCAL_BLOCK_BYTES : REMOTE_BLOCK_BYTES;
  const prefix = `${++created}\n`;
  const pending = new Map<number, Promise<Uint8Array>>();
  const slice = createSlice();
  /** The block behind those that were read last, and how many are read if it is next. */
  let next = -1;
  let ahead = 1;

  if (head !== undefined) {
    for (let at = 0; at + blockBytes <= head.length || (at < head.length && head.length === byteLength); ) {
      cached.set(prefix + at / blockBytes, head.subarray(at, at + blockBytes));
      at += blockBytes;
    }
  }

  function isInside(offset: number, length: number): boolean {
    const isRange =
      Number.isSafeInteger(offset) && Number.isSafeInteger(length) && offset >= 0 && length >= 0;
    return isRange && offset + length <= byteLength;
  }

  function assertInside(offset: number, length: number): void {
    if (isInside(offset, length)) return;
    throw new ZpublishError(
      "invalid-metadata",
      `'${name}': expected bytes within the ${byteLength} of the file, received ${length} from ${offset} on`,
    );
  }

  /** Starts reading blocks that are neither cached nor under way, in one piece. */
  function fetch(first: number, count: number): void {
    const begin = first * blockBytes;
    const end = Math.min((first + count) * blockBytes, byteLength);
    const reading = Promise.resolve(file.read(begin, end - begin));
    for (let block = first; block < first + count; block++) {
      const at = block * blockBytes - begin;
      const one = reading.then((bytes) => bytes.subarray(at, at + blockBytes));
      pending.set(block, one);
      one
        .then((bytes) => cached.set(prefix + block, bytes))
        // Those who read the block get the error.
        .catch(() => undefined)
        .finally(() => pending.delete(block));
    }
    next = first + count;
  }

  function isMissing(block: number): boolean {
    return block * blockBytes < byteLength && !pending.has(block) && cached.get(prefix + block) === undefined;
  }

  /** Returns the blocks from one to another, and reads those that are missing, some more if blocks are read in order. */
  async function blocksOf(first: number, last: number): Promise<Uint8Array[]> {
    for (let block = first; block <= last; block++) {
      if (!isMissing(block)) continue;
      ahead = block === next ? Math.min(2 * ahead, MAX_AHEAD) : 1;
      const wanted = Math.max(block + ahead, last + 1);
      let end = block + 1;
      while (end < wanted && isMissing(end)) end++;
      fetch(block, end - block);
    }
    const found: (Uint8Array | Promise<Uint8Array>)[] = [];
    for (let block = first; block <= last; block++)
      found.push(pending.get(block) ?? (cached.get(prefix + block) as Uint8Array));
    return Promise.all(found);
  }

  function readNow(offset: number, length: number): Uint8Array | undefined {
    if (!isInside(offset, length) || length > MAX_CACHED_READ_BYTES) return undefined;
    const first = Math.floor(offset / blockBytes);
    const blocks: Uint8Array[] = [];
    for (let block = first; blocks.length === 0 || block * blockBytes < offset + length; block++) {
      const found = cached.get(prefix + block);
      if (found === undefined) return undefined;
      blocks.push(found);
    }
    return joined(blocks, offset - first * blockBytes, length);
  }

  async function readOnce(offset: number, length: number): Promise<Uint8Array<ArrayBuffer>> {
    assertInside(offset, length);
    // Reads of local files wait for nothing, and a chunk may take thousands of them.
    if (slice.isOver()) await slice.next();
    return length === 0 ? new Uint8Array(0) : file.read(offset, length);
  }

  return {
    name,
    byteLength,
    readNow,
    readOnce,
    async read(offset, length) {
      // Readers of metadata take many small steps, each of which may be in memory.
      if (slice.isOver()) await slice.next();
      const now = readNow(offset, length);
      if (now !== undefined) return now;
      assertInside(offset, length);
      if (length === 0) return new Uint8Array(0);
      if (length > MAX_CACHED_READ_BYTES) return file.read(offset, length);
      const first = Math.floor(offset / blockBytes);
      const blocks = await blocksOf(first, Math.floor((offset + length - 1) / blockBytes));
      return joined(blocks, offset - first * blockBytes, length);
    },
  };
}

/** Returns bytes of neighbouring blocks: a view if they are in one, else a copy. */
function joined(blocks: readonly Uint8Array[], at: number, length: number): Uint8Array {
  const first = blocks[0] as Uint8Array;
  if (blocks.length === 1) return first.subarray(at, at + length);
  const bytes = new Uint8Array(length);
  let filled = 0;
  for (const block of blocks) {
    const from = filled === 0 ? at : 0;
    const part = block.subarray(from, Math.min(block.length, from + length - filled));
    bytes.set(part, filled);
    filled += part.length;
  }
  return bytes;
}
