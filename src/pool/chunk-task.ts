import type { ChunkOutcome } from "../codec/made-chunk.js";
import type { ChunkPiece, LocalPlace, ThreadSource } from "../zarr/chunk-reader.js";
import type { EncodingPlan } from "../zarr/plan/encoding-plan.js";

/** A request to a worker to make one served chunk. */
export interface ChunkTask {
  readonly plan: EncodingPlan;
  /** Position in the served grid. */
  readonly chunkCoords: readonly number[];
  /** Version of the stored bytes, if the caller knows it. The quarantine treats another version as another chunk. */
  readonly version?: string | undefined;
  /** The stored chunks behind it, if the plan's source is `given`. */
  readonly stored?: readonly GivenChunk[];
}

/** A stored chunk that was read for a worker, or found for it. */
export interface GivenChunk extends GivenBytes {
  /** Position in the stored grid. */
  readonly coords: readonly number[];
  /** The parts' chunks that it is made of, if the array is joined. Then the other fields are theirs. */
  readonly pieces?: readonly GivenPiece[];
}

/** The bytes of a stored chunk, or their place. */
export interface GivenBytes {
  /** As `ChunkReader.version` returns it. Undefined if it is absent, or if the worker opens its source. */
  readonly version: string | undefined;
  /** As in `StoredChunk`. */
  readonly variant?: number;
  /** Undefined if the chunk is absent, or if the worker reads it itself. */
  readonly bytes: Uint8Array | undefined;
  /** Where the worker reads the chunk. Default: it has the bytes. */
  readonly place?: LocalPlace;
  /** Source that the worker opens to read the chunk. Default: it has the bytes or the place. */
  readonly source?: ThreadSource;
}

/** A piece of a chunk, read for a worker, or found for it. */
export interface GivenPiece extends Omit<ChunkPiece, "reader"> {
  readonly given: GivenBytes;
}

/** Settings that a worker gets when it starts. */
export interface WorkerData {
  /** True if it computes a checksum of each chunk, for the cache. */
  readonly withChecksums: boolean;
  /** Time limit of one call to a source. */
  readonly sourceTimeoutMs: number;
}

/** A task, and spare memory for its chunk. */
export interface WorkerTask {
  readonly task: ChunkTask;
  readonly into: ArrayBuffer | undefined;
}

/**
 * The answer of a worker. `worn-out`: it has not begun the task and has to be replaced, because only the end of its thread
 * releases WebAssembly memory.
 */
export type WorkerAnswer = ChunkOutcome | { readonly status: "worn-out" };
