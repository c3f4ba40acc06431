import { hash } from "node:crypto";

/** Bytes of every key of the cache. */
export const CACHE_KEY_BYTES = 20;

/** The key of a chunk, in the two forms in which it is needed. */
export interface CacheKey {
  /** {@link CACHE_KEY_BYTES}; must not be changed. */
  readonly bytes: Uint8Array;
  /** The same bytes as latin1, for a Map or Set. */
  readonly id: string;
}

/**
 * The key under which a chunk is kept: the first 20 bytes of a SHA-256, so that keys have one length (lmdb crashes
 * after refusing long ones) and any run of neighbouring keys is a random sample, which eviction relies on.
 * @param parts All that decides the bytes, unambiguously joined: `revision\0encoding\0path\0chunk key`.
 */
export function cacheKeyOf(parts: string): CacheKey {
  const id = hash("sha256", parts, "binary").slice(0, CACHE_KEY_BYTES);
  // From Buffer's pool: memory of its own for each would cost more than the key.
  return { bytes: keyOfId(id), id };
}

/** A key as something a Map or Set can hold. */
export function idOf(key: Uint8Array): string {
  return Buffer.prototype.latin1Slice.call(key, 0, key.length);
}

/** The opposite of {@link idOf}. */
export function keyOfId(id: string): Buffer {
  return Buffer.from(id, "latin1");
}
