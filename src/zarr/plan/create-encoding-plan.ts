import { createHash } from "node:crypto";
import { ZpublishError } from "../../errors.js";
import { elementCount, gridShapeOf } from "../../model/data-tree.js";
import type { CodecSpec, CodecStep } from "../codec-step.js";
import type { StoredArray } from "../stored-array.js";
import type { ArrayDocument } from "../v2.js";
import { completeCodec, decodeProblem, encodeProblem } from "./codec-rules.js";
import {
  type AskedCodecs,
  commonLength,
  createSteps,
  fillSteps,
  servedCodecs,
  storedByteLengthOf,
  writableChain,
} from "./codec-steps.js";
import {
  type ChunkLayout,
  type ComputeStep,
  type EncodingPlan,
  growthOf,
  planId,
  unservable,
  type VariantSteps,
} from "./encoding-plan.js";

/** Largest decoded chunk in memory, in bytes. */
const DEFAULT_MAX_CHUNK_BYTES = 2 ** 30;
/** Largest chunk that is encoded, in bytes: numcodecs.js traps somewhere above. */
export const MAX_ENCODE_BYTES = 512 * 2 ** 20;

/** The encoding that an operator asks for; what is undefined stays as stored. */
export interface EncodingRequest extends AskedCodecs {
  /** Elements per axis, each at least 1. */
  readonly chunkShape?: readonly number[] | undefined;
}

/**
 * Largest number of stored chunks in a served one: every request looks at each of them, to see whether it was
 * rewritten.
 */
export const MAX_STORED_CHUNKS = 65_536;

/** Bounds of the server, and the revision of its encoders. */
interface EncodingOptions {
  /** Larger chunks are passed through but not decoded. Default 1 GiB. */
  readonly maxChunkBytes?: number | undefined;
  /**
   * Names what a codec's bytes depend on besides `CODEC_REVISION`; part of the plan's id. It may be absent if the
   * plan's chunks are never shared with other processes.
   */
  readonly encoderRevision?: (codec: CodecSpec) => string;
}

/** An array's plan and document. All of it frozen, plain data. */
export interface PlannedArray {
  readonly plan: EncodingPlan;
  readonly document: ArrayDocument;
  /** Same as in `ServedCodecs`. */
  readonly replacedCname: string | undefined;
}

/**
 * Plans how an array's served chunks are made from the stored ones, with as little work as possible, and writes the
 * `.zarray` that describes them. Stored bytes are passed through if they are what is asked. If the chunks are the same,
 * only the codecs that differ are applied; otherwise chunks are taken apart and put together again.
 * @throws ZpublishError, naming the array: `unsupported` if it cannot be served as asked, `invalid-config` if what is
 * asked is not valid.
 */
