import { crc32 } from "node:zlib";
import { messageOf, ZpublishError } from "../errors.js";
import { elementCount } from "../model/chunk-grid.js";
import { CHUNK_HEADROOM_BYTES, type ChunkOutcome } from "../pool/chunk-task.js";
import type { ChunkReader, StoredChunk } from "../source/chunk-source.js";
import { maxStoredByteLength } from "../source/max-stored-byte-length.js";
import { combineStamps } from "../source/stamp-of.js";
import type { ChunkLayout, EncodingPlan } from "../zarr/encoding-plan.js";
import { storedChunksOf } from "../zarr/stored-chunks-of.js";
import type { DecodedCache, DecodedChunk } from "./decoded-cache.js";
import { fillBuffer, isZero } from "./fill-buffer.js";
import { type ChunkBox, gather, gatherFill } from "./gather.js";
import type { KernelMemory } from "./kernel/kernel-memory.js";
import { currentKernel } from "./kernel/kernel-use.js";
import { decodeSteps, encodeSteps } from "./run-steps.js";

/** The decoded chunks of a thread, and what tells this array's from others'. */
export interface DecodedChunks {
  readonly cache: DecodedCache;
  /** Of the chunk source: where the stored bytes are. */
  readonly sourceKey: string;
}

/** A served chunk, or that there is none. */
export type MadeChunk = Exclude<ChunkOutcome, { readonly status: "failed" }>;

/** Milliseconds per stage, added up while a chunk is made. */
interface Stopwatch {
  read: number;
  decode: number;
  encode: number;
}

/** What one chunk is made with. */
interface Making {
  readonly plan: EncodingPlan;
  readonly reader: ChunkReader;
  /** For bytes on their way; what stays is copied out. */
  readonly memory: KernelMemory;
  readonly watch: Stopwatch;
  readonly into: ArrayBuffer | undefined;
  readonly withChecksum: boolean;
}

export interface MakeChunkOptions {
  /** Absent: every stored chunk is decoded anew. */
  readonly decoded?: DecodedChunks | undefined;
  /** Memory for the chunk, used where it is large enough. */
  readonly into?: ArrayBuffer | undefined;
  /** Whether the outcome says the checksum of its bytes. Default false. */
  readonly withChecksum?: boolean | undefined;
}

/**
 * Makes one served chunk as its plan says. Knows nothing of threads.
 * @param chunkCoords Inside the served grid.
 * @throws ZpublishError, naming the array and the stored chunk: `source-unreadable`, `corrupt-chunk`, `codec-failed`.
 */
export async function makeChunk(
  plan: EncodingPlan,
  chunkCoords: readonly number[],
  reader: ChunkReader,
  options: MakeChunkOptions = {},
): Promise<MadeChunk> {
  const { decoded, into, withChecksum = false } = options;
  const memory = currentKernel().lease();
  const watch = { read: 0, decode: 0, encode: 0 };
  const making: Making = { plan, reader, memory, watch, into, withChecksum };
  try {
    return plan.kind === "rechunk"
      ? await makeRechunked(making, chunkCoords, decoded)
      : await makeRecompressed(making, chunkCoords);
  } finally {
    memory.end();
  }
}

async function makeRecompressed(making: Making, chunkCoords: readonly number[]): Promise<MadeChunk> {
  const { plan, memory, watch } = making;
  const stored = await readStored(making, chunkCoords);
  if (stored === undefined) return makeAbsent(making, (await stampOfAbsent(making, chunkCoords)) ?? "");
  const what = describe(plan, chunkCoords);
  const inner = await timed(watch, "decode", () => decodeSteps(stored.bytes, plan.decode, what, memory));
  const bytes = await timed(watch, "encode", () => encodeSteps(inner, plan.encode, what, memory));
  return encoded(making, bytes, stored.stamp);
}

