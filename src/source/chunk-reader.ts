import type { ChunkReader, ChunkSource, MemoryChunks, VersionCheck } from "../zarr/chunk-source.js";
import { openFileChunkReader } from "./chunks/file-chunk-reader.js";
import { openShardChunkReader } from "./chunks/shard-chunk-reader.js";

/**
 * Opens a reader of an array's stored chunks. It does no I/O before its first call, and need not be closed.
 * @param mayBlock Whether reads may block this thread, such as a worker's. Default false.
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

/** Version of all shared memory, which never changes. The source's identity tells one memory from another. */
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

/** Returns the directory of a source's store, most likely one mount, so that callers can bound reads per store; empty for memory. */
export function storeOf(source: ChunkSource): string {
  return source.kind === "memory" ? "" : (source.root ?? source.directory);
}
