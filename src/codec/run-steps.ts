import { type BoundedMap, createBoundedMap } from "../collections/bounded-map.js";
import { messageOf, ZpublishError } from "../errors.js";
import type { MaybePromise } from "../event-loop/maybe-promise.js";
import type { ChunkPiece, ChunkReader } from "../zarr/chunk-reader.js";
import type { CodecStep } from "../zarr/codec-step.js";
import type { EncodingPlan } from "../zarr/plan/encoding-plan.js";
import { checkDecodedLength, corrupt } from "./codec.js";
import { CODECS } from "./codecs.js";
import { type KernelMemory, OWN_MEMORY } from "./kernel/kernel-memory.js";

/**
 * Undoes codecs, outermost first, and checks the length after each.
 * @param what The chunk, to begin error messages with: `'a/b' chunk 0.1`.
 * @param memory For the result and for intermediate bytes. Default: memory of its own.
 * @returns Bytes that may be a view of the input, or of that memory.
 * @throws ZpublishError `corrupt-chunk`, or `codec-failed`.
 */
export async function decodeSteps(
  bytes: Uint8Array,
  steps: readonly CodecStep[],
  what: string,
  memory: KernelMemory = OWN_MEMORY,
): Promise<Uint8Array> {
  let current = bytes;
  for (const step of steps) {
    const { id } = step.codec;
    try {
      current = await codecOf(id).decode(current, step, memory);
      checkDecodedLength(id, current.length, step);
    } catch (error) {
      throw named(error, what, id);
    }
  }
  return current;
}

/**
 * Applies codecs, innermost first, with parameters and result as {@link decodeSteps}.
 * @throws ZpublishError `corrupt-chunk` if the bytes do not have the length to be encoded; `codec-failed`.
 */
export async function encodeSteps(
  bytes: Uint8Array,
  steps: readonly CodecStep[],
  what: string,
  memory: KernelMemory = OWN_MEMORY,
): Promise<Uint8Array> {
  let current = bytes;
  for (const step of steps) {
    const { id } = step.codec;
    const { encode } = codecOf(id);
    try {
      if (step.decodedByteLength !== null && current.length !== step.decodedByteLength) {
        throw corrupt(
          `${id}: expected ${step.decodedByteLength} bytes to encode, received ${current.length}`,
        );
      }
      if (encode === undefined)
        throw new ZpublishError("codec-failed", `${id}: expected a codec that encodes`);
      current = await encode(current, step, memory);
    } catch (error) {
      throw named(error, what, id);
    }
  }
  return current;
}

function codecOf(id: string) {
  const codec = Object.hasOwn(CODECS, id) ? CODECS[id] : undefined;
  if (codec === undefined) throw new ZpublishError("codec-failed", `codec ${id} is unknown here`);
  return codec;
}

function named(error: unknown, what: string, id: string): ZpublishError {
  if (error instanceof ZpublishError) {
    return new ZpublishError(error.code, `${what}: ${error.message}`, {
      details: error.details,
      cause: error.cause,
    });
  }
  return new ZpublishError("codec-failed", `${what}: ${id}: ${messageOf(error)}`, { cause: error });
}

/** Source of stored chunks, and the memory that one served chunk is made in. */
export interface ChunkInput {
  readonly plan: EncodingPlan;
  readonly reader: ChunkReader;
  /** Memory that the next chunk uses again: what must stay is copied out of it. */
  readonly memory: KernelMemory;
  readonly timings: StageTimes;
  /** Decoded chunks to use and to add to; undefined if none are kept. */
  readonly decoded?: DecodedChunks | undefined;
}

/** The decoded chunks of a thread, and the key that tells this array's chunks from others'. */
export interface DecodedChunks {
  readonly cache: DecodedCache;
  /** Key of the chunk source. */
  readonly sourceKey: string;
  /** Whether the cache is of one lot of tasks, which need the same chunks: then it gets each of them. Default false. */
  readonly isOfLot?: boolean;
}

/** Milliseconds per stage, added up while a chunk is made. */
interface StageTimes {
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
export async function readNamed<T>(name: string, read: () => MaybePromise<T>): Promise<T> {
  try {
    return await read();
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
export type DecodedCache = BoundedMap<DecodedChunk>;

/**
 * Creates an empty cache. A chunk of more than half of the bound is not kept.
 * @param maxBytes For all decoded chunks together. Default 64 MiB.
 */
export function createDecodedCache(maxBytes: number = 64 * 2 ** 20): DecodedCache {
  const byteLengthOf = ({ bytes }: DecodedChunk) => bytes.length;
  return createBoundedMap({ maxBytes, maxValueBytes: maxBytes / 2, byteLengthOf });
}