async function makeRechunked(
  making: Making,
  chunkCoords: readonly number[],
  decoded: DecodedChunks | undefined,
): Promise<MadeChunk> {
  const { plan, memory, watch } = making;
  const { shape, served, itemSize } = plan;
  const regions = storedChunksOf(plan, chunkCoords);
  const stamps: (string | undefined)[] = [];
  const absent: (readonly number[])[] = [];
  const raw = memory.allocate(elementCount(served.chunkShape) * itemSize);
  let target: ChunkBox | undefined;

  for (const coords of regions) {
    const mark = memory.mark();
    const chunk = await decodeStored(making, coords, decoded);
    if (chunk === undefined) {
      stamps.push(await stampOfAbsent(making, coords));
      absent.push(coords);
      memory.rewind(mark);
      continue;
    }
    stamps.push(chunk.stamp);
    const began = performance.now();
    target ??= { bytes: cleared(raw, plan, chunkCoords), ...boxOf(served, chunkCoords) };
    gather({ bytes: chunk.bytes, ...boxOf(plan.stored, coords) }, target, shape, itemSize);
    memory.rewind(mark);
    watch.decode += performance.now() - began;
  }

  const stamp = combineStamps(stamps);
  if (target === undefined) return makeAbsent(making, stamp);
  // At the array's edge the whole buffer began as fill.
  if (!isZero(plan.fillItem) && plan.fillItem !== null && !passesEdge(plan, chunkCoords)) {
    for (const coords of absent) gatherFill(boxOf(plan.stored, coords), target, shape, plan.fillItem);
  }
  const what = `${describe(plan, regions[0] ?? [])} for served chunk ${keyOf(chunkCoords)}`;
  const bytes = await timed(watch, "encode", () => encodeSteps(raw, plan.encode, what, memory));
  return encoded(making, bytes, stamp);
}

/** Zeroed or filled, never what memory held before. */
function cleared(bytes: Uint8Array, plan: EncodingPlan, chunkCoords: readonly number[]): Uint8Array {
  fillBuffer(bytes, passesEdge(plan, chunkCoords) ? plan.fillItem : null);
  return bytes;
}

/** What is served of a chunk with nothing stored behind it. */
async function makeAbsent(making: Making, stamp: string): Promise<MadeChunk> {
  const { plan, memory, watch } = making;
  if (plan.absentIsAbsent) return { status: "absent" };
  const itemCount = elementCount(plan.served.chunkShape);
  const isVariable = plan.itemSize === 0 && plan.fillItem !== null && plan.fillItem.length > 0;
  // Variable-length items come behind their number: four bytes, little-endian.
  const headLength = isVariable ? 4 : 0;
  const byteLength = headLength + itemCount * (isVariable ? plan.fillItem.length : plan.itemSize);
  // A plan that passes chunks through is not refused for large ones.
  if (byteLength > plan.maxFilledByteLength) {
    throw new ZpublishError(
      "codec-failed",
      `array '${plan.path}': expected an absent chunk of at most ${plan.maxFilledByteLength} bytes to fill, received ${byteLength}`,
    );
  }
  const raw = new Uint8Array(byteLength);
  if (isVariable) new DataView(raw.buffer).setUint32(0, itemCount, true);
  fillBuffer(raw.subarray(headLength), plan.fillItem);
  const bytes = await timed(watch, "encode", () =>
    encodeSteps(raw, plan.encodeAll, `array '${plan.path}': filled chunk`, memory),
  );
  return encoded(making, bytes, stamp);
}

/** A stored chunk's items; kept where decoding them was work. */
async function decodeStored(
  making: Making,
  coords: readonly number[],
  decoded: DecodedChunks | undefined,
): Promise<DecodedChunk | undefined> {
  const { plan, reader, memory, watch } = making;
  const isKept = decoded !== undefined && plan.decode.length > 0;
  const key = isKept ? `${decoded.sourceKey}\n${plan.id}\n${coords.join(".")}` : "";
  const kept = isKept ? decoded.cache.get(key) : undefined;
  if (kept !== undefined) {
    const stamp = await timed(watch, "read", () => readNamed(plan, coords, reader.stamp(coords)));
    if (stamp === kept.stamp) return kept;
  }

  const stored = await readStored(making, coords);
  if (stored === undefined) return undefined;
  const what = describe(plan, coords);
  const bytes = await timed(watch, "decode", () => decodeSteps(stored.bytes, plan.decode, what, memory));
  const expected = elementCount(plan.stored.chunkShape) * plan.itemSize;
  if (bytes.length !== expected) {
    throw new ZpublishError("corrupt-chunk", `${what} has ${bytes.length} bytes, expected ${expected}`);
  }
  if (!isKept) return { bytes, stamp: stored.stamp };
  // What is kept must not lie in memory that is used again.
  const chunk = { bytes: memory.keep(bytes), stamp: stored.stamp };
  decoded.cache.put(key, chunk);
  return chunk;
}

