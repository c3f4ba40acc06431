import { hash } from "node:crypto";

/** Encoded chunks on disk. A failure of the cache is a miss and a log line, never a failed request. */
export interface ChunkCache {
  /**
   * Returns the chunk cached under `key`, undefined if there is none. The view is valid until the caller returns to the event
   * loop or calls the cache again.
   * @param isAgain True if the same request has read the chunk before: that is no access, and is not counted. Default false.
   */
  get(key: CacheKey, isAgain?: boolean): Uint8Array | undefined;
  /**
   * Records a miss of `key`, and tells if its chunk is worth caching. Encoded chunks are cached
   * at once, chunks that are only read from the second request on. A full cache only takes chunks with higher scores.
   */
  admits(key: CacheKey, byteLength: number, cost: "read" | "encode"): boolean;
  /** Caches a chunk, which is written in the background. Never throws. */
  put(key: CacheKey, chunk: Uint8Array | ReleasableChunk): void;
  /** Returns the length of the chunk cached under `key` without reading it, undefined if there is none. That is no access. */
  byteLengthOf(key: CacheKey): number | undefined;
  /**
   * Caches a chunk whatever its score, as soon as those before it are written. Resolves when it is written, to false if it could
   * not be: it is too large, the disk is full, or the cache is off. Never rejects.
   */
  putAndWait(key: CacheKey, chunk: Uint8Array | ReleasableChunk): Promise<boolean>;
  readonly stats: ChunkCacheStats;
  /** Waits for writes under way. */
  close(): Promise<void>;
}

/** Counts since the cache was opened, and its size now. */
export interface ChunkCacheStats {
  readonly hits: number;
  readonly misses: number;
  /** Chunks written. */
  readonly puts: number;
  /** Chunks given to `put` and not written, because the queue or the disk was full, or writing failed. */
  readonly drops: number;
  readonly evictions: number;
  readonly errors: number;
  /** Bytes on disk of the chunks of all processes that share the cache: whole pages, index included. */
  readonly byteLength: number;
  readonly maxBytes: number;
  /** Cached chunks of all processes that share the cache. */
  readonly entries: number;
  /** True while every get is a miss: there is no cache, it could not be opened, or it broke and is not open again yet. */
  readonly isOff: boolean;
  /** True from a failed write, as on a full disk, until chunks are written again. Those that are cached are still found. */
  readonly isWriteFailing: boolean;
}

/** A chunk that the cache writes from the caller's memory, without a copy. */
export interface ReleasableChunk {
  /** Must not change until `release`. The cache also uses the 40 bytes before them in their buffer. */
  readonly bytes: Uint8Array;
  /** CRC-32 of `bytes` (`crc32` of node:zlib), if known. */
  readonly checksum?: number;
  /** Called once when the cache is done with the memory; never if writing failed. */
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
  isWriteFailing: false,
});

/** Creates a cache without chunks, for `--no-cache` and if no cache can be opened. */
export function createNullCache(): ChunkCache {
  return {
    get: () => undefined,
    admits: () => false,
    put() {},
    byteLengthOf: () => undefined,
    putAndWait: async () => false,
    stats: EMPTY,
    close: async () => {},
  };
}

/** Length of every key. */
export const CACHE_KEY_BYTES = 20;

/** The key of a chunk, in two forms. */
export interface CacheKey {
  /** {@link CACHE_KEY_BYTES} bytes; must not be changed. */
  readonly bytes: Uint8Array;
  /** The same bytes as latin1, for a Map or Set. */
  readonly id: string;
  /** What a store has found for this object; the store's own. */
  known?: KnownValue | undefined;
}

/** A value of a store that is read in place, while it stays the same. */
export interface KnownValue {
  /** The reader that found it. */
  readonly reader: object;
  /** LMDB's number of the leaf page that leads to it. */
  readonly ifNotTxnId: number;
  reads: number;
  /** The whole stored value in LMDB's map. */
  view: Uint8Array | undefined;
  /** The chunk in `view`, once its checksum is verified. */
  payload: Uint8Array | undefined;
}

/**
 * Makes the key of a chunk: the first 20 bytes of a SHA-256. Keys have one length, since lmdb crashes after it refuses long ones, and
 * neighbouring keys are a random sample, which eviction relies on.
 * @param parts All that decides the bytes, unambiguously joined: `revision\0encoding\0path\0chunk key`.
 */
export function cacheKeyOf(parts: string): CacheKey {
  const id = hash("sha256", parts, "binary").slice(0, CACHE_KEY_BYTES);
  // Allocated from Buffer's pool: separate memory would cost more than the key.
  return { bytes: keyOfId(id), id };
}

/** Converts a key to its {@link CacheKey.id}. */
export function idOf(key: Uint8Array): string {
  return Buffer.prototype.latin1Slice.call(key, 0, key.length);
}

/** Converts the id of a key to its bytes. */
export function keyOfId(id: string): Buffer {
  return Buffer.from(id, "latin1");
}
