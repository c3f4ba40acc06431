import { encodeChunkKey } from "../zarr/chunk-key.js";
import type { ChunkReader, ShardChunks, StoredChunk, StoredSize } from "./chunk-source.js";
import { findOrConfirmAbsence } from "./confirm-absence.js";
import { refuseLonger } from "./max-stored-byte-length.js";
import type { OpenFile } from "./open-file.js";
import { readShardIndex, type ShardEntry, shardEntry } from "./shard-index.js";
import { createShardIndexCache } from "./shard-index-cache.js";
import { stampOf } from "./stamp-of.js";
import { createStoreFiles } from "./store-files.js";
import { readDirectories } from "./verified-directories.js";

const indexes = createShardIndexCache();

interface ShardPlace {
  readonly key: string;
  readonly path: string;
  /** Of the inner chunk in its shard, in C order. */
  readonly position: number;
}

/** A reader of the inner chunks of shards. */
export function openShardChunkReader(source: ShardChunks, mayBlock: boolean): ChunkReader {
  const files = createStoreFiles(source.root ?? source.directory, mayBlock, readDirectories);
  // Metadata may be corrected while shards stay: other bytes of them are the index then.
  const layout = [source.indexLocation, source.indexChecksum, ...source.chunksPerShard].join(" ");

  async function entryOf(file: OpenFile, place: ShardPlace): Promise<ShardEntry | undefined> {
    const stamp = `${stampOf(file.stat)} ${layout}`;
    let entries = indexes.get(place.path, stamp);
    if (entries === undefined) {
      entries = await readShardIndex(file, source, place.key);
      indexes.set(place.path, stamp, entries);
    }
    return shardEntry(entries, place.position, source, Number(file.stat.size), place.key);
  }

  /** Runs `use` on the shard of a chunk; undefined where there is none. */
  async function readShard<T>(
    chunkCoords: readonly number[],
    use: (file: OpenFile, entry: ShardEntry | undefined) => Promise<T>,
    wasLookedAt?: boolean,
  ): Promise<T | undefined> {
    const place = placeInShard(chunkCoords, source);
    const useEntry = async (file: OpenFile) => ({ value: await use(file, await entryOf(file, place)) });
    const found = await findOrConfirmAbsence(files.calls, source, place.key, () =>
      files.read(place.path, useEntry, wasLookedAt),
    );
    return found?.value;
  }

  return {
    async stamp(chunkCoords) {
      const place = placeInShard(chunkCoords, source);
      const look = () => files.stat(place.path);
      const stat = await findOrConfirmAbsence(files.calls, source, place.key, look);
      return stat === undefined ? undefined : stampOf(stat);
    },
    lookNow: (chunkCoords) => files.lookNow(placeInShard(chunkCoords, source).path),
    read(chunkCoords, options) {
      const use = async (file: OpenFile, entry: ShardEntry | undefined): Promise<StoredChunk | undefined> => {
        if (entry === undefined) return undefined;
        const { offset, byteLength } = entry;
        const stamp = stampOf(file.stat);
        refuseLonger(byteLength, options?.maxByteLength, stamp, () => labelInShard(chunkCoords, source));
        return { bytes: await file.readBytes(offset, byteLength, options?.allocate), stamp };
      };
      return readShard(chunkCoords, use, options?.wasLookedAt);
    },
    measure(chunkCoords) {
      const use = async (file: OpenFile, entry: ShardEntry | undefined): Promise<StoredSize | undefined> =>
        entry === undefined ? undefined : { byteLength: entry.byteLength, stamp: stampOf(file.stat) };
      return readShard(chunkCoords, use);
    },
  };
}

function labelInShard(chunkCoords: readonly number[], source: ShardChunks): string {
  const { key, position } = placeInShard(chunkCoords, source);
  return `shard '${key}': inner chunk ${position}`;
}

function placeInShard(chunkCoords: readonly number[], source: ShardChunks): ShardPlace {
  const shardCoords: number[] = [];
  let position = 0;
  for (let axis = 0; axis < chunkCoords.length; axis++) {
    const perShard = source.chunksPerShard[axis] as number;
    const coordinate = chunkCoords[axis] as number;
    shardCoords.push(Math.floor(coordinate / perShard));
    position = position * perShard + (coordinate % perShard);
  }
  const key = encodeChunkKey(shardCoords, source.keyEncoding);
  return { key, path: `${source.directory}/${key}`, position };
}
