import { messageOf, ZpublishError } from "../errors.js";
import { elementCount } from "../model/chunk-grid.js";
import type { ChunkReader, StoredChunk } from "../zarr/chunk-source.js";
import type { CodecStep } from "../zarr/codec-step.js";
import type { EncodingPlan } from "../zarr/plan/encoding-plan.js";
import { maxStoredByteLength } from "../zarr/plan/max-stored-byte-length.js";
import type { DecodedCache, DecodedChunk } from "./decoded-cache.js";
import type { KernelMemory } from "./kernel/kernel-memory.js";
import { decodeSteps } from "./run-steps.js";

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

/** Where stored chunks come from, and the memory that one served chunk is made in. */
export interface ChunkInput {
  readonly plan: EncodingPlan;
  readonly reader: ChunkReader;
  /** Memory that the next chunk uses again: what must stay is copied out of it. */
  readonly memory: KernelMemory;
  readonly timings: StageTimes;
}

/**
 * Reads and decodes one stored chunk; undefined if there is none. Decoded items are kept in `decoded`, unless nothing had to be
 * decoded, or no other served chunk has items of this one.
 * @throws ZpublishError, naming the array and the chunk: `source-unreadable`, `corrupt-chunk`, `codec-failed`.
 */
export async function decodeStored(
  input: ChunkInput,
  coords: readonly number[],
  decoded: DecodedChunks | undefined,
): Promise<DecodedChunk | undefined> {
  const { plan, memory, timings } = input;
  const hasSteps = plan.decode.length > 0 || plan.variants !== undefined;
  const isKept = decoded !== undefined && hasSteps && isShared(plan, coords);
  const key = isKept ? `${decoded.sourceKey}\n${plan.id}\n${coords.join(".")}` : "";
  const kept = isKept ? decoded.cache.get(key) : undefined;
  if (kept !== undefined) {
    if ((await readVersion(input, coords)) === kept.version) return kept;
  }

  const stored = await readStored(input, coords);
  if (stored === undefined) return undefined;
  const name = storedChunkName(plan, coords);
  const steps = decodeStepsOf(plan, stored, name);
  const bytes = await timed(timings, "decode", () => decodeSteps(stored.bytes, steps, name, memory));
  assertDecodedLength(plan, bytes.length, name);
  if (!isKept) return { bytes, version: stored.version };
  const chunk = { bytes: memory.keep(bytes), version: stored.version };
  decoded.cache.set(key, chunk);
  return chunk;
}

/** Tells whether several served chunks are made of a stored chunk. */
function isShared({ shape, stored, served }: EncodingPlan, coords: readonly number[]): boolean {
  return coords.some((index, axis) => {
    const [length, servedLength] = [stored.chunkShape[axis]!, served.chunkShape[axis]!];
    const last = Math.min((index + 1) * length, shape[axis]!) - 1;
    return Math.floor((index * length) / servedLength) !== Math.floor(last / servedLength);
  });
}

/** Asserts that a stored chunk has decoded to all of its items. @throws ZpublishError `corrupt-chunk` */
export function assertDecodedLength(plan: EncodingPlan, byteLength: number, name: string): void {
  const expected = elementCount(plan.stored.chunkShape) * plan.itemSize;
  if (byteLength === expected) return;
  throw new ZpublishError("corrupt-chunk", `${name} has ${byteLength} bytes, expected ${expected}`);
}

/** Returns the steps that decode a stored chunk. @throws ZpublishError `corrupt-chunk` if the array has no such variant. */
export function decodeStepsOf(
  { decode, variants }: EncodingPlan,
  { variant = 0 }: StoredChunk,
  name: string,
): readonly CodecStep[] {
  const steps = variant === 0 ? decode : variants?.decode[variant - 1];
  if (steps !== undefined) return steps;
  const expected = variants?.decode.length ?? 0;
  throw new ZpublishError(
    "corrupt-chunk",
    `${name}: expected a variant of at most ${expected}, received ${variant}`,
  );
}

/** Reads one stored chunk as it is; undefined if there is none. @throws ZpublishError As {@link decodeStored}. */
export function readStored(
  { plan, reader, memory, timings }: ChunkInput,
  coords: readonly number[],
): Promise<StoredChunk | undefined> {
  const { allocate } = memory;
  // A chunk that is passed through is held in memory here, as a filled one is.
  const maxByteLength = maxStoredByteLength(plan) ?? plan.maxFilledByteLength;
  return timed(timings, "read", () =>
    readNamed(plan, coords, reader.read(coords, { allocate, maxByteLength })),
  );
}

/**
 * Reads the version of a stored chunk. That of an absent chunk is its shard's, if there is one, else undefined; it is to be read after
 * the chunk, so that a chunk written in between shows as a change.
 */
export function readVersion(
  { plan, reader, timings }: ChunkInput,
  coords: readonly number[],
): Promise<string | undefined> {
  return timed(timings, "read", () => readNamed(plan, coords, reader.version(coords)));
}

/** Names a stored chunk and its array, for messages. */
export function storedChunkName(plan: EncodingPlan, coords: readonly number[]): string {
  return `array '${plan.path}': stored chunk ${chunkName(coords)}`;
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

/** Puts the names of array and chunk before the message of a failed read. */
export async function readNamed<T>(
  plan: EncodingPlan,
  coords: readonly number[],
  reading: Promise<T>,
): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    const { code, details } =
      error instanceof ZpublishError ? error : { code: "source-unreadable" as const, details: {} };
    throw new ZpublishError(code, `${storedChunkName(plan, coords)}: ${messageOf(error)}`, {
      details,
      cause: error,
    });
  }
}
