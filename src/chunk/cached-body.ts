import type { CacheKey } from "../cache/cache-key.js";
import type { ChunkCache } from "../cache/chunk-cache.js";
import type { Body } from "../http/reply.js";
import { serverTiming } from "./made-chunk.js";

/** Look-ups up to this many microseconds, nearly all, share their header lines. */
const SHARED_MICROSECONDS = 1_000;

/**
 * Creates a body that reads from the cache.
 * @param found Result of the look-up just made.
 * @param lookupMs Duration of that look-up.
 */
export function cachedBody(cache: ChunkCache, key: CacheKey, found: Uint8Array, lookupMs: number): Body {
  let first: Uint8Array | undefined = found;
  return {
    byteLength: found.length,
    heldByteLength: 0,
    headers: hitHeaders(lookupMs),
    read(offset) {
      // The view is valid in this iteration of the event loop only: later the cache is read again.
      const view = first ?? cache.get(key, true);
      first = undefined;
      return offset === 0 ? view : view?.subarray(offset);
    },
  };
}

const shared: Body["headers"][] = [];

/** Returns the headers of a cached chunk: frozen, one list per microsecond. @param lookupMs Duration of the look-up. */
function hitHeaders(lookupMs: number): Body["headers"] {
  const microseconds = Math.round(lookupMs * 1_000);
  let headers = shared[microseconds];
  if (headers === undefined) {
    headers = Object.freeze([
      Object.freeze(["X-Cache", "HIT"] as const),
      Object.freeze(["Server-Timing", serverTiming({ cache: Math.max(microseconds, 1) / 1_000 })] as const),
    ]);
    if (microseconds < SHARED_MICROSECONDS) shared[microseconds] = headers;
  }
  return headers;
}
