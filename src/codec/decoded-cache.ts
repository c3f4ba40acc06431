/**
 * Decoded stored chunks of one thread, so that neighbouring served chunks do not decode the same one again. Bounded by
 * bytes; what was used longest ago goes first. Buffers are shared: nobody changes them.
 */
export interface DecodedCache {
  /** Undefined: not kept. Whether its stamp still holds is for the caller to see. */
  get(key: string): DecodedChunk | undefined;
  /** Ignored where the chunk alone is larger than half of the bound. */
  put(key: string, chunk: DecodedChunk): void;
  readonly byteLength: number;
}

export interface DecodedChunk {
  readonly bytes: Uint8Array;
  /** Of the stored bytes. */
  readonly stamp: string;
}

/** @param maxBytes Bytes of all decoded chunks together. */
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
      // A map keeps the order of insertion.
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
