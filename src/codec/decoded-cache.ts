import { type ByteBoundedMap, createByteBoundedMap } from "../collections/byte-bounded-map.js";

/** The items of one stored chunk. */
export interface DecodedChunk {
  readonly bytes: Uint8Array;
  /** Version of the stored bytes. */
  readonly version: string;
}

/**
 * Decoded stored chunks of one thread, shared by neighbouring served chunks. Callers must not change the buffers, and compare the
 * versions.
 */
export type DecodedCache = ByteBoundedMap<DecodedChunk>;

/**
 * Creates an empty cache. A chunk of more than half of the bound is not kept.
 * @param maxBytes For all decoded chunks together. Default 64 MiB.
 */
export function createDecodedCache(maxBytes: number = 64 * 2 ** 20): DecodedCache {
  const byteLengthOf = ({ bytes }: DecodedChunk) => bytes.length;
  return createByteBoundedMap({ maxBytes, maxValueBytes: maxBytes / 2, byteLengthOf });
}