export function createEncodingPlan(
  stored: StoredArray,
  asked: EncodingRequest,
  options: EncodingOptions = {},
): PlannedArray {
  const maxChunkBytes = options.maxChunkBytes ?? DEFAULT_MAX_CHUNK_BYTES;
  const { path, shape, dataType } = stored;
  const storedShape = stored.chunkShape.map(atLeastOne);
  const servedShape = servedChunkShape(stored, asked);
  const storedOrder = orderOf(stored.axisOrder, storedShape);
  const isRechunk =
    storedOrder === undefined || servedShape.some((length, axis) => length !== storedShape[axis]);
  const codecs = servedCodecs(stored, asked, isRechunk);
  const servedChain = [...codecs.filters, ...(codecs.compressor === null ? [] : [codecs.compressor])];

  const order = storedOrder ?? "C";
  const storedLayout = layoutOf(shape, storedShape, stored.axisOrder);
  const layouts = {
    stored: storedLayout,
    // Short axes may make an order look like C or F. While chunks stay the same, it is still the stored one.
    served: isRechunk ? layoutOf(shape, servedShape, axisOrderOf(order, shape.length)) : storedLayout,
  };
  const common = isRechunk ? 0 : commonLength(stored.codecs, servedChain);
  const storedSteps = createSteps(stored, stored.codecs, storedShape, maxChunkBytes);
  const servedSteps = createSteps(stored, servedChain, servedShape, maxChunkBytes);
  const decode = storedSteps.slice(common).reverse();
  const encode = servedSteps.slice(common);
  const isPassthrough = !isRechunk && decode.length === 0 && encode.length === 0;

  const work: Work = { isRechunk, storedShape, servedShape, decode, encode };
  assertPossible(stored, work);
  const chain = isRechunk ? undefined : servedChain;
  const variantSteps = createVariantSteps(stored, storedShape, chain, maxChunkBytes);
  if (!isPassthrough || variantSteps !== undefined) {
    assertByteLengths(stored, work, maxChunkBytes);
    if (variantSteps !== undefined) assertByteLength(stored, "served", servedShape, MAX_ENCODE_BYTES);
  }

  const fields: Omit<EncodingPlan, "id" | "source"> = {
    kind: isPassthrough ? "passthrough" : isRechunk ? "rechunk" : "recompress",
    path,
    shape,
    itemSize: dataType.itemSize,
    fillItem: stored.fill.item,
    absentIsAbsent: stored.fill.absentIsServed,
    maxFilledByteLength: Math.min(maxChunkBytes, MAX_ENCODE_BYTES),
    storedByteLength: storedByteLengthOf(stored, storedSteps, storedShape),
    ...layouts,
    decode,
    encode,
    encodeAll: stored.fill.absentIsServed ? [] : fillSteps(stored, servedChain, servedShape, maxChunkBytes),
    ...(variantSteps && { variants: variantSteps }),
  };
  const id = planId(fields, options.encoderRevision, growthOf(stored.chunks, fields)?.axis);
  return {
    plan: Object.freeze({ ...fields, id, source: stored.chunks }),
    document: documentOf(stored, servedShape, codecs, order),
    replacedCname: codecs.replacedCname,
  };
}

/**
 * Creates the steps of stored chunks whose codecs differ; undefined if none do. What is encoded of them has to decode with the served options, not to be
 * encoded with them, as for chunks of fill values.
 * @param servedChain Served codecs; undefined if chunks are put together again, and encoded anyway.
 * @throws ZpublishError `unsupported`, naming the array, if such a chunk cannot be decoded or encoded.
 */
function createVariantSteps(
  stored: StoredArray,
  storedShape: readonly number[],
  servedChain: readonly CodecSpec[] | undefined,
  maxChunkBytes: number,
): VariantSteps | undefined {
  const { dataType, variants = [] } = stored;
  if (variants.length === 0) return undefined;
  if (dataType.kind === "O") throw differing(stored, `items of ${dataType.numpyName} have no fixed size`);
  const encoded = writableChain(servedChain ?? []);
  const problems = [
    ...variants.flat().map((codec) => decodeProblem(completeCodec(codec))),
    ...encoded.map((codec) => encodeProblem(completeCodec(codec))),
  ];
  const problem = problems.find((each) => each !== undefined);
  if (problem !== undefined) throw differing(stored, problem);
  return Object.freeze({
    decode: variants.map((codecs) => createSteps(stored, codecs, storedShape, maxChunkBytes).reverse()),
    encode: createSteps(stored, encoded, storedShape, maxChunkBytes),
  });
}

function differing(stored: StoredArray, problem: string): Error {
  const reason =
    stored.chunks.kind === "parts"
      ? "some of its chunks would have to be put together from several stored ones"
      : "some of its chunks have other codecs and would have to be decoded";
  return unservable(stored, `${reason}, but ${problem}`);
}

/** Shapes of chunks, and the steps between stored and served ones. */
interface Work {
  readonly isRechunk: boolean;
  readonly storedShape: readonly number[];
  readonly servedShape: readonly number[];
  readonly decode: readonly CodecStep[];
  readonly encode: readonly CodecStep[];
}

/** Asserts that chunks can be put together again, decoded and encoded. */
function assertPossible(stored: StoredArray, work: Work): void {
  const { isRechunk, storedShape, servedShape, decode, encode } = work;
  const { kind, numpyName } = stored.dataType;
  if (isRechunk && kind === "O") {
    const reason = `items of ${numpyName} have no fixed size, so its chunks cannot be put together again`;
    throw unservable(stored, reason);
  }
  if (isRechunk) assertFewChunks(stored, storedShape, servedShape);
  for (const { codec } of decode) assertNoProblem(stored, decodeProblem(codec));
  for (const { codec } of encode) assertNoProblem(stored, encodeProblem(codec));
}

