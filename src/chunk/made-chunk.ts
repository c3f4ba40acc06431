import type { CacheKey } from "../cache/cache-key.js";
import type { ChunkCache } from "../cache/chunk-cache.js";
import type { Body } from "../http/reply.js";

/** A chunk that was read or encoded, and how. */
export interface MadeChunk {
  readonly bytes: Uint8Array;
  readonly origin: "PASS" | "MISS";
  /** Milliseconds per stage. */
  readonly timings: Readonly<Record<string, number>>;
  /** Returns the memory for reuse; undefined if it is not to be used again, or was returned. */
  giveBack?: (() => void) | undefined;
  /** CRC-32, if known. */
  readonly checksum?: number | undefined;
  /** Bodies that read from it, and the cache. */
  readers: number;
}

/** A body that reads from a made chunk. @param lookupMs Duration of the cache look-up before it was made. */
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

/** Offers a made chunk to the cache, which uses the chunk's memory while it writes, instead of a copy. */
export function offerToCache(cache: ChunkCache, key: CacheKey, made: MadeChunk): void {
  const { bytes, checksum, origin } = made;
  if (!cache.admits(key, bytes.length, origin === "PASS" ? "read" : "encode")) return;
  // Memory that belongs to the source must not be written to.
  if (made.giveBack === undefined) {
    cache.put(key, bytes);
    return;
  }
  made.readers += 1;
  const lent = { bytes, release: () => releaseMade(made) };
  cache.put(key, checksum === undefined ? lent : { ...lent, checksum });
}

/** Not in this turn of the event loop: others may have waited for the same chunk. */
function releaseMade(made: MadeChunk): void {
  made.readers -= 1;
  if (made.readers > 0 || made.giveBack === undefined) return;
  setImmediate(() => {
    if (made.readers > 0) return;
    made.giveBack?.();
    // Several may have been the last one in the same turn.
    made.giveBack = undefined;
  });
}

/**
 * `Server-Timing` of the stages that ran (W3C Server Timing), durations in milliseconds.
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
