import { crc32 } from "node:zlib";
import { type ErrorData, ZpublishError } from "../errors.js";
import { elementCount } from "../model/data-tree.js";
import type { ChunkReader } from "../zarr/chunk-reader.js";
import { combineVersions, storedChunksOf } from "../zarr/plan/create-encoding-plan.js";
import type { ChunkLayout, EncodingPlan } from "../zarr/plan/encoding-plan.js";
import { computeItems } from "./compute/picture.js";
import { type ChunkBox, fillBuffer, gather, gatherFill, isZero } from "./copy-strided.js";
import { decodeStored, readStored, readVersion } from "./decode-stored.js";
import { currentKernel } from "./kernel/kernel.js";
import {
  assertDecodedLength,
  type ChunkInput,
  chunkName,
  type DecodedChunks,
  decodeSteps,
  encodeSteps,
  stepsOfVariant,
  storedChunkName,
  timed,
} from "./run-steps.js";

/** Free bytes before a made chunk, in which a cache can put its header without copying the chunk. */
export const CHUNK_HEADROOM_BYTES = 64;

/** A served chunk, or the fact that nothing is stored behind it. */
type MadeChunk =
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
      readonly timings: Readonly<ChunkInput["timings"]>;
    }
  | { readonly status: "absent" };

/** The result of making a chunk. Errors are data, because they lose class and fields between threads. */
export type ChunkOutcome = (MadeChunk | { readonly status: "failed"; readonly error: ErrorData }) & {
  /** Those of the task's `others`. Undefined if it has none, or all failed as it did. */
  readonly others?: readonly ChunkOutcome[];
};

/** The input of one served chunk, and how it is to come out. */
type ChunkJob = ChunkInput & MakeChunkOptions;

/** Options of {@link makeChunk}. */
export interface MakeChunkOptions {
  /** Decoded stored chunks to use and to add to; default none. */
  readonly decoded?: DecodedChunks | undefined;
  /** Memory for the chunk, used if it is large enough. */
  readonly into?: ArrayBuffer | undefined;
  /** Whether to compute the checksum of the chunk. Default false. */
  readonly withChecksum?: boolean | undefined;
}

/**
 * Makes one served chunk as its plan says, on the thread that calls.
 * @param chunkCoords Inside the served grid.
 * @throws ZpublishError, naming the array and the stored chunk: `source-unreadable`, `corrupt-chunk`, `codec-failed`.
 */
export async function makeChunk(
  plan: EncodingPlan,
  chunkCoords: readonly number[],
  reader: ChunkReader,
  options: MakeChunkOptions = {},
): Promise<MadeChunk> {
  const memory = currentKernel().lease();
  const timings = { read: 0, decode: 0, encode: 0 };
  const job: ChunkJob = { ...options, plan, reader, memory, timings };
  try {
    return plan.kind === "rechunk"
      ? await makeRechunked(job, chunkCoords)
      : await makeRecompressed(job, chunkCoords);
  } finally {
    memory.end();
  }
}

async function makeRecompressed(job: ChunkJob, chunkCoords: readonly number[]): Promise<MadeChunk> {
  const { plan, memory, timings } = job;
  const stored = await readStored(job, chunkCoords);
  if (stored === undefined) return makeAbsent(job, (await readVersion(job, chunkCoords)) ?? "");
  const name = storedChunkName(plan, chunkCoords);
  const decode = stepsOfVariant(plan.decode, plan.variants?.decode, stored.variant, name);
  const encode = (stored.variant && plan.variants?.encode) || plan.encode;
  const inner = await timed(timings, "decode", () => decodeSteps(stored.bytes, decode, name, memory));
  // A variant without codecs has no step that checks its length.
  if (stored.variant) {
    const expected = elementCount(plan.stored.chunkShape) * plan.itemSize;
    assertDecodedLength(inner.length, expected, name);
  }
  const bytes = await timed(timings, "encode", () => encodeSteps(inner, encode, name, memory));
  return encoded(job, bytes, stored.version);
}

