import { crc32c } from "../codec/checksums.js";
import { createBoundedMap } from "../collections/bounded-map.js";
import { ZpublishError } from "../errors.js";
import { type MaybePromise, whenDone } from "../event-loop/maybe-promise.js";
import { elementCount } from "../model/data-tree.js";
import type { ObjectRange } from "../stores/byte-store.js";
import type { Allocate, Label } from "../stores/file-calls.js";
import { encodeChunkKey, type ShardChunks, type ShardLevel } from "../zarr/chunk-reader.js";

/** Bound for many small indexes, such as those of shards within shards. */
const MAX_INDEXES = 1024;
const MAX_INDEX_BYTES = 8 * 1024 * 1024;

/** The shard indexes read last in this thread, of all arrays, with their versions. */
const indexes = createBoundedMap<{ readonly version: string; readonly entries: DataView }>({
  maxBytes: MAX_INDEX_BYTES,
  maxEntries: MAX_INDEXES,
  byteLengthOf: ({ entries }) => entries.byteLength,
});

/** Returns an index if it is cached in that version. */
function cachedIndex(key: string, version: string): DataView | undefined {
  const found = indexes.get(key);
  return found?.version === version ? found.entries : undefined;
}

/** A range of bytes in a file. */
export interface StoredRange {
  readonly offset: number;
  readonly byteLength: number;
}

/** The place of an inner chunk in nested shards. */
export interface ShardPlace {
  /** Store key of the shard's file, below its array. */
  readonly key: string;
  readonly path: string;
  /** Position in the shard of each level, in C order; outermost level first. */
  readonly positions: readonly number[];
}

/** The file of a shard, in one version. */
export interface ShardFile {
  readonly byteLength: number;
  readonly version: string;
  /** Reads exactly so many bytes. @param allocate Default: memory of their own. */
  readBytes(offset: number, byteLength: number, allocate?: Allocate): MaybePromise<Uint8Array<ArrayBuffer>>;
}

/** Finds the innermost chunks of an array's shards. Indexes are cached. */
export interface ShardFinder {
  placeOf(chunkCoords: readonly number[]): ShardPlace;
  /**
   * Finds a chunk, at once unless reading an index takes longer; undefined if it is absent.
   * @throws ZpublishError `corrupt-chunk`; what `file.readBytes` throws
   */
  find(file: ShardFile, place: ShardPlace): MaybePromise<StoredRange | undefined>;
  /** Returns the name of a chunk for messages: `shard 'c/0/0': inner chunk 3`. */
  labelOf(chunkCoords: readonly number[]): string;
  /** Place of the outermost index: at the beginning or the end of the file. */
  readonly indexRange: ObjectRange;
}

/** An index that has to be read. */
interface UnreadIndex {
  readonly cacheKey: string;
  readonly shard: Shard;
}

/** Creates the finder of an array's chunks. @param store Name of the store, since paths are cached for all arrays. */
export function createShardFinder(source: ShardChunks, store = ""): ShardFinder {
  const { levels } = source;
  // Metadata may be corrected while shards stay the same; then other bytes of them are the index.
  const layout = JSON.stringify(levels);

  /** Follows the index of every level to one innermost chunk. */
  function follow(
    byteLength: number,
    { key, path, positions }: ShardPlace,
    indexOf: (cacheKey: string) => DataView | undefined,
  ): StoredRange | UnreadIndex | undefined {
    let range: StoredRange = { offset: 0, byteLength };
    for (const [depth, level] of levels.entries()) {
      const shard: Shard = { ...range, level, key, label: () => labelOfLevel({ key, positions }, depth) };
      const cacheKey = depth === 0 ? store + path : `${store}${path} ${depth} ${range.offset}`;
      const entries = indexOf(cacheKey);
      if (entries === undefined) return { cacheKey, shard };
      const chunk = findInShard(entries, positions[depth]!, shard);
      if (chunk === undefined) return undefined;
      range = chunk;
    }
    return range;
  }

  const placeOf = (chunkCoords: readonly number[]) => placeInShard(chunkCoords, source);
  const outermost = levels[0]!;
  const byteLength = indexByteLength(outermost);

  function find(file: ShardFile, place: ShardPlace): MaybePromise<StoredRange | undefined> {
    const version = `${file.version} ${layout}`;
    // Very long indexes are not cached.
    const read = new Map<string, DataView>();
    function findNext(): MaybePromise<StoredRange | undefined> {
      const found = follow(file.byteLength, place, (key) => read.get(key) ?? cachedIndex(key, version));
      if (found === undefined || !("shard" in found)) return found;
      return whenDone(readShardIndex(file, found.shard), (entries) => {
        read.set(found.cacheKey, entries);
        indexes.set(found.cacheKey, { version, entries });
        return findNext();
      });
    }
    return findNext();
  }

  return {
    placeOf,
    indexRange: outermost.indexLocation === "end" ? { last: byteLength } : { offset: 0, byteLength },
    find,
    labelOf(chunkCoords) {
      const place = placeOf(chunkCoords);
      const last = place.positions.length - 1;
      return `${labelOfLevel(place, last)}: inner chunk ${place.positions[last]}`;
    },
  };
}