function assertByteLengths(stored: StoredArray, work: Work, maxChunkBytes: number): void {
  const { storedShape, servedShape, decode, encode } = work;
  const isViewed = stored.chunks.kind === "memory" && decode.length === 0;
  if (!isViewed) assertByteLength(stored, "stored", storedShape, maxChunkBytes);
  assertByteLength(stored, "served", servedShape, maxChunkBytes);
  if (encode.length > 0) assertByteLength(stored, "served", servedShape, MAX_ENCODE_BYTES);
}

function documentOf(
  { shape, dataType, fill }: StoredArray,
  chunks: readonly number[],
  { compressor, filters }: ReturnType<typeof servedCodecs>,
  order: "C" | "F",
): ArrayDocument {
  return Object.freeze({
    chunks,
    compressor,
    dimension_separator: ".",
    dtype: dataType.zarr,
    fill_value: fill.served,
    filters: filters.length === 0 ? null : filters,
    order,
    shape,
    zarr_format: 2,
  });
}

/** Zarr v2 has no chunks of length 0. */
function atLeastOne(length: number): number {
  return Math.max(1, length);
}

function servedChunkShape(stored: StoredArray, asked: EncodingRequest): number[] {
  const { path, shape } = stored;
  const chunkShape = asked.chunkShape ?? stored.servedChunks;
  if (chunkShape === undefined) return stored.chunkShape.map(atLeastOne);
  if (chunkShape.length !== shape.length) {
    throw new ZpublishError(
      "unsupported",
      `array '${path}': chunks: expected ${shape.length} lengths, received ${chunkShape.length}`,
    );
  }
  // A length that nothing asks for is the stored one, which may be 0 along an empty axis.
  const lengths = chunkShape.map((length, axis) => (length === 0 && shape[axis] === 0 ? 1 : length));
  for (const length of lengths) {
    if (Number.isSafeInteger(length) && length >= 1) continue;
    throw new ZpublishError(
      "invalid-config",
      `array '${path}': chunks: expected lengths of at least 1, received ${length}`,
    );
  }
  return lengths;
}

/** Returns v2's name of an axis order; undefined if it has none. Axes of length 1 may stand anywhere. */
function orderOf(axisOrder: readonly number[], chunkShape: readonly number[]): "C" | "F" | undefined {
  const isReversed = axisOrder.every((axis, position) => axis === axisOrder.length - 1 - position);
  if (isReversed && axisOrder.length > 1) return "F";
  const long = axisOrder.filter((axis) => chunkShape[axis] !== 1);
  if (long.every((axis, index) => index === 0 || axis > long[index - 1]!)) return "C";
  return long.every((axis, index) => index === 0 || axis < long[index - 1]!) ? "F" : undefined;
}

function axisOrderOf(order: "C" | "F", dimensionCount: number): number[] {
  const axes = Array.from({ length: dimensionCount }, (_, axis) => axis);
  return order === "C" ? axes : axes.reverse();
}

function layoutOf(
  shape: readonly number[],
  chunkShape: readonly number[],
  axisOrder: readonly number[],
): ChunkLayout {
  return Object.freeze({ chunkShape, gridShape: gridShapeOf(shape, chunkShape), axisOrder });
}

function assertByteLength(
  stored: StoredArray,
  which: "stored" | "served",
  chunkShape: readonly number[],
  maxBytes: number,
): void {
  const byteLength = elementCount(chunkShape) * stored.dataType.itemSize;
  if (byteLength <= maxBytes) return;
  throw unservable(
    stored,
    `expected ${which} chunks of at most ${maxBytes} bytes, received (${chunkShape.join(", ")}), which is ${byteLength}`,
  );
}

