import { createHash } from "node:crypto";
import { isLosslessNumber } from "lossless-json";
import type { ColourBands } from "../../cf/image-data.js";
import type { Packing } from "../../cf/packing.js";
import type { ColourScaleName } from "../../colour/colour-scales.js";
import { ZpublishError } from "../../errors.js";
import type { JsonValue } from "../../json/json-value.js";
import { stringifyJson } from "../../json/stringify-json.js";
import type { DataType } from "../../model/data-type.js";
import type { ChunkSource, JoinedAxis } from "../chunk-reader.js";
import type { CodecSpec, CodecStep } from "../codec-step.js";

/**
 * The plan by which the chunks of one served array are made from stored ones. It is made when the dataset opens, and is
 * plain data that crosses threads; a request only looks it up.
 *
 * - `passthrough`: the stored bytes are the served bytes.
 * - `recompress`: same grid, item order and type; the outer codecs differ. Needs bytes, not the type.
 * - `files`: whole stored files are the served chunks, such as shards, and are read by range. Nothing is known of their length.
 * - `rechunk`: items of a known size move between grids or axis orders. Needs the item size, not the type.
 */
export interface EncodingPlan {
  readonly kind: "passthrough" | "files" | "recompress" | "rechunk";
  /**
   * Hash of all fields below that decide the served bytes, and of the version of the codecs. The length of a joined array along its axis
   * is not among them if the versions of its chunks say it ({@link growthOf}).
   */
  readonly id: string;
  readonly path: string;
  readonly shape: readonly number[];
  /** Bytes of an item; 0 for object types (never in a `rechunk`). */
  readonly itemSize: number;
  /** One item; null for zero bytes. An item of an object type is as vlen-utf8 and vlen-bytes write it. */
  readonly fillItem: Uint8Array | null;
  /** Whether a served chunk whose stored chunks are all absent is absent itself. Otherwise it is served filled. */
  readonly absentIsAbsent: boolean;
  /** Largest filled chunk, in bytes before it is encoded. */
  readonly maxFilledByteLength: number;
  readonly source: ChunkSource;
  /** Byte length of every stored chunk; null if it differs from chunk to chunk. */
  readonly storedByteLength: number | null;
  readonly stored: ChunkLayout;
  readonly served: ChunkLayout;
  /** Steps that decode stored bytes, in that order. Empty for passthrough. */
  readonly decode: readonly CodecStep[];
  /** Steps that encode after that, in order. Empty for passthrough. */
  readonly encode: readonly CodecStep[];
  /**
   * Steps from raw items to served bytes, for filled chunks in any kind of plan. For object types, the steps after the
   * filter that makes bytes of their items.
   */
  readonly encodeAll: readonly CodecStep[];
  /** Steps of stored chunks whose codecs differ from the array's. Undefined if there are none. */
  readonly variants?: VariantSteps;
  /** Work on the items of a gathered chunk before they are encoded: for coarser levels and pictures. Only in a `rechunk`. */
  readonly compute?: ComputeStep;
}

/** Steps of chunks whose codecs differ: they are decoded to raw items. */
export interface VariantSteps {
  /** By variant, the first for 1; in the order of decoding. */
  readonly decode: readonly (readonly CodecStep[])[];
  /** Steps from raw items to served bytes; empty for a `rechunk`, whose `encode` begins with raw items anyway. */
  readonly encode: readonly CodecStep[];
}

/** Layout of stored or served chunks in memory and in their grid. */
export interface ChunkLayout {
  readonly chunkShape: readonly number[];
  readonly gridShape: readonly number[];
  readonly axisOrder: readonly number[];
}

/**
 * Work on the items of a gathered box before they are encoded: of a plan of kind `rechunk`. `shape`, `stored` and `served` of such a
 * plan describe the array that is read; its `served` chunks are the boxes that are gathered. Plain data.
 */
export type ComputeStep = CoarsenStep | PictureStep | LineStep;

