import type { BigIntStats } from "node:fs";
import { type OpenFile, versionOf } from "../../stores/file-calls.js";
import { createStoreFiles } from "../../stores/file-store.js";
import type { ChunkReader, ShardChunks, StoredChunk, StoredSize } from "../../zarr/chunk-reader.js";
import { assertStoredLength } from "../../zarr/plan/max-stored-byte-length.js";
import { findOrConfirmAbsence } from "./confirm-absence.js";
import { createShardFinder } from "./find-in-shards.js";
import type { ByteRange } from "./shard-index.js";

/** Opens a reader of the innermost chunks of shards. */
export function openShardChunkReader(source: ShardChunks, mayBlock: boolean): ChunkReader {
  const files = createStoreFiles(source.root ?? source.directory, mayBlock);
  const finder = createShardFinder(source);

  function shardOf(stat: BigIntStats) {
    return { byteLength: Number(stat.size), version: versionOf(stat) };
  }

  /** Runs `use` on the file of a chunk's shard; undefined if there is no file. */
  async function readShard<T>(
    chunkCoords: readonly number[],
    use: (file: OpenFile, chunk: ByteRange | undefined) => Promise<T>,
    wasChecked?: boolean,
  ): Promise<T | undefined> {
    const place = finder.placeOf(chunkCoords);
    const useChunk = async (file: OpenFile) => {
      const { readBytes } = file;
      return { value: await use(file, await finder.find({ ...shardOf(file.stat), readBytes }, place)) };
    };
    const found = await findOrConfirmAbsence(files.calls, source, place.key, () =>
      files.read(place.path, useChunk, wasChecked),
    );
    return found?.value;
  }

  return {
    source,
    async version(chunkCoords) {
      const place = finder.placeOf(chunkCoords);
      const find = () => files.stat(place.path);
      const stat = await findOrConfirmAbsence(files.calls, source, place.key, find);
      return stat === undefined ? undefined : versionOf(stat);
    },
    versionNow: (chunkCoords, wasChecked) => files.versionNow(finder.placeOf(chunkCoords).path, wasChecked),
    readNow(chunkCoords, options) {
      const place = finder.placeOf(chunkCoords);
      return files.readNow(place.path, ({ stat, readBytes }) => {
        const shard = shardOf(stat);
        const found = finder.findNow(shard, place);
        if (found === undefined || found === "unread") return undefined;
        assertStoredLength(found.byteLength, options?.maxByteLength, shard.version, () => place.key);
        return {
          bytes: readBytes(found.offset, found.byteLength, options?.allocate),
          version: shard.version,
        };
      });
    },
    read(chunkCoords, options) {
      const use = async (file: OpenFile, chunk: ByteRange | undefined): Promise<StoredChunk | undefined> => {
        if (chunk === undefined) return undefined;
        const { offset, byteLength } = chunk;
        const version = versionOf(file.stat);
        assertStoredLength(byteLength, options?.maxByteLength, version, () => finder.labelOf(chunkCoords));
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