/** Returns the name of a level's shard for messages: `shard 'c/0/0', inner shard 3`. */
function labelOfLevel({ key, positions }: Pick<ShardPlace, "key" | "positions">, depth: number): string {
  const inner = positions.slice(0, depth).map((position) => `, inner shard ${position}`);
  return `shard '${key}'${inner.join("")}`;
}

function placeInShard(
  chunkCoords: readonly number[],
  { levels, directory, keyEncoding }: ShardChunks,
): ShardPlace {
  const positions = levels.map(() => 0);
  const shardCoords = chunkCoords.map((coordinate, axis) => {
    let rest = coordinate;
    for (let depth = levels.length - 1; depth >= 0; depth--) {
      const perShard = levels[depth]!.chunksPerShard[axis]!;
      positions[depth] = positions[depth]! * perShard + (rest % perShard);
      rest = Math.floor(rest / perShard);
    }
    return rest;
  });
  const key = encodeChunkKey(shardCoords, keyEncoding);
  return { key, path: directory === "" ? key : `${directory}/${key}`, positions };
}

const ENTRY_BYTES = 16;
const CHECKSUM_BYTES = 4;
/** Offset and length of an absent chunk. */
const NO_CHUNK = 2n ** 64n - 1n;

/** One shard: a file, or a chunk of an outer shard. */
interface Shard extends StoredRange {
  readonly level: ShardLevel;
  /** Store key of the file. */
  readonly key: string;
  readonly label: Label;
}

function indexByteLength({ chunksPerShard, indexChecksum }: ShardLevel): number {
  return elementCount(chunksPerShard) * ENTRY_BYTES + (indexChecksum ? CHECKSUM_BYTES : 0);
}

/**
 * Reads a shard's index and verifies its checksum.
 * @returns The entries, without checksum.
 * @throws ZpublishError `corrupt-chunk`
 */
function readShardIndex(file: ShardFile, shard: Shard): MaybePromise<DataView> {
  const { level } = shard;
  const byteLength = indexByteLength(level);
  if (shard.byteLength < byteLength) {
    throw corrupt(
      shard,
      `expected at least the ${byteLength} bytes of its index, received ${shard.byteLength} bytes`,
    );
  }
  const start = level.indexLocation === "start" ? 0 : shard.byteLength - byteLength;
  return whenDone(file.readBytes(shard.offset + start, byteLength), (bytes) => checkedEntries(bytes, shard));
}

function checkedEntries(bytes: Uint8Array, shard: Shard): DataView {
  const { buffer, byteOffset, byteLength } = bytes;
  if (!shard.level.indexChecksum) return new DataView(buffer, byteOffset, byteLength);
  const entries = new DataView(buffer, byteOffset, byteLength - CHECKSUM_BYTES);
  const stored = new DataView(buffer, byteOffset + entries.byteLength).getUint32(0, true);
  const actual = crc32c(bytes.subarray(0, entries.byteLength));
  if (stored === actual) return entries;
  throw corrupt(shard, `expected its index to have crc32c ${stored}, received ${actual}`);
}

/**
 * Finds the place of an inner chunk in the file; undefined if the chunk is absent.
 * @param position Position of the chunk in its shard, in C order.
 * @throws ZpublishError `corrupt-chunk` if the place is outside of the shard.
 */
function findInShard(entries: DataView, position: number, shard: Shard): StoredRange | undefined {
  const little = shard.level.indexByteOrder === "<";
  const offset = entries.getBigUint64(position * ENTRY_BYTES, little);
  const byteLength = entries.getBigUint64(position * ENTRY_BYTES + 8, little);
  if (offset === NO_CHUNK && byteLength === NO_CHUNK) return undefined;
  if (offset + byteLength > BigInt(shard.byteLength)) {
    throw corrupt(
      shard,
      `expected inner chunk ${position} within its ${shard.byteLength} bytes, received offset ${offset} and length ${byteLength}`,
    );
  }
  return { offset: shard.offset + Number(offset), byteLength: Number(byteLength) };
}

function corrupt({ key, label }: Shard, problem: string): ZpublishError {
  return new ZpublishError("corrupt-chunk", `${label()}: ${problem}`, { details: { key } });
}
