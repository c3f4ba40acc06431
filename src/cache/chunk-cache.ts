import type { CacheKey } from "./cache-key.js";

/**
 * Encoded chunks on disk. Every failure inside is a miss and a log line, never a failed request.
 */
export interface ChunkCache {
  /**
   * The chunk kept under `key`, or undefined. The view is valid only until the caller returns to the event loop or
   * calls the cache again: copy what must live longer.
   * @param isAgain Whether it is for a request that has asked before: it is no access, and is not counted. Default false.
   */
  get(key: CacheKey, isAgain?: boolean): Uint8Array | undefined;
  /**
   * Notes that `key` was asked for and missed, and says whether its chunk is worth keeping. Cheap chunks (read, not
   * encoded) are kept from the second request on, costly ones at once, unless the cache is full of more wanted ones.
   */
  admits(key: CacheKey, byteLength: number, cost: "read" | "encode"): boolean;
  /** Keeps a chunk, written in the background. Never throws. */
  put(key: CacheKey, chunk: Uint8Array | LentChunk): void;
  readonly stats: ChunkCacheStats;
  /** Waits for writes under way. */
  close(): Promise<void>;
}

export interface ChunkCacheStats {
  readonly hits: number;
  readonly misses: number;
  /** Chunks written. */
  readonly puts: number;
  /** Chunks given to `put` and not written: the queue was full, or the disk. */
  readonly drops: number;
  readonly evictions: number;
  readonly errors: number;
  /** Bytes that the chunks of all processes sharing the cache take on disk: whole pages, index included. */
  readonly byteLength: number;
  readonly maxBytes: number;
  /** Chunks kept, by all processes that share the cache. */
  readonly entries: number;
  /** Whether every get is a miss now: there is no cache, or it could not be opened, or broke and is not back yet. */
  readonly isOff: boolean;
}

/** A chunk whose memory the cache may use while it writes it, instead of copying it. */
export interface LentChunk {
  /** Must not change until `release`. The 40 bytes before them in their buffer are the cache's. */
  readonly bytes: Uint8Array;
  /** CRC-32 of `bytes` (`crc32` of node:zlib), where it is known. */
  readonly checksum?: number;
  /** Called once when the memory is not needed any more; not at all where writing failed. */
  release(): void;
}

const EMPTY: ChunkCacheStats = Object.freeze({
  hits: 0,
  misses: 0,
  puts: 0,
  drops: 0,
  evictions: 0,
  errors: 0,
  byteLength: 0,
  maxBytes: 0,
  entries: 0,
  isOff: true,
});

/** A cache that keeps nothing: for `--no-cache`, and where no cache can be opened. */
export function createNullCache(): ChunkCache {
  return {
    get: () => undefined,
    admits: () => false,
    put() {},
    stats: EMPTY,
    close: async () => {},
  };
}
