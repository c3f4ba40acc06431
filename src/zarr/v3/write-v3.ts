import { isJsonObject, type JsonObject, type JsonValue } from "../../json/json-value.js";
import { gridShapeOf } from "../../model/data-tree.js";
import type { DataType } from "../../model/data-type.js";
import { floatOf } from "../../model/fill-value.js";
import type { CodecSpec } from "../codec-step.js";
import { withoutKey } from "../metadata-fields.js";
import { bloscShuffleOf, completeCodec } from "../plan/codec-rules.js";
import type { PlannedArray } from "../plan/create-encoding-plan.js";
import { type EncodingPlan, growthOf, planId, unservable } from "../plan/encoding-plan.js";
import type { StoredArray, StoredV3Form } from "../stored-array.js";
import { ARRAY_FILTERS, BLOSC_SHUFFLE_NAMES, BYTE_CODECS } from "./v3-codecs.js";
import { type V3TypeName, v3FillValue, v3TypeName } from "./v3-data-type.js";

/** An array as it is served in Zarr v3. Frozen, plain data. */
export interface V3Array {
  /** The `zarr.json` that is served. */
  readonly document: JsonObject;
  /** Plan of its chunks: the plan of v2, unless stored files are served that v2 cannot describe. */
  readonly plan: EncodingPlan;
}

/**
 * Describes an array in Zarr v3, with the chunks that v2 serves. Files of a v3 store stay as they are, shards too, unless the
 * operator asks for another encoding.
 * @param dims Dimension names.
 * @param isAsked Whether the operator asks for another encoding than the stored one.
 * @throws ZpublishError `unsupported`, naming the array, if v3 has no name for its type or a codec.
 */
export function writeV3(
  stored: StoredArray,
  { plan, document }: PlannedArray,
  dims: readonly string[],
  isAsked: boolean,
): V3Array {
  const { v3, dataType, shape } = stored;
  const isAsStored = v3 !== undefined && isServedAsStored(stored, isAsked);
  const serializer = serializerOf(stored, document.filters?.[0]?.id);
  const type = serializer === undefined ? v3TypeName(dataType, stored) : OBJECT_TYPES[serializer];
  return Object.freeze({
    document: Object.freeze({
      zarr_format: 3,
      node_type: "array",
      shape,
      data_type: v3?.dataType ?? type.dataType,
      chunk_grid: {
        name: "regular",
        configuration: { chunk_shape: isAsStored ? v3.fileShape : document.chunks },
      },
      chunk_key_encoding: { name: "default", configuration: { separator: "/" } },
      fill_value: v3?.fillValue ?? v3FillValue(document.fill_value, dataType),
      codecs: isAsStored ? v3.codecs : writeCodecs(),
      attributes: v3?.attrs ?? maskedAttributes(stored.attrs, document.fill_value, dataType),
      dimension_names: dims,
      storage_transformers: [],
    }),
    plan: isAsStored && !servesFiles(plan) ? createFilesPlan(stored, v3) : plan,
  });

  function writeCodecs(): JsonValue {
    const filters = (document.filters ?? []).slice(serializer === undefined ? 0 : 1);
    const codecs = document.compressor === null ? filters : [...filters, document.compressor];
    const chain = { path: stored.path, dataType, order: document.order, rank: shape.length, codecs };
    return v3Codecs(chain, serializer, type.endian);
  }
}

/** Tells whether an array is served with the codecs and the grid that its stored `zarr.json` has. @param isAsked As for {@link writeV3}. */
export function isServedAsStored({ v3, axes }: StoredArray, isAsked: boolean): boolean {
  // Few clients read other grids than regular ones.
  return v3 !== undefined && v3.codecs !== null && !isAsked && axes === undefined;
}

/** A chain of codecs of a served array, in the terms of v2. */
interface V2Chain {
  readonly path: string;
  readonly dataType: DataType;
  readonly order: "C" | "F";
  readonly rank: number;
  /** Filters and compressor, innermost first; without the filter that makes bytes of items without a fixed size. */
  readonly codecs: readonly CodecSpec[];
}

/**
 * Writes the `codecs` of an array in v3: transpose, filters on values, `bytes` or a serializer, filters on bytes.
 * @param serializer `vlen-utf8` or `vlen-bytes` for items without a fixed size; else the codec is `bytes`.
 * @throws ZpublishError `unsupported`, naming the array, if v3 cannot say it.
 */