/**
 * How cells of the level below become one of the level above. Missing values are left out, but by `nearest`, which takes the first cell
 * of each block. Of values that are equally frequent `mode` takes the smallest.
 */
export type CoarsenMethod = "mean" | "nearest" | "max" | "mode";

/** How an array comes to a coarser level. `bounds` merges the two bounds of each cell of an axis into the bounds of the coarser cell. */
export type LevelMethod = CoarsenMethod | "bounds";

/** Makes a chunk of a coarser level, in C order. */
export interface CoarsenStep {
  readonly kind: "coarsen";
  readonly method: LevelMethod;
  /** Cells per axis that become one: 2 along horizontal axes, else 1. */
  readonly factors: readonly number[];
  /** Type of the items that are read. */
  readonly from: DataType;
  /** Type of the items that are made. */
  readonly to: DataType;
  /**
   * Packing of the items that are read; its valid range is not applied, as in xarray. Means are written unpacked if `to` is a float, and
   * else rounded half to even. All other methods select items, and `to` is `from`.
   */
  readonly packing: Packing;
  /** One item of the type `to` that stands for a missing value; null for zero bytes. */
  readonly missingItem: Uint8Array | null;
  /** One item of the type `to` for cells outside of the array; null for zero bytes. */
  readonly fillItem: Uint8Array | null;
  /** Names what the bytes depend on besides. */
  readonly revision: string;
}

/** Makes a small picture (PNG) of a box whose axes have length 1 but for `y` and `x`. */
export interface PictureStep {
  readonly kind: "picture";
  readonly from: DataType;
  readonly packing: Packing;
  /** Axes of the box that run down and to the right. */
  readonly y: number;
  readonly x: number;
  /** Whether the first row is the lowest: latitudes ascend. */
  readonly isFlippedY: boolean;
  /** Whether the first column is the rightmost: longitudes descend. */
  readonly isFlippedX: boolean;
  /** Greatest width and height in pixels; the picture has the proportions of the box. */
  readonly width: number;
  readonly height: number;
  /** Range of the colours; undefined if the values of the picture decide. */
  readonly range?: readonly [low: number, high: number] | undefined;
  /** Default: a sequential scale, or a diverging one if the range is symmetric. */
  readonly scale?: ColourScaleName | undefined;
  readonly isReversed: boolean;
  /**
   * Values that are categories, in the order of their colours; others that occur follow them. Categories have no range and no scale.
   * Undefined if values are no categories.
   */
  readonly categories?: readonly number[] | undefined;
  /** Colours of the categories, three bytes each; undefined if they have none of their own. */
  readonly categoryColours?: Uint8Array | undefined;
  /** Bands of an image in colour, all of which the box has, from the first; undefined to show numbers. */
  readonly bands?: ColourBands | undefined;
  /** Names what the bytes depend on besides: colours, the way of drawing, and the encoder. */
  readonly revision: string;
}

/** Makes a small picture (PNG) of a box with one axis: its values as a line from left to right. */
export interface LineStep {
  readonly kind: "line";
  readonly from: DataType;
  readonly packing: Packing;
  /** Size in pixels. */
  readonly width: number;
  readonly height: number;
  /** Values at the bottom and the top; undefined if the values of the picture decide. */
  readonly range?: readonly [low: number, high: number] | undefined;
  /** Same as in {@link PictureStep}. */
  readonly revision: string;
}

/**
 * Part of every plan's id. Change it whenever an encoder, or the padding of chunks, writes other bytes than before, as a
 * new version of numcodecs.js may. {@link EncodingOptions.encoderRevision} has what depends on the machine or Node.
 */
const CODEC_REVISION = "2";

/**
 * Computes a plan's id.
 * @param encoderRevision Same as in `EncodingOptions`.
 * @param growing Axis whose length is left out, or {@link EVERY_AXIS}: versions of chunks say all that depends on it. Default: none.
 */
