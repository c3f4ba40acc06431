import { type ChunkCache, createNullCache } from "../../src/cache/chunk-cache.js";

/** A cache in a Map. */
export interface MapCache extends ChunkCache {
  readonly kept: Map<string, Uint8Array>;
}

/** Creates a cache in a Map. */
export function mapCache(): MapCache {
  const kept = new Map<string, Uint8Array>();
  return {
    ...createNullCache(),
    kept,
    get: (key) => kept.get(key.id),
    admits: () => true,
    byteLengthOf: ({ id }) => kept.get(id)?.length,
    async putAndWait(key, chunk) {
      this.put(key, chunk);
      return true;
    },
    put(key, chunk) {
      const bytes = chunk instanceof Uint8Array ? chunk : chunk.bytes;
      kept.set(key.id, bytes.slice());
      if (!(chunk instanceof Uint8Array)) chunk.release();
    },
  };
}
