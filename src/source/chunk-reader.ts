import type { ChunkReader, ChunkSource, MemoryChunks, VersionCheck } from "../zarr/chunk-source.js";
import { openFileChunkReader } from "./chunks/file-chunk-reader.js";
import { openShardChunkReader } from "./chunks/shard-chunk-reader.js";

/**
 * A reader of an array's stored chunks. Opens nothing until it is asked; there is nothing to close.
 * @param mayBlock Whether reading may hold up this thread, as it may a worker's. Default false.
 */
export function openChunkReader(source: ChunkSource, mayBlock = false): ChunkReader {
  switch (source.kind) {
    case "files":
      return openFileChunkReader(source, mayBlock);
    case "shards":
      return openShardChunkReader(source, mayBlock);
    case "memory":
      return openMemoryChunkReader(source);
  }
}

/** Shared memory never changes: its identity is in the source's. */
const MEMORY_VERSION = "0";
const unchanging: VersionCheck = Object.freeze({ version: MEMORY_VERSION, isUnchanged: () => true });

function openMemoryChunkReader(source: MemoryChunks): ChunkReader {
  const chunk = Object.freeze({
    bytes: new Uint8Array(source.buffer, source.byteOffset, source.byteLength),
    version: MEMORY_VERSION,
  });
  return {
    version: async () => MEMORY_VERSION,
    versionNow: () => unchanging,
    read: async () => chunk,
    measure: async () => ({ byteLength: source.byteLength, version: MEMORY_VERSION }),
  };
}

/**
 * Returns the place of a source's bytes, as far as one bad place is told from others: most likely one mount. Empty for memory.
 */
export function storeOf(source: ChunkSource): string {
  return source.kind === "memory" ? "" : (source.root ?? source.directory);
}
