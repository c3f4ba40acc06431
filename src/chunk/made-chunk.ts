import type { CacheKey } from "../cache/cache-key.js";
import type { ChunkCache } from "../cache/chunk-cache.js";
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

/** Offers a made chunk to the cache, which writes it from the chunk's memory, without a copy. */
export function offerToCache(cache: ChunkCache, key: CacheKey, made: MadeChunk): void {
  const { bytes, checksum, origin } = made;
  if (!cache.admits(key, bytes.length, origin === "PASS" ? "read" : "encode")) return;
  // Memory that belongs to the source must not be written to.
  if (made.releaseMemory === undefined) {
    cache.put(key, bytes);
    return;
  }
  made.readers += 1;
  const offered = { bytes, release: () => releaseMade(made) };
  cache.put(key, checksum === undefined ? offered : { ...offered, checksum });
}

/** Puts a made chunk into the cache, whatever the policy says. @returns False if the cache does not take it. */
export function putIntoCache(cache: ChunkCache, key: CacheKey, made: MadeChunk): Promise<boolean> {
  const { bytes, checksum } = made;
  if (made.releaseMemory === undefined) return cache.putAndWait(key, bytes);
  made.readers += 1;
  const offered = { bytes, release: () => releaseMade(made) };
  return cache.putAndWait(key, checksum === undefined ? offered : { ...offered, checksum });
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
    const duration = timings[stage] as number;
    if (duration === 0) continue;
    header += `${header === "" ? "" : ", "}${stage};dur=${duration.toFixed(3)}`;
  }
  return header;
}