export function planId(
  fields: Omit<EncodingPlan, "id" | "source">,
  encoderRevision: (codec: CodecSpec) => string = () => "",
  growing?: number,
): string {
  const { fillItem, decode, encode, encodeAll, variants, compute } = fields;
  // Neither names nor bounds change bytes.
  const {
    path: _path,
    maxFilledByteLength: _maximum,
    variants: _variants,
    compute: _compute,
    ...rest
  } = fields;
  const kept = (lengths: readonly number[]) =>
    lengths.map((length, axis) => (axis === growing || growing === EVERY_AXIS ? null : length));
  const layoutOf = (layout: ChunkLayout) => ({ ...layout, gridShape: kept(layout.gridShape) });
  const text = stringifyJson({
    ...rest,
    shape: kept(fields.shape),
    revision: CODEC_REVISION,
    fillItem: fillItem && Buffer.from(fillItem).toString("hex"),
    stored: layoutOf(fields.stored),
    served: layoutOf(fields.served),
    decode: decode.map(withoutBound),
    encode: encode.map(withoutBound),
    encodeAll: encodeAll.map(withoutBound),
    ...(variants && {
      variants: {
        decode: variants.decode.map((steps) => steps.map(withoutBound)),
        encode: variants.encode.map(withoutBound),
      },
    }),
    // Plain data, but for bytes.
    ...(compute && {
      compute: JSON.stringify(compute, (_key, value) =>
        value instanceof Uint8Array ? Buffer.from(value).toString("hex") : value,
      ),
    }),
    encoders: [...encode, ...encodeAll, ...(variants?.encode ?? [])].map(({ codec }) =>
      encoderRevision(codec),
    ),
  });
  return createHash("sha256").update(text).digest().toString("hex", 0, 16);
}

function withoutBound({ maxDecodedByteLength: _maximum, ...step }: CodecStep) {
  return step;
}

/**
 * Converts every number in a value to a plain one. Structured clone strips lossless numbers of their class, so they must
 * not reach a worker.
 */
export function plainValue(value: JsonValue): JsonValue {
  if (typeof value === "bigint") return Number(value);
  if (typeof value !== "object" || value === null) return value;
  if (isLosslessNumber(value)) return Number(value.value);
  if (Array.isArray(value)) return value.map(plainValue);
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plainValue(item)]));
}

/** Makes an `unsupported` error that says why an array cannot be served as asked. */
export function unservable({ path }: { readonly path: string }, reason: string): ZpublishError {
  return new ZpublishError("unsupported", `array '${path}': ${reason}`);
}

/** In place of an axis: the array may grow along each. */
const EVERY_AXIS = -2;

/**
 * Returns the axis along which an array grows while its old chunks stay as they are: versions of its chunks name all that depends on its
 * length. Undefined if its bytes may depend on the length itself.
 */
export function growthOf(
  source: ChunkSource,
  { kind, compute, absentIsAbsent }: Pick<EncodingPlan, "kind" | "compute" | "absentIsAbsent">,
): JoinedAxis | undefined {
  const isPassed = kind === "passthrough" || kind === "files";
  const objects = source.kind === "files" || source.kind === "shards" ? source.objects : undefined;
  if (isPassed && objects?.isPinned) return { store: objects.store, axis: EVERY_AXIS };
  const joined = joinedAxisOf(source);
  if (joined === undefined || compute === undefined) return joined;
  // Chunks without a version would be computed from fill values, which end with the array.
  if (compute.kind !== "coarsen" || !absentIsAbsent) return undefined;
  return (compute.factors[joined.axis] ?? 1) === 1 ? joined : undefined;
}

function joinedAxisOf(source: ChunkSource): JoinedAxis | undefined {
  if (source.kind === "parts")
    return source.axis === undefined ? undefined : { store: source.store, axis: source.axis };
  return source.kind === "served" ? source.joined : undefined;
}
