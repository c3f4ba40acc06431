/**
 * Decoded stored chunks of one thread, shared by neighbouring served chunks. Bounded by bytes; the least recently used are
 * evicted. Callers must not change the buffers.
 */
export interface DecodedCache {
  /** Returns a chunk, whose version the caller has to compare; undefined if there is none. */
  get(key: string): DecodedChunk | undefined;
  /** Adds a chunk, unless it is larger than half of the bound. */
  put(key: string, chunk: DecodedChunk): void;
  readonly byteLength: number;
}

/** The items of one stored chunk. */
export interface DecodedChunk {
  readonly bytes: Uint8Array;
  /** Version of the stored bytes. */
  readonly version: string;
}

/** Creates an empty cache. @param maxBytes For all decoded chunks together. Default 64 MiB. */
export function createDecodedCache(maxBytes: number = 64 * 2 ** 20): DecodedCache {
  const chunks = new Map<string, DecodedChunk>();
  let byteLength = 0;

  function drop(key: string): void {
    byteLength -= chunks.get(key)?.bytes.length ?? 0;
    chunks.delete(key);
  }

  return {
    get(key) {
      const chunk = chunks.get(key);
      if (chunk === undefined) return undefined;
      // A map keeps the order of insertion: the first key is the least recently used.
      chunks.delete(key);
      chunks.set(key, chunk);
      return chunk;
    },
    put(key, chunk) {
      drop(key);
      if (chunk.bytes.length > maxBytes / 2) return;
      chunks.set(key, chunk);
      byteLength += chunk.bytes.length;
      for (const oldest of chunks.keys()) {
        if (byteLength <= maxBytes) return;
        drop(oldest);
      }
    },
    get byteLength() {
      return byteLength;
    },
  };
}
