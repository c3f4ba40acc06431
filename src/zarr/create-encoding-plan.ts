import { createHash } from "node:crypto";
import { ZpublishError } from "../errors.js";
import { elementCount, gridShapeOf } from "../model/chunk-grid.js";
import { stringifyJson } from "../model/stringify-json.js";
import type { StoredArray } from "../source/source.js";
import { decodeProblem, encodeProblem } from "./codec-rules.js";
import type { CodecSpec } from "./codec-spec.js";
import { createSteps, fillSteps } from "./codec-steps.js";
import type { ChunkLayout, CodecStep, EncodingPlan } from "./encoding-plan.js";
import { refuse } from "./refuse.js";
import { type AskedCodecs, commonLength, servedCodecs } from "./served-codecs.js";
import { storedByteLengthOf } from "./stored-byte-length-of.js";
import type { ArrayDocument } from "./v2-documents.js";

/**
 * Part of every plan's id. To be changed whenever an encoder, or the padding of chunks, gives other bytes than before:
 * a new version of numcodecs.js, say. What differs from one machine or Node to another is in
 * {@link EncodingOptions.encoderRevision}.
 */
export const CODEC_REVISION = "2";

/** Largest decoded chunk that is held in memory, of bytes. */
const DEFAULT_MAX_CHUNK_BYTES = 2 ** 30;
/** Largest chunk that is encoded: numcodecs.js ends in a trap somewhere above. */
const MAX_ENCODE_BYTES = 512 * 2 ** 20;

/** How an array is asked to be served; what is undefined stays as stored. */
export interface EncodingRequest extends AskedCodecs {
  /** Elements per axis, each at least 1. */
  readonly chunkShape?: readonly number[] | undefined;
}

/**
 * Stored chunks that one served chunk may be put together from: each is looked at for every request, to see whether it
 * was rewritten.
 */
const MAX_STORED_CHUNKS = 65_536;

export interface EncodingOptions {
  /** Larger chunks are passed through but not decoded. Default 1 GiB. */
  readonly maxChunkBytes?: number | undefined;
  /**
   * What a codec's bytes depend on besides {@link CODEC_REVISION}: where it gives something else, the plan has another id.
   * Absent: nothing, which is right only where no chunk of the plan is ever told from another process's by its id.
   */
  readonly encoderRevision?: (codec: CodecSpec) => string;
}

/**
 * Settles how the chunks of an array are made from the stored ones, and the `.zarray` that says so. The less work the
 * better: passed through where the stored bytes are what is asked, only the codecs that differ redone where the chunks
 * are the same, taken apart and put together anew otherwise.
 * @returns Both frozen, plain data.
 * @throws ZpublishError, naming the array: `unsupported` where it cannot be served as asked, `invalid-config` where what
 * is asked makes no sense.
 */
