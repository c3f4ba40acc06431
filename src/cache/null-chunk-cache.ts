import type { ChunkCache, ChunkCacheStats } from "./chunk-cache.js";

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
