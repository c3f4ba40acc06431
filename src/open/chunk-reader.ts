import type { ChunkReader, ChunkSource, MemoryChunks, StoredVersion } from "../zarr/chunk-reader.js";
import { openLocalChunkReader } from "../zarr-store/chunk-reader.js";

/**
 * Opens a reader of an array's stored chunks. It does no I/O before its first call, and need not be closed.
 * @param mayBlock Whether reads may block this thread, such as a worker's. Default false.
 */
export function openChunkReader(source: ChunkSource, mayBlock = false): ChunkReader {
  switch (source.kind) {
    case "given":
      throw new Error("expected a source that can be opened, received chunks that a task has");
    case "files":
    case "shards":
      return source.objects?.openReader(source) ?? openLocalChunkReader(source, mayBlock);
    case "ranges":
    case "served":
    case "parts":
      return source.openReader();
    case "memory":
      return openMemoryChunkReader(source);
  }
}

/** Version of all shared memory, which never changes. The source's identity tells one memory from another. */
const MEMORY_VERSION = "0";
const unchanging: StoredVersion = Object.freeze({ token: MEMORY_VERSION, isUnchanged: () => true });

function openMemoryChunkReader(source: MemoryChunks): ChunkReader {
  const chunk = Object.freeze({
    bytes: new Uint8Array(source.buffer, source.byteOffset, source.byteLength),
    version: MEMORY_VERSION,
  });
  return { source, version: () => unchanging, read: () => chunk };
}

/** Returns the name of a source's store, such as its directory, so that callers can bound reads per store; empty for memory. */
export function storeOf(source: ChunkSource): string {
  if (source.kind === "memory" || source.kind === "given") return "";
  if (source.kind === "ranges" || source.kind === "served" || source.kind === "parts") return source.store;
  return source.objects?.store ?? source.root ?? source.directory;
}

/**
 * Tells whether the server's thread reads chunks for workers, since they are elsewhere or have to be made, or since it has the index
 * that finds them.
 */
export function isReadForWorkers(source: ChunkSource): boolean {
  if (source.kind === "ranges" || source.kind === "served" || source.kind === "parts") return true;
  return (source.kind === "files" || source.kind === "shards") && source.objects !== undefined;
}