/**
 * What stands for a chunk that is not there: nothing, or where it would be in a shard, the shard's stamp. Taken after
 * the read, so that a chunk written in between shows as a change.
 */
function stampOfAbsent(
  { plan, reader, watch }: Making,
  coords: readonly number[],
): Promise<string | undefined> {
  return timed(watch, "read", () => readNamed(plan, coords, reader.stamp(coords)));
}

function readStored(
  { plan, reader, memory, watch }: Making,
  coords: readonly number[],
): Promise<StoredChunk | undefined> {
  const { allocate } = memory;
  // Here, what is passed through is held in memory as what is made up is.
  const maxByteLength = maxStoredByteLength(plan) ?? plan.maxFilledByteLength;
  return timed(watch, "read", () =>
    readNamed(plan, coords, reader.read(coords, { allocate, maxByteLength })),
  );
}

/** Names the array and the chunk in what goes wrong while reading. */
async function readNamed<T>(plan: EncodingPlan, coords: readonly number[], reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    const { code, details } =
      error instanceof ZpublishError ? error : { code: "source-unreadable" as const, details: {} };
    throw new ZpublishError(code, `${describe(plan, coords)}: ${messageOf(error)}`, {
      details,
      cause: error,
    });
  }
}

function boxOf(layout: ChunkLayout, coords: readonly number[]): Omit<ChunkBox, "bytes"> {
  const { chunkShape, axisOrder } = layout;
  return { origin: coords.map((index, axis) => index * chunkShape[axis]!), chunkShape, axisOrder };
}

/** Whether a served chunk has places outside the array, which are padded with the fill item. */
function passesEdge({ shape, served }: EncodingPlan, coords: readonly number[]): boolean {
  return coords.some((index, axis) => (index + 1) * served.chunkShape[axis]! > shape[axis]!);
}

function describe(plan: EncodingPlan, coords: readonly number[]): string {
  return `array '${plan.path}': stored chunk ${keyOf(coords)}`;
}

function keyOf(coords: readonly number[]): string {
  return coords.length === 0 ? "0" : coords.join(".");
}

async function timed<T>(watch: Stopwatch, stage: keyof Stopwatch, run: () => T | Promise<T>): Promise<T> {
  const began = performance.now();
  try {
    return await run();
  } finally {
    watch[stage] += performance.now() - began;
  }
}

/** Buffers for chunks are multiples of this, so that one that was used fits the next. */
const BUFFER_STEP_BYTES = 16 * 1024;

/**
 * The outcome, with the bytes in a buffer that can be moved to another thread: no view of anything else, no shared memory.
 */
function encoded({ watch, into, withChecksum }: Making, bytes: Uint8Array, stamp: string): MadeChunk {
  const needed = CHUNK_HEADROOM_BYTES + bytes.length;
  const fits =
    into !== undefined && into.byteLength >= needed && into.byteLength <= 2 * needed + BUFFER_STEP_BYTES;
  const buffer = fits ? into : new ArrayBuffer(Math.ceil(needed / BUFFER_STEP_BYTES) * BUFFER_STEP_BYTES);
  const placed = new Uint8Array(buffer, CHUNK_HEADROOM_BYTES, bytes.length);
  placed.set(bytes);
  const checksum = withChecksum ? crc32(placed) : undefined;
  return { status: "encoded", bytes: placed, checksum, stamp, timings: watch };
}
