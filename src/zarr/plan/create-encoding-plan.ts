import { ZpublishError } from "../../errors.js";
import { elementCount, gridShapeOf } from "../../model/chunk-grid.js";
import type { CodecSpec } from "../codec-spec.js";
import type { StoredArray } from "../stored-array.js";
import type { ArrayDocument } from "../v2/array-document.js";
import { decodeProblem, encodeProblem } from "./codec-rules.js";
import { createSteps, fillSteps, storedByteLengthOf } from "./codec-steps.js";
import { createVariantSteps } from "./create-variant-steps.js";
import type { ChunkLayout, EncodingPlan } from "./encoding-plan.js";
import { growthOf } from "./growth-of.js";
import { planId } from "./plan-id.js";
import { type AskedCodecs, commonLength, servedCodecs } from "./served-codecs.js";
import { unservable } from "./unservable.js";

/** Largest decoded chunk in memory, in bytes. */
const DEFAULT_MAX_CHUNK_BYTES = 2 ** 30;
/** Largest chunk that is encoded, in bytes: numcodecs.js traps somewhere above. */
const MAX_ENCODE_BYTES = 512 * 2 ** 20;

/** The encoding that an operator asks for; what is undefined stays as stored. */
export interface EncodingRequest extends AskedCodecs {
  /** Elements per axis, each at least 1. */
  readonly chunkShape?: readonly number[] | undefined;
}

/**
 * Largest number of stored chunks in a served one: every request looks at each of them, to see whether it was
 * rewritten.
 */
const MAX_STORED_CHUNKS = 65_536;

/** Bounds of the server, and the revision of its encoders. */
export interface EncodingOptions {
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

  if (isRechunk && dataType.kind === "O") {
    throw unservable(
      stored,
      `items of ${dataType.numpyName} have no fixed size, so its chunks cannot be put together again`,
    );
  }
  if (isRechunk) assertFewChunks(stored, storedShape, servedShape);
  for (const { codec } of decode) assertNoProblem(stored, decodeProblem(codec));
  for (const { codec } of encode) assertNoProblem(stored, encodeProblem(codec));
  const { variants = [] } = stored;
  const variantSteps =
    variants.length === 0
      ? undefined
      : createVariantSteps(stored, variants, storedShape, isRechunk ? undefined : servedChain, maxChunkBytes);
  if (!isPassthrough || variantSteps !== undefined) {
    const isViewed = stored.chunks.kind === "memory" && decode.length === 0;
    if (!isViewed) assertByteLength(stored, "stored", storedShape, maxChunkBytes);
    assertByteLength(stored, "served", servedShape, maxChunkBytes);
    if (encode.length > 0 || variantSteps !== undefined)
      assertByteLength(stored, "served", servedShape, MAX_ENCODE_BYTES);
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
  const document: ArrayDocument = {
    chunks: servedShape,
    compressor: codecs.compressor,
    dimension_separator: ".",
    dtype: dataType.zarr,
    fill_value: stored.fill.served,
    filters: codecs.filters.length === 0 ? null : codecs.filters,
    order,
    shape,
    zarr_format: 2,
  };
  const { chunks } = stored;
  const id = planId(fields, options.encoderRevision, growthOf(chunks, fields)?.axis);
  return {
    plan: Object.freeze({ ...fields, id, source: chunks }),
    document: Object.freeze(document),
    replacedCname: codecs.replacedCname,
  };
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
