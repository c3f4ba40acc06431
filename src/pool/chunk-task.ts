import type { ErrorData } from "../errors.js";
import type { EncodingPlan } from "../zarr/encoding-plan.js";

/** What the main thread asks of a worker: make one served chunk. Shared by both sides. */
export interface ChunkTask {
  readonly plan: EncodingPlan;
  /** In the served grid. */
  readonly chunkCoords: readonly number[];
  /** Of the stored bytes behind it, as whoever asks knows them; other bytes are another chunk to try. */
  readonly stamp?: string | undefined;
  /** True: goes before all others. For looking whether chunks are made at all. */
  readonly isUrgent?: boolean;
}

/** What a worker is told when it starts. */
export interface WorkerData {
  /** Whether it uses the WebAssembly kernel. */
  readonly useKernel: boolean;
  /** Whether what it makes is to be stored, with a checksum. */
  readonly withChecksums: boolean;
  /** One look at, or read from, a source. */
  readonly sourceTimeoutMs: number;
}

/** A task, and memory for its chunk that is not in use any more. */
export interface WorkerTask {
  readonly task: ChunkTask;
  readonly into: ArrayBuffer | undefined;
}

export const CHUNK_HEADROOM_BYTES = 64;

/** What a worker answers; errors are data because piscina loses their class and fields. */
export type ChunkOutcome =
  | {
      readonly status: "encoded";
      /**
       * In a buffer of their own, moved to the caller, which may be longer: {@link CHUNK_HEADROOM_BYTES} before them are
       * free, for whoever stores them with a header.
       */
      readonly bytes: Uint8Array<ArrayBuffer>;
      /** CRC-32 of `bytes`; undefined where it was not asked for. */
      readonly checksum: number | undefined;
      /** Combined stamp of the stored chunks that were read, as `stampOf` in `source/` makes it. */
      readonly stamp: string;
      readonly timings: ChunkTimings;
    }
  | { readonly status: "absent" }
  | { readonly status: "failed"; readonly error: ErrorData };

/** Milliseconds. */
export interface ChunkTimings {
  readonly read: number;
  readonly decode: number;
  readonly encode: number;
}
