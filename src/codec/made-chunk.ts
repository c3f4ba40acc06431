import type { ErrorData } from "../errors.js";

/** Free bytes before a made chunk, in which a cache can put its header without copying the chunk. */
export const CHUNK_HEADROOM_BYTES = 64;

/** A served chunk, or the fact that nothing is stored behind it. */
export type MadeChunk =
  | {
      readonly status: "encoded";
      /**
       * The chunk in a buffer of its own, which the caller owns. The buffer may be longer, and its first
       * {@link CHUNK_HEADROOM_BYTES} are free.
       */
      readonly bytes: Uint8Array<ArrayBuffer>;
      /** CRC-32 of `bytes`; undefined unless it was asked for. */
      readonly checksum: number | undefined;
      /** Combined version of the stored chunks that were read. */
      readonly version: string;
      readonly timings: ChunkTimings;
    }
  | { readonly status: "absent" };

/** The result of making a chunk. Errors are data, because they lose class and fields between threads. */
export type ChunkOutcome = MadeChunk | { readonly status: "failed"; readonly error: ErrorData };

/** Milliseconds per stage. */
export interface ChunkTimings {
  readonly read: number;
  readonly decode: number;
  readonly encode: number;
}