function assertFewChunks(
  stored: StoredArray,
  storedShape: readonly number[],
  servedShape: readonly number[],
): void {
  const counts = stored.shape.map((length, axis) => {
    const served = Math.min(servedShape[axis]!, length);
    // One more than fit into it, since its ends may lie inside of stored chunks.
    return Math.min(Math.ceil(served / storedShape[axis]!) + 1, Math.ceil(length / storedShape[axis]!));
  });
  const count = elementCount(counts);
  if (count <= MAX_STORED_CHUNKS) return;
  throw unservable(
    stored,
    `expected served chunks of at most ${MAX_STORED_CHUNKS} stored ones, received (${servedShape.join(", ")}), ` +
      `which may be ${count} of (${storedShape.join(", ")})`,
  );
}

function assertNoProblem(stored: StoredArray, problem: string | undefined): void {
  if (problem !== undefined) throw unservable(stored, problem);
}

/**
 * Lists the coordinates of the stored chunks that a served chunk is made of, in C order.
 * @param chunkCoords Coordinates in the served grid.
 */
export function storedChunksOf(plan: EncodingPlan, chunkCoords: readonly number[]): number[][] {
  if (plan.kind !== "rechunk") return [[...chunkCoords]];
  let coordinates: number[][] = [[]];
  plan.shape.forEach((length, axis) => {
    const served = plan.served.chunkShape[axis]!;
    const stored = plan.stored.chunkShape[axis]!;
    const begin = chunkCoords[axis]! * served;
    const end = Math.min(begin + served, length);
    const next: number[][] = [];
    for (const prefix of coordinates) {
      for (let index = Math.floor(begin / stored); index * stored < end; index++)
        next.push([...prefix, index]);
    }
    coordinates = next;
  });
  return coordinates;
}

/**
 * Combines the versions of the stored chunks that a served chunk is made of: a hash, or the version of a single chunk.
 * @param versions In the order of the chunks; undefined for an absent one.
 * @returns Text of `[0-9a-z.]`, at most 32 characters unless a single version is longer.
 */
export function combineVersions(versions: readonly (string | undefined)[]): string {
  if (versions.length === 1) return versions[0] ?? "absent";
  const hash = createHash("sha256");
  for (const version of versions) hash.update(version === undefined ? "-," : `${version},`);
  return hash.digest("hex").slice(0, 20);
}

/** Largest box that is gathered, in bytes: one array buffer, of which a worker has two. */
const MAX_BOX_BYTES = 2 ** 30;

/** Chunks that are computed from boxes of another array. */
interface ComputeRequest {
  /** Path in messages. */
  readonly path: string;
  /** Elements per axis of a box. */
  readonly box: readonly number[];
  readonly compute: ComputeStep;
  /** Steps that encode what was computed. */
  readonly encode: readonly CodecStep[];
  /** Whether a box of absent chunks makes an absent chunk. Otherwise it is computed from fill values. */
  readonly absentIsAbsent: boolean;
}

/**
 * Plans chunks that are computed from boxes of an array, in C order.
 * @throws ZpublishError `unsupported`, naming the array, if it cannot be decoded, or a box is too large.
 */
export function createComputePlan(
  array: StoredArray,
  { path, box, compute, encode, absentIsAbsent }: ComputeRequest,
  options: EncodingOptions = {},
): EncodingPlan {
  const boxBytes = elementCount(box) * array.dataType.itemSize;
  const maxBytes = Math.min(options.maxChunkBytes ?? MAX_BOX_BYTES, MAX_BOX_BYTES);
  if (boxBytes > maxBytes) {
    throw new ZpublishError(
      "unsupported",
      `array '${path}': expected boxes of at most ${maxBytes} bytes, received (${box.join(", ")}), which is ${boxBytes}`,
    );
  }
  const asked = { chunkShape: box, compressor: null, filters: null };
  const { id: _id, source, ...read } = createEncodingPlan(array, asked, options).plan;
  const fields: Omit<EncodingPlan, "id" | "source"> = {
    ...read,
    // Also if the stored chunks are the boxes: their items are worked on.
    kind: "rechunk",
    path,
    absentIsAbsent,
    served: Object.freeze({
      chunkShape: box,
      gridShape: gridShapeOf(array.shape, box),
      axisOrder: array.shape.map((_, axis) => axis),
    }),
    encode,
    encodeAll: [],
    compute,
  };
  const id = planId(fields, options.encoderRevision, growthOf(source, fields)?.axis);
  return Object.freeze({ ...fields, id, source });
}
