import { fillBuffer } from "../codec/copy-strided.js";
import { decodeSteps } from "../codec/run-steps.js";
import { ZpublishError } from "../errors.js";
import { workThrough } from "../event-loop/work-through.js";
import { openChunkReader } from "../open/chunk-reader.js";
import type { StoredChunk } from "../zarr/chunk-reader.js";
import { completeCodec, decodeProblem } from "../zarr/plan/codec-rules.js";
import type { StoredArray } from "../zarr/stored-array.js";
import { storedLayoutOf } from "./piece-layout.js";

/** Longest coordinate of one part, in values. */
const MAX_VALUES = 1_000_000;
/** Longest coordinate of one part, in bytes. */
const MAX_BYTES = 16 * 2 ** 20;
/** Chunks of a coordinate that are read at a time. */
const CONCURRENCY = 16;
/** Filter of texts; the chunk before it has their number and, before each, its length, as little-endian uint32. */
const TEXT_FILTER = "vlen-utf8";
const LENGTH_BYTES = 4;

/** Tells why the values of a coordinate are not read; undefined if they are. */
export function coordinateProblem(array: StoredArray): string | undefined {
  const { shape, dataType, codecs, variants = [] } = array;
  const [length = 1] = shape;
  if (length > MAX_VALUES) return `expected at most ${MAX_VALUES} values in one part, received ${length}`;
  const byteLength = length * dataType.itemSize;
  if (byteLength > MAX_BYTES)
    return `expected at most ${MAX_BYTES} bytes in one part, received ${byteLength}`;
  if (dataType.kind === "O" && !isText(array))
    return `expected numbers, times or texts, received items of ${dataType.numpyName}`;
  const steps = [...codecs.slice(isText(array) ? 1 : 0), ...variants.flat()];
  return steps.map((codec) => decodeProblem(completeCodec(codec))).find(Boolean);
}

/**
 * Reads all items of an array of one axis at most, as `PartArray.values` has them. There must be no {@link coordinateProblem}.
 * @throws ZpublishError `corrupt-chunk`; the error of a failed read
 */
export async function readCoordinate(array: StoredArray): Promise<Uint8Array> {
  const { shape, dataType } = array;
  const [length = 1] = shape;
  const layout = storedLayoutOf(array);
  const [chunkLength = 1] = layout.chunkShape;
  const chunks: Uint8Array[] = [];
  const reader = openChunkReader(array.chunks);
  const options = { maxByteLength: layout.maxStoredByteLength };

  async function readChunk(index: number): Promise<void> {
    const coords = shape.length === 0 ? [] : [index];
    const what = `'${array.path}' chunk ${index}`;
    const count = Math.min(chunkLength, length - index * chunkLength);
    const stored = reader.readNow?.(coords, options) ?? (await reader.read(coords, options));
    const items = stored && (await decodeSteps(stored.bytes, stepsOf(array, stored, what), what));
    if (isText(array)) chunks[index] = items ? textsOf(items, count, what) : filled(array, count);
    else chunks[index] = items ? itemsOf(items, array, count, what) : filled(array, count);
  }

  await workThrough(Array(Math.ceil(length / chunkLength)).keys(), CONCURRENCY, readChunk);
  if (dataType.kind !== "O") return Buffer.concat(chunks);
  const head = Buffer.alloc(LENGTH_BYTES);
  head.writeUInt32LE(length);
  return Buffer.concat([head, ...chunks]);
}

function isText({ dataType, codecs }: StoredArray): boolean {
  return dataType.kind === "O" && codecs[0]?.id === TEXT_FILTER;
}

function stepsOf(array: StoredArray, { variant = 0 }: StoredChunk, what: string) {
  const { decode, variants } = storedLayoutOf(array);
  const steps = variant === 0 ? decode : variants[variant - 1];
  if (steps !== undefined) return isText(array) ? steps.slice(0, -1) : steps;
  const expected = `expected a variant of at most ${variants.length}`;
  throw new ZpublishError("corrupt-chunk", `${what}: ${expected}, received ${variant}`);
}

/** Returns the first items of a decoded chunk. */
function itemsOf(items: Uint8Array, { chunkShape, dataType }: StoredArray, count: number, what: string) {
  const expected = Math.max(1, chunkShape[0] ?? 1) * dataType.itemSize;
  if (items.length === expected) return items.subarray(0, count * dataType.itemSize);
  throw new ZpublishError("corrupt-chunk", `${what} has ${items.length} bytes, expected ${expected}`);
}

/** Returns the first texts of a chunk, each with its length before it. */
function textsOf(items: Uint8Array, count: number, what: string): Uint8Array {
  const view = new DataView(items.buffer, items.byteOffset, items.length);
  let at = LENGTH_BYTES;
  for (let i = 0; i < count; i++) {
    const end = at + LENGTH_BYTES;
    at = end <= items.length ? end + view.getUint32(at, true) : Number.POSITIVE_INFINITY;
    if (at > items.length)
      throw new ZpublishError("corrupt-chunk", `${what}: expected ${count} texts, received ${i}`);
  }
  return items.subarray(LENGTH_BYTES, at);
}

function filled({ dataType, fill }: StoredArray, count: number): Uint8Array {
  const itemSize = dataType.kind === "O" ? (fill.item?.length ?? LENGTH_BYTES) : dataType.itemSize;
  const bytes = new Uint8Array(count * itemSize);
  fillBuffer(bytes, fill.item);
  return bytes;
}
