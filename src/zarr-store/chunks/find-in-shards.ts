import { createBoundedMap } from "../../collections/bounded-map.js";
import { elementCount } from "../../model/data-tree.js";
import { encodeChunkKey, type ShardChunks } from "../../zarr/chunk-reader.js";
import { type ByteRange, findInShard, indexByteLength, readShardIndex, type Shard } from "./shard-index.js";

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
  readBytes(
    offset: number,
    byteLength: number,
    allocate?: (byteLength: number) => Uint8Array<ArrayBuffer>,
  ): Promise<Uint8Array<ArrayBuffer>>;
}

/** Finds the innermost chunks of an array's shards. Indexes are cached. */
export interface ShardFinder {
  placeOf(chunkCoords: readonly number[]): ShardPlace;
  /**
   * Finds a chunk with cached indexes.
   * @returns Undefined if the chunk is absent; `"unread"` if an index has to be read.
   * @throws ZpublishError `corrupt-chunk`
   */
  findNow(file: Omit<ShardFile, "readBytes">, place: ShardPlace): ByteRange | "unread" | undefined;
  /** Finds a chunk; undefined if it is absent. @throws ZpublishError `corrupt-chunk`; what `file.readBytes` throws */
  find(file: ShardFile, place: ShardPlace): Promise<ByteRange | undefined>;
  /** Returns the name of a chunk for messages: `shard 'c/0/0': inner chunk 3`. */
  labelOf(chunkCoords: readonly number[]): string;
  /** Place of the outermost index: at the beginning or the end of the file. */
  readonly outerIndex: { readonly location: "start" | "end"; readonly byteLength: number };
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

  function versionOfIndex({ version }: { readonly version: string }): string {
    return `${version} ${layout}`;
  }

  /** Follows the index of every level to one innermost chunk. */
  function follow(
    byteLength: number,
    { key, path, positions }: ShardPlace,
    indexOf: (cacheKey: string) => DataView | undefined,
  ): ByteRange | UnreadIndex | undefined {
    let range: ByteRange = { offset: 0, byteLength };
    for (const [depth, level] of levels.entries()) {
      const shard: Shard = { ...range, level, key, label: () => labelOfLevel({ key, positions }, depth) };
      const cacheKey = depth === 0 ? store + path : `${store}${path} ${depth} ${range.offset}`;
      const entries = indexOf(cacheKey);
      if (entries === undefined) return { cacheKey, shard };
      const chunk = findInShard(entries, positions[depth] as number, shard);
      if (chunk === undefined) return undefined;
      range = chunk;
    }
    return range;
  }

  const placeOf = (chunkCoords: readonly number[]) => placeInShard(chunkCoords, source);
  const outermost = levels[0]!;
  return {
    placeOf,
    outerIndex: {
      location: outermost.indexLocation,
      byteLength: indexByteLength(outermost, elementCount(outermost.chunksPerShard)),
    },
    findNow(file, place) {
      const version = versionOfIndex(file);
      const found = follow(file.byteLength, place, (key) => cachedIndex(key, version));
      return found !== undefined && "shard" in found ? "unread" : found;
    },
    async find(file, place) {
      const version = versionOfIndex(file);
      // Very long indexes are not cached.
      const read = new Map<string, DataView>();
      for (;;) {
        const found = follow(file.byteLength, place, (key) => read.get(key) ?? cachedIndex(key, version));
        if (found === undefined || !("shard" in found)) return found;
        const entries = await readShardIndex(file, found.shard);
        read.set(found.cacheKey, entries);
        indexes.set(found.cacheKey, { version, entries });
      }
    },
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
      const perShard = levels[depth]?.chunksPerShard[axis] as number;
      positions[depth] = (positions[depth] as number) * perShard + (rest % perShard);
      rest = Math.floor(rest / perShard);
    }
    return rest;
  });
  const key = encodeChunkKey(shardCoords, keyEncoding);
  return { key, path: directory === "" ? key : `${directory}/${key}`, positions };
}
