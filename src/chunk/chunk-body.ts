import type { CacheKey, ChunkCache, ReleasableChunk } from "../cache/chunk-cache.js";
import type { Body } from "../http/reply.js";

/** A chunk that was read or encoded, and how. */
export interface MadeChunk {
  readonly bytes: Uint8Array;
  readonly origin: "PASS" | "MISS";
  /** Milliseconds per stage. */
  readonly timings: Readonly<Record<string, number>>;
  /** Releases the memory for reuse; undefined if it is not reused, or was released. */
  releaseMemory?: (() => void) | undefined;
  /** CRC-32, if known. */
  readonly checksum?: number | undefined;
  /** Number of bodies that read from it, and the cache while it writes. */
  readers: number;
}

/** Creates a body that reads from a made chunk. @param lookupMs Duration of the cache look-up before it was made. */
export function madeBody(made: MadeChunk, lookupMs: number): Body {
  made.readers += 1;
  return {
    release: () => releaseMade(made),
    byteLength: made.bytes.length,
    headers: [
      ["X-Cache", made.origin],
      ["Server-Timing", serverTiming({ cache: lookupMs, ...made.timings })],
    ],
    read: (offset) => (offset === 0 ? made.bytes : made.bytes.subarray(offset)),
  };
}

/** Offers a made chunk to the cache. */
export function offerToCache(cache: ChunkCache, key: CacheKey, made: MadeChunk): void {
  const cost = made.origin === "PASS" ? "read" : "encode";
  if (cache.admits(key, made.bytes.length, cost)) cache.put(key, cacheable(made));
}

/** Puts a made chunk into the cache, whatever the policy says. @returns False if the cache does not take it. */
export function putIntoCache(cache: ChunkCache, key: CacheKey, made: MadeChunk): Promise<boolean> {
  return cache.putAndWait(key, cacheable(made));
}

/** Returns a chunk as the cache takes it: it writes from the chunk's memory, without a copy. */
function cacheable(made: MadeChunk): Uint8Array | ReleasableChunk {
  const { bytes, checksum } = made;
  // Memory that belongs to the source must not be written to.
  if (made.releaseMemory === undefined) return bytes;
  made.readers += 1;
  const offered = { bytes, release: () => releaseMade(made) };
  return checksum === undefined ? offered : { ...offered, checksum };
}

/** Ends one reading of a chunk. Its memory is released in a later iteration of the event loop: others may have waited for it. */
function releaseMade(made: MadeChunk): void {
  made.readers -= 1;
  if (made.readers > 0 || made.releaseMemory === undefined) return;
  setImmediate(() => {
    if (made.readers > 0) return;
    made.releaseMemory?.();
    // Several readers may have been the last one in the same iteration.
    made.releaseMemory = undefined;
  });
}

/**
 * Formats the header `Server-Timing` (W3C Server Timing) of the stages that ran.
 * @param timings Milliseconds by stage; stages of exactly 0 did not run.
 */
export function serverTiming(timings: Readonly<Record<string, number>>): string {
  let header = "";
  for (const stage in timings) {
    const duration = timings[stage]!;
    if (duration === 0) continue;
    header += `${header === "" ? "" : ", "}${stage};dur=${duration.toFixed(3)}`;
  }
  return header;
}

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