export function createEncodingPlan(
  stored: StoredArray,
  asked: EncodingRequest,
  options: EncodingOptions = {},
): { readonly plan: EncodingPlan; readonly document: ArrayDocument } {
  const maxChunkBytes = options.maxChunkBytes ?? DEFAULT_MAX_CHUNK_BYTES;
  const { path, shape, dataType } = stored;
  const storedShape = stored.chunkShape.map(atLeastOne);
  const servedShape = servedChunkShape(stored, asked);
  const storedOrder = orderOf(stored.axisOrder, storedShape);
  const codecs = servedCodecs(stored, asked);
  const servedChain = [...codecs.filters, ...(codecs.compressor === null ? [] : [codecs.compressor])];

  const isRechunk =
    storedOrder === undefined || servedShape.some((length, axis) => length !== storedShape[axis]);
  const order = storedOrder ?? "C";
  const storedLayout = layoutOf(shape, storedShape, stored.axisOrder);
  const layouts = {
    stored: storedLayout,
    // An order that only looks like C or F because axes are short is still the stored one while chunks stay the same.
    served: isRechunk ? layoutOf(shape, servedShape, axisOrderOf(order, shape.length)) : storedLayout,
  };
  const common = isRechunk ? 0 : commonLength(stored.codecs, servedChain);
  const storedSteps = createSteps(stored, stored.codecs, storedShape, maxChunkBytes);
  const servedSteps = createSteps(stored, servedChain, servedShape, maxChunkBytes);
  const decode = storedSteps.slice(common).reverse();
  const encode = servedSteps.slice(common);
  const isPassthrough = !isRechunk && decode.length === 0 && encode.length === 0;

  if (isRechunk && dataType.kind === "O") {
    refuse(stored, `items of ${dataType.numpyName} have no fixed size, so its chunks cannot be made anew`);
  }
  if (isRechunk) refuseManyChunks(stored, storedShape, servedShape);
  for (const { codec } of decode) refuseProblem(stored, decodeProblem(codec));
  for (const { codec } of encode) refuseProblem(stored, encodeProblem(codec));
  if (!isPassthrough) {
    const isViewed = stored.chunks.kind === "memory" && decode.length === 0;
    if (!isViewed) refuseLarge(stored, "stored", storedShape, maxChunkBytes);
    refuseLarge(stored, "served", servedShape, maxChunkBytes);
    if (encode.length > 0) refuseLarge(stored, "served", servedShape, MAX_ENCODE_BYTES);
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
  return {
    plan: Object.freeze({ ...fields, id: planId(fields, options.encoderRevision), source: stored.chunks }),
    document: Object.freeze(document),
  };
}

/** Zarr v2 knows no chunk of length 0. */
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
  // What is said nothing about comes as it is stored, which may be 0 along an empty axis.
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

/** How v2 calls an axis order; undefined where it cannot. Axes of length 1 may stand anywhere. */
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

function planId(
  fields: Omit<EncodingPlan, "id" | "source">,
  encoderRevision: EncodingOptions["encoderRevision"] = () => "",
): string {
  const { fillItem, stored, served, decode, encode, encodeAll } = fields;
  // Neither names nor bounds change bytes.
  const { path: _path, maxFilledByteLength: _maximum, ...rest } = fields;
  const text = stringifyJson({
    ...rest,
    revision: CODEC_REVISION,
    fillItem: fillItem && Buffer.from(fillItem).toString("hex"),
    stored: { ...stored },
    served: { ...served },
    decode: decode.map(withoutBound),
    encode: encode.map(withoutBound),
    encodeAll: encodeAll.map(withoutBound),
    encoders: [...encode, ...encodeAll].map(({ codec }) => encoderRevision(codec)),
  });
  return createHash("sha256").update(text).digest().toString("hex", 0, 16);
}

function withoutBound({ maxDecodedByteLength: _maximum, ...step }: CodecStep) {
  return step;
}

function refuseLarge(
  stored: StoredArray,
  which: "stored" | "served",
  chunkShape: readonly number[],
  maxBytes: number,
): void {
  const byteLength = elementCount(chunkShape) * stored.dataType.itemSize;
  if (byteLength <= maxBytes) return;
  refuse(
    stored,
    `expected ${which} chunks of at most ${maxBytes} bytes, received (${chunkShape.join(", ")}), which is ${byteLength}`,
  );
}

function refuseManyChunks(
  stored: StoredArray,
  storedShape: readonly number[],
  servedShape: readonly number[],
): void {
  const counts = stored.shape.map((length, axis) => {
    const served = Math.min(servedShape[axis]!, length);
    // One more than fit into it, where its ends do not fall on theirs.
    return Math.min(Math.ceil(served / storedShape[axis]!) + 1, Math.ceil(length / storedShape[axis]!));
  });
  const count = elementCount(counts);
  if (count <= MAX_STORED_CHUNKS) return;
  refuse(
    stored,
    `expected served chunks of at most ${MAX_STORED_CHUNKS} stored ones, received (${servedShape.join(", ")}), ` +
      `which may be ${count} of (${storedShape.join(", ")})`,
  );
}

function refuseProblem(stored: StoredArray, problem: string | undefined): void {
  if (problem !== undefined) refuse(stored, problem);
}
