import type { BigIntStats } from "node:fs";
import { encodeChunkKey } from "../../zarr/chunk-key.js";
import type { ChunkReader, ShardChunks, StoredChunk, StoredSize } from "../../zarr/chunk-source.js";
import { assertStoredLength } from "../../zarr/plan/max-stored-byte-length.js";
import { versionOf } from "../files/file-version.js";
import type { OpenFile } from "../files/open-file.js";
import { createStoreFiles } from "../files/store-files.js";
import { findOrConfirmAbsence } from "./confirm-absence.js";
import { type ByteRange, findInShard, readShardIndex, type Shard } from "./shard-index.js";
import { createShardIndexCache } from "./shard-index-cache.js";

const indexes = createShardIndexCache();

/** The place of an inner chunk in nested shards. */
interface ShardPlace {
  /** Store key of the shard's file. */
  readonly key: string;
  readonly path: string;
  /** Position in the shard of each level, in C order; outermost level first. */
  readonly positions: readonly number[];
}

/** An index that has to be read. */
interface UnreadIndex {
  readonly cacheKey: string;
  readonly shard: Shard;
}

/** Opens a reader of the innermost chunks of shards. */
export function openShardChunkReader(source: ShardChunks, mayBlock: boolean): ChunkReader {
  const { levels } = source;
  const files = createStoreFiles(source.root ?? source.directory, mayBlock);
  // Metadata may be corrected while shards stay the same; then other bytes of them are the index.
  const layout = JSON.stringify(levels);

  /**
   * Follows the index of every level to one innermost chunk.
   * @returns Undefined if the chunk is absent; an index if that has to be read first.
   */
  function follow(
    stat: BigIntStats,
    { key, path, positions }: ShardPlace,
    indexOf: (cacheKey: string) => DataView | undefined,
  ): ByteRange | UnreadIndex | undefined {
    let range: ByteRange = { offset: 0, byteLength: Number(stat.size) };
    for (const [depth, level] of levels.entries()) {
      const shard: Shard = { ...range, level, key, label: () => labelOf({ key, positions }, depth) };
      const cacheKey = depth === 0 ? path : `${path} ${depth} ${range.offset}`;
      const entries = indexOf(cacheKey);
      if (entries === undefined) return { cacheKey, shard };
      const chunk = findInShard(entries, positions[depth] as number, shard);
      if (chunk === undefined) return undefined;
      range = chunk;
    }
    return range;
  }

  async function findChunk(file: OpenFile, place: ShardPlace): Promise<ByteRange | undefined> {
    const indexVersion = indexVersionOf(file.stat);
    // Very long indexes are not cached.
    const read = new Map<string, DataView>();
    for (;;) {
      const found = follow(file.stat, place, (key) => read.get(key) ?? indexes.get(key, indexVersion));
      if (found === undefined || !("shard" in found)) return found;
      const entries = await readShardIndex(file, found.shard);
      read.set(found.cacheKey, entries);
      indexes.set(found.cacheKey, indexVersion, entries);
    }
  }

  /** Returns the version under which an index is cached. */
  function indexVersionOf(stat: BigIntStats): string {
    return `${versionOf(stat)} ${layout}`;
  }

  /** Runs `use` on the file of a chunk's shard; undefined if there is no file. */
  async function readShard<T>(
    chunkCoords: readonly number[],
    use: (file: OpenFile, chunk: ByteRange | undefined) => Promise<T>,
    wasChecked?: boolean,
  ): Promise<T | undefined> {
    const place = placeInShard(chunkCoords, source);
    const useChunk = async (file: OpenFile) => ({ value: await use(file, await findChunk(file, place)) });
    const found = await findOrConfirmAbsence(files.calls, source, place.key, () =>
      files.read(place.path, useChunk, wasChecked),
    );
    return found?.value;
  }

  return {
    async version(chunkCoords) {
      const place = placeInShard(chunkCoords, source);
      const find = () => files.stat(place.path);
      const stat = await findOrConfirmAbsence(files.calls, source, place.key, find);
      return stat === undefined ? undefined : versionOf(stat);
    },
    versionNow: (chunkCoords, wasChecked) =>
      files.versionNow(placeInShard(chunkCoords, source).path, wasChecked),
    readNow(chunkCoords, options) {
      const place = placeInShard(chunkCoords, source);
      return files.readNow(place.path, ({ stat, readBytes }) => {
        const indexVersion = indexVersionOf(stat);
        const found = follow(stat, place, (key) => indexes.get(key, indexVersion));
        if (found === undefined || "shard" in found) return undefined;
        const version = versionOf(stat);
        assertStoredLength(found.byteLength, options?.maxByteLength, version, () => place.key);
        return { bytes: readBytes(found.offset, found.byteLength, options?.allocate), version };
      });
    },
    read(chunkCoords, options) {
      const use = async (file: OpenFile, chunk: ByteRange | undefined): Promise<StoredChunk | undefined> => {
        if (chunk === undefined) return undefined;
        const { offset, byteLength } = chunk;
        const version = versionOf(file.stat);
        assertStoredLength(byteLength, options?.maxByteLength, version, () =>
          labelOfChunk(chunkCoords, source),
        );
        return { bytes: await file.readBytes(offset, byteLength, options?.allocate), version };
      };
      return readShard(chunkCoords, use, options?.wasChecked);
    },
    measure(chunkCoords) {
      const use = async (file: OpenFile, chunk: ByteRange | undefined): Promise<StoredSize | undefined> =>
        chunk === undefined ? undefined : { byteLength: chunk.byteLength, version: versionOf(file.stat) };
      return readShard(chunkCoords, use);
    },
  };
}

/** Returns the name of a level's shard for messages: `shard 'c/0/0', inner shard 3`. */
function labelOf({ key, positions }: Pick<ShardPlace, "key" | "positions">, depth: number): string {
  const inner = positions.slice(0, depth).map((position) => `, inner shard ${position}`);
  return `shard '${key}'${inner.join("")}`;
}

function labelOfChunk(chunkCoords: readonly number[], source: ShardChunks): string {
  const place = placeInShard(chunkCoords, source);
  const last = place.positions.length - 1;
  return `${labelOf(place, last)}: inner chunk ${place.positions[last]}`;
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
  return { key, path: `${directory}/${key}`, positions };
}
