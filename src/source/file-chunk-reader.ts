import { encodeChunkKey } from "../zarr/chunk-key.js";
import type { ChunkReader, FileChunks, StoredChunk } from "./chunk-source.js";
import { findOrConfirmAbsence } from "./confirm-absence.js";
import type { OpenFile } from "./open-file.js";
import { stampOf } from "./stamp-of.js";
import { createStoreFiles } from "./store-files.js";

/** A reader of chunks that are one file each. */
export function openFileChunkReader(source: FileChunks, mayBlock: boolean): ChunkReader {
  const files = createStoreFiles(source.root ?? source.directory, mayBlock);

  function statChunk(chunkCoords: readonly number[]) {
    const key = encodeChunkKey(chunkCoords, source.keyEncoding);
    const path = `${source.directory}/${key}`;
    return findOrConfirmAbsence(files.calls, source, key, () => files.stat(path));
  }

  return {
    async stamp(chunkCoords) {
      const stat = await statChunk(chunkCoords);
      return stat === undefined ? undefined : stampOf(stat);
    },
    lookNow: (chunkCoords) =>
      files.lookNow(`${source.directory}/${encodeChunkKey(chunkCoords, source.keyEncoding)}`),
    read(chunkCoords, options) {
      const key = encodeChunkKey(chunkCoords, source.keyEncoding);
      const use = async (file: OpenFile): Promise<StoredChunk> => ({
        bytes: await file.readBytes(0, Number(file.stat.size), options?.allocate),
        stamp: stampOf(file.stat),
      });
      const path = `${source.directory}/${key}`;
      return findOrConfirmAbsence(files.calls, source, key, () =>
        files.read(path, use, options?.wasLookedAt),
      );
    },
    async measure(chunkCoords) {
      const stat = await statChunk(chunkCoords);
      return stat === undefined ? undefined : { byteLength: Number(stat.size), stamp: stampOf(stat) };
    },
  };
}
