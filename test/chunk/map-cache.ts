import { type ChunkCache, createNullCache } from "../../src/cache/chunk-cache.js";

/** Creates a cache in a Map. */
export function mapCache(): ChunkCache & { readonly kept: Map<string, Uint8Array> } {
  const kept = new Map<string, Uint8Array>();
  return {
    kept,
    get: (key) => kept.get(key.id),
    admits: () => true,
    byteLengthOf: ({ id }) => kept.get(id)?.length,
    async putAndWait(key, chunk) {
      this.put(key, chunk);
      return true;
    },
    put(key, chunk) {
      if (chunk instanceof Uint8Array) kept.set(key.id, chunk.slice());
      else {
        kept.set(key.id, chunk.bytes.slice());
        chunk.release();
      }
    },
    stats: createNullCache().stats,
    async close() {},
  };
}
