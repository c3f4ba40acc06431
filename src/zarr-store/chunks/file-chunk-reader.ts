import { type OpenFile, versionOf } from "../../stores/file-calls.js";
import { createStoreFiles } from "../../stores/file-store.js";
import {
  type ChunkReader,
  encodeChunkKey,
  type FileChunks,
  type StoredChunk,
} from "../../zarr/chunk-reader.js";
import { assertStoredLength } from "../../zarr/plan/max-stored-byte-length.js";
import { findOrConfirmAbsence } from "./confirm-absence.js";

/** Opens a reader of chunks that are one file each. */
export function openFileChunkReader(source: FileChunks, mayBlock: boolean): ChunkReader {
  const files = createStoreFiles(source.root ?? source.directory, mayBlock);

  function statChunk(chunkCoords: readonly number[]) {
    const key = encodeChunkKey(chunkCoords, source.keyEncoding);
    const path = `${source.directory}/${key}`;
    return findOrConfirmAbsence(files.calls, source, key, () => files.stat(path));
  }

  return {
    source,
    async version(chunkCoords) {
      const stat = await statChunk(chunkCoords);
      return stat === undefined ? undefined : versionOf(stat);
    },
    versionNow: (chunkCoords, wasChecked) =>
      files.versionNow(`${source.directory}/${encodeChunkKey(chunkCoords, source.keyEncoding)}`, wasChecked),
    readNow(chunkCoords, options) {
      const path = `${source.directory}/${encodeChunkKey(chunkCoords, source.keyEncoding)}`;
      return files.readNow(path, (file) => {
        const byteLength = Number(file.stat.size);
        const version = versionOf(file.stat);
        assertStoredLength(byteLength, options?.maxByteLength, version, () => "chunk");
        const part = options?.part?.(byteLength);
        if (part === undefined) return { bytes: file.readBytes(0, byteLength, options?.allocate), version };
        return { bytes: file.readBytes(part.start, part.byteLength), version, fileByteLength: byteLength };
      });
    },
    read(chunkCoords, options) {
      const key = encodeChunkKey(chunkCoords, source.keyEncoding);
      const use = async (file: OpenFile): Promise<StoredChunk> => {
        const byteLength = Number(file.stat.size);
        const version = versionOf(file.stat);
        assertStoredLength(byteLength, options?.maxByteLength, version, () => `chunk '${key}'`);
        const part = options?.part?.(byteLength);
        if (part === undefined)
          return { bytes: await file.readBytes(0, byteLength, options?.allocate), version };
        const bytes = await file.readBytes(part.start, part.byteLength);
        return { bytes, version, fileByteLength: byteLength };
      };
      const path = `${source.directory}/${key}`;
      return findOrConfirmAbsence(files.calls, source, key, () => files.read(path, use, options?.wasChecked));
    },
    async measure(chunkCoords) {
      const stat = await statChunk(chunkCoords);
      return stat === undefined ? undefined : { byteLength: Number(stat.size), version: versionOf(stat) };
    },
  };
}