async function makeRechunked(job: ChunkJob, chunkCoords: readonly number[]): Promise<MadeChunk> {
  const { plan, memory, timings } = job;
  const { shape, served, itemSize } = plan;
  const regions = storedChunksOf(plan, chunkCoords);
  const versions: (string | undefined)[] = [];
  const absent: (readonly number[])[] = [];
  const raw = memory.allocate(elementCount(served.chunkShape) * itemSize);
  let target: ChunkBox | undefined;

  for (const coords of regions) {
    const mark = memory.mark();
    const chunk = await decodeStored(job, coords);
    if (chunk === undefined) {
      versions.push(await readVersion(job, coords));
      absent.push(coords);
      memory.rewind(mark);
      continue;
    }
    versions.push(chunk.version);
    const began = performance.now();
    target ??= { bytes: cleared(raw, plan, chunkCoords), ...boxOf(served, chunkCoords) };
    gather({ bytes: chunk.bytes, ...boxOf(plan.stored, coords) }, target, shape, itemSize);
    memory.rewind(mark);
    timings.decode += performance.now() - began;
  }

  const version = combineVersions(versions);
  if (target === undefined) {
    if (plan.compute === undefined || plan.absentIsAbsent) return makeAbsent(job, version);
    // What is computed of fill values need not be the fill value of the result.
    fillBuffer(raw, plan.fillItem);
  } else if (!isZero(plan.fillItem) && plan.fillItem !== null && !passesEdge(plan, chunkCoords)) {
    // At the edge of the array the whole buffer is filled already.
    for (const coords of absent) gatherFill(boxOf(plan.stored, coords), target, shape, plan.fillItem);
  }
  const name = `${storedChunkName(plan, regions[0] ?? [])} for served chunk ${chunkName(chunkCoords)}`;
  const { compute } = plan;
  const bytes = await timed(timings, "encode", () => {
    const items = compute === undefined ? raw : computeItems(raw, plan, compute, chunkCoords, memory);
    return encodeSteps(items, plan.encode, name, memory);
  });
  return encoded(job, bytes, version);
}

/** Clears memory that held other bytes: with the fill item at the edge of the array, else with zeros. */
function cleared(bytes: Uint8Array, plan: EncodingPlan, chunkCoords: readonly number[]): Uint8Array {
  fillBuffer(bytes, passesEdge(plan, chunkCoords) ? plan.fillItem : null);
  return bytes;
}

/** Makes a chunk that has nothing stored behind it: absent, or nothing but fill. */
async function makeAbsent(job: ChunkJob, version: string): Promise<MadeChunk> {
  const { plan, memory, timings } = job;
  if (plan.absentIsAbsent) return { status: "absent" };
  const itemCount = elementCount(plan.served.chunkShape);
  const isVariable = plan.itemSize === 0 && plan.fillItem !== null && plan.fillItem.length > 0;
  // The number of variable-length items precedes them: four bytes, little-endian.
  const headLength = isVariable ? 4 : 0;
  const byteLength = headLength + itemCount * (isVariable ? plan.fillItem.length : plan.itemSize);
  // A plan that passes chunks through may have larger ones.
  if (byteLength > plan.maxFilledByteLength) {
    throw new ZpublishError(
      "codec-failed",
      `array '${plan.path}': expected an absent chunk of at most ${plan.maxFilledByteLength} bytes to fill, received ${byteLength}`,
    );
  }
  const raw = new Uint8Array(byteLength);
  if (isVariable) new DataView(raw.buffer).setUint32(0, itemCount, true);
  fillBuffer(raw.subarray(headLength), plan.fillItem);
  const bytes = await timed(timings, "encode", () =>
    encodeSteps(raw, plan.encodeAll, `array '${plan.path}': filled chunk`, memory),
  );
  return encoded(job, bytes, version);
}

function boxOf(layout: ChunkLayout, coords: readonly number[]): Omit<ChunkBox, "bytes"> {
  const { chunkShape, axisOrder } = layout;
  return { origin: coords.map((index, axis) => index * chunkShape[axis]!), chunkShape, axisOrder };
}

/** Whether a served chunk has places outside the array, which are padded with the fill item. */
function passesEdge({ shape, served }: EncodingPlan, coords: readonly number[]): boolean {
  return coords.some((index, axis) => (index + 1) * served.chunkShape[axis]! > shape[axis]!);
}

/** Buffers for chunks are multiples of this, so that one that was used fits the next. */
const BUFFER_STEP_BYTES = 16 * 1024;

/** Puts the bytes into a buffer of their own, which can be moved to another thread. */
function encoded({ timings, into, withChecksum }: ChunkJob, bytes: Uint8Array, version: string): MadeChunk {
  const placed = placeFor(bytes.length, into);
  placed.set(bytes);
  const checksum = withChecksum ? crc32(placed) : undefined;
  return { status: "encoded", bytes: placed, checksum, version, timings };
}

/** Returns a place for the bytes of an outcome. @param into Memory that is used if it has about that length. */
export function placeFor(byteLength: number, into: ArrayBuffer | undefined): Uint8Array<ArrayBuffer> {
  const needed = CHUNK_HEADROOM_BYTES + byteLength;
  const fits =
    into !== undefined && into.byteLength >= needed && into.byteLength <= 2 * needed + BUFFER_STEP_BYTES;
  const buffer = fits ? into : new ArrayBuffer(Math.ceil(needed / BUFFER_STEP_BYTES) * BUFFER_STEP_BYTES);
  return new Uint8Array(buffer, CHUNK_HEADROOM_BYTES, byteLength);
}
