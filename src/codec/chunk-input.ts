import { messageOf, ZpublishError } from "../errors.js";
import type { ChunkPiece, ChunkReader } from "../zarr/chunk-reader.js";
import type { CodecStep } from "../zarr/codec-step.js";
import type { EncodingPlan } from "../zarr/plan/encoding-plan.js";
import type { DecodedCache } from "./decoded-cache.js";
import type { KernelMemory } from "./kernel/kernel-memory.js";

/** Source of stored chunks, and the memory that one served chunk is made in. */
export interface ChunkInput {
  readonly plan: EncodingPlan;
  readonly reader: ChunkReader;
  /** Memory that the next chunk uses again: what must stay is copied out of it. */
  readonly memory: KernelMemory;
  readonly timings: StageTimes;
  /** Decoded chunks to use and to add to; undefined if none are kept. */
  readonly decoded: DecodedChunks | undefined;
}

/** The decoded chunks of a thread, and the key that tells this array's chunks from others'. */
export interface DecodedChunks {
  readonly cache: DecodedCache;
  /** Key of the chunk source. */
  readonly sourceKey: string;
}

/** Milliseconds per stage, added up while a chunk is made. */
export interface StageTimes {
  read: number;
  decode: number;
  encode: number;
}

/** Names a stored chunk and its array, for messages. */
export function storedChunkName(plan: EncodingPlan, coords: readonly number[]): string {
  return `array '${plan.path}': stored chunk ${chunkName(coords)}`;
}

/** Names a chunk of a part, and the part, for messages. */
export function pieceName({ layout, coords }: Pick<ChunkPiece, "layout" | "coords">): string {
  return `${layout.title}: chunk ${chunkName(coords)}`;
}

/** Chunk coordinates for messages: `0.1`, and `0` for a scalar. */
export function chunkName(coords: readonly number[]): string {
  return coords.length === 0 ? "0" : coords.join(".");
}

/** Runs a stage and adds its time to the others' of the stage. */
export async function timed<T>(
  timings: StageTimes,
  stage: keyof StageTimes,
  run: () => T | Promise<T>,
): Promise<T> {
  const began = performance.now();
  try {
    return await run();
  } finally {
    timings[stage] += performance.now() - began;
  }
}

/** Puts the name of what is read before the message of a failure. */
export async function readNamed<T>(name: string, reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    const { code, details } =
      error instanceof ZpublishError ? error : { code: "source-unreadable" as const, details: {} };
    throw new ZpublishError(code, `${name}: ${messageOf(error)}`, { details, cause: error });
  }
}

/** Asserts that a stored chunk has decoded to all of its items. @throws ZpublishError `corrupt-chunk` */
export function assertDecodedLength(byteLength: number, expected: number, name: string): void {
  if (byteLength === expected) return;
  throw new ZpublishError("corrupt-chunk", `${name} has ${byteLength} bytes, expected ${expected}`);
}

/**
 * Returns the steps that decode a stored chunk.
 * @param variants Steps of chunks whose codecs differ; the first for variant 1.
 * @throws ZpublishError `corrupt-chunk` if there is no such variant
 */
export function stepsOfVariant(
  steps: readonly CodecStep[],
  variants: readonly (readonly CodecStep[])[] = [],
  variant: number | undefined,
  name: string,
): readonly CodecStep[] {
  const own = variant ? variants[variant - 1] : steps;
  if (own !== undefined) return own;
  throw new ZpublishError(
    "corrupt-chunk",
    `${name}: expected a variant of at most ${variants.length}, received ${variant}`,
  );
}
