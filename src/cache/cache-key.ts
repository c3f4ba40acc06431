import { hash } from "node:crypto";

/** Bytes of every key of the cache. */
export const CACHE_KEY_BYTES = 20;

/**
 * The key under which a chunk is kept: the first 20 bytes of a SHA-256, so that keys have one length (lmdb crashes
 * after refusing long ones) and any run of neighbouring keys is a random sample, which eviction relies on.
 * @param parts All that decides the bytes, unambiguously joined: `revision\0encoding\0path\0chunk key`.
 * @returns 20 bytes, owned by the caller.
 */
export function cacheKeyOf(parts: string): Uint8Array {
  return hash("sha256", parts, "buffer").subarray(0, CACHE_KEY_BYTES);
}
