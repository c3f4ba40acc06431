import type { ErrorData } from "../errors.js";
import type { EncodingPlan } from "../zarr/encoding-plan.js";

/** What the main thread asks of a worker: make one served chunk. Shared by both sides. */
export interface ChunkTask {
  readonly plan: EncodingPlan;
  /** In the served grid. */
  readonly chunkCoords: readonly number[];
}

/** What a worker answers; errors are data because piscina loses their class and fields. */
export type ChunkOutcome =
  | {
      readonly status: "encoded";
      /** Owns its whole ArrayBuffer, moved to the caller. */
      readonly bytes: Uint8Array<ArrayBuffer>;
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