function v3Codecs(
  { path, dataType, order, rank, codecs }: V2Chain,
  serializer: "vlen-utf8" | "vlen-bytes" | undefined,
  endian: V3TypeName["endian"],
): JsonObject[] {
  const written: JsonObject[] = [];
  if (order === "F" && rank > 1)
    written.push({
      name: "transpose",
      configuration: { order: Array.from({ length: rank }, (_, i) => rank - 1 - i) },
    });
  const isOnValues = ({ id }: CodecSpec) => ARRAY_FILTERS.has(id);
  const firstOnBytes = codecs.findIndex((codec) => !isOnValues(codec));
  const valueCount = firstOnBytes < 0 ? codecs.length : firstOnBytes;
  const onValues = codecs.slice(0, valueCount);
  // There a filter's output has the byte order of the codec `bytes`; in v2 the filter says its own.
  if (onValues.some(isBigEndian))
    throw unservable({ path }, "Zarr v3 cannot say a filter on big-endian values");
  written.push(...onValues.map(numcodec));
  if (serializer !== undefined) written.push({ name: serializer });
  else if (valueCount > 0) written.push({ name: "bytes", configuration: { endian: "little" } });
  else written.push(endian === undefined ? { name: "bytes" } : { name: "bytes", configuration: { endian } });
  // Blosc's typesize only helps an encoder; no client here encodes.
  const itemSize = Math.max(1, dataType.itemSize);
  for (const codec of codecs.slice(valueCount)) {
    if (!BYTE_CODECS.has(codec.id)) {
      const problem = isOnValues(codec)
        ? `the filter ${codec.id} behind one on bytes`
        : `the codec ${codec.id}`;
      throw unservable({ path }, `Zarr v3 has no name for ${problem}`);
    }
    written.push(coreCodec(completeCodec(codec), itemSize) ?? numcodec(codec));
  }
  return written;
}

/** Writes a codec that the core specification or its registry names; undefined if only numcodecs does. */
function coreCodec(codec: CodecSpec, itemSize: number): JsonObject | undefined {
  switch (codec.id) {
    case "gzip":
      return { name: "gzip", configuration: { level: codec.level as JsonValue } };
    case "zstd":
      return { name: "zstd", configuration: { level: codec.level as JsonValue, checksum: false } };
    case "blosc": {
      const { cname, clevel, blocksize } = codec;
      const typesize = Math.min(255, itemSize);
      const shuffle = BLOSC_SHUFFLE_NAMES[bloscShuffleOf(codec.shuffle, itemSize)] ?? "noshuffle";
      return {
        name: "blosc",
        configuration: { typesize, cname, clevel, shuffle, blocksize } as JsonObject,
      };
    }
    default:
      return undefined;
  }
}

function isBigEndian(filter: CodecSpec): boolean {
  return Object.values(filter).some((value) => typeof value === "string" && value.startsWith(">"));
}

function numcodec({ id, ...configuration }: CodecSpec): JsonObject {
  return { name: `numcodecs.${id}`, configuration };
}

/** Whether the chunks of a plan are the stored files. */
function servesFiles({ kind, source }: EncodingPlan): boolean {
  return kind === "passthrough" && source.kind === "files";
}

/** Plans an array whose stored files are the served chunks: the steps that made them need not be known. */
function createFilesPlan(stored: StoredArray, { files, fileShape }: StoredV3Form): EncodingPlan {
  const axes = stored.shape.map((_, axis) => axis);
  const gridShape = gridShapeOf(stored.shape, fileShape);
  const layout = Object.freeze({ chunkShape: fileShape, gridShape, axisOrder: axes });
  const fields: Omit<EncodingPlan, "id" | "source"> = {
    kind: "files",
    path: stored.path,
    shape: stored.shape,
    itemSize: stored.dataType.itemSize,
    fillItem: stored.fill.item,
    absentIsAbsent: true,
    maxFilledByteLength: 0,
    storedByteLength: null,
    stored: layout,
    served: layout,
    decode: [],
    encode: [],
    encodeAll: [],
  };
  return Object.freeze({
    ...fields,
    id: planId(fields, undefined, growthOf(files, fields)?.axis),
    source: files,
  });
}

/** Types of items without a fixed size, by the codec that makes bytes of them. All versions of zarr-python 3 know these names. */
const OBJECT_TYPES = {
  "vlen-utf8": { dataType: "string", endian: undefined },
  "vlen-bytes": { dataType: "bytes", endian: undefined },
} as const;

/** @throws ZpublishError `unsupported`, naming the array */
function serializerOf(
  stored: StoredArray,
  filter: string | undefined,
): keyof typeof OBJECT_TYPES | undefined {
  if (stored.dataType.kind !== "O") return undefined;
  if (filter === "vlen-utf8" || filter === "vlen-bytes") return filter;
  throw unservable(stored, `Zarr v3 has no name for objects in ${filter}`);
}

const MASK = "_FillValue";

/**
 * Returns attributes with the missing-value mark as xarray writes it in v3 (`FillValueCoder` in xarray/backends/zarr.py): the
 * `fill_value` of v2 is that mark, but not `fill_value` of v3. xarray fails to open other types that have the attribute.
 * @param fillValue `fill_value` of the served `.zarray`.
 */
function maskedAttributes(attrs: JsonObject, fillValue: JsonValue, type: DataType): JsonObject {
  const mask = fillValue ?? attrs[MASK];
  const rest = withoutKey(attrs, MASK);
  if (mask === undefined || mask === null || isJsonObject(mask)) return rest;
  const encoded = encodeMask(mask, type);
  return encoded === undefined ? rest : { ...rest, [MASK]: encoded };
}

function encodeMask(mask: JsonValue, { kind }: DataType): JsonValue | undefined {
  if (kind === "b" || kind === "i" || kind === "u") return mask;
  if (kind === "O") return typeof mask === "string" ? mask : undefined;
  const value = kind === "f" ? floatOf(mask) : undefined;
  if (value === undefined) return undefined;
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleLE(value);
  return bytes.toString("base64");
}
