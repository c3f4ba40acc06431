import { hash } from "node:crypto";

/** Length of every key. */
export const CACHE_KEY_BYTES = 20;

/** The key of a chunk, in two forms. */
export interface CacheKey {
  /** {@link CACHE_KEY_BYTES} bytes; must not be changed. */
  readonly bytes: Uint8Array;
  /** The same bytes as latin1, for a Map or Set. */
  readonly id: string;
}

/**
 * Makes the key of a chunk: the first 20 bytes of a SHA-256. So keys have one length (lmdb crashes after refusing long
 * ones), and any run of neighbouring keys is a random sample, which eviction relies on.
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
