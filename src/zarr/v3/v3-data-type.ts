import { isJsonArray, isJsonObject, type JsonValue, toBigInt } from "../../json/json-value.js";
import { describeJson } from "../../json/stringify-json.js";
import { type DataType, parseDataType } from "../../model/data-type.js";
import { fillItemToJson, NOT_A_TIME } from "../../model/fill-value.js";
import { invalidField, parseArray, withinDocument } from "../metadata-fields.js";
import { unservable } from "../plan/encoding-plan.js";
import { type Extension, parseExtension, unsupported, v3Document } from "./v3-extension.js";

/** Numpy's kind and item size of core types, by name. */
const coreTypes: Readonly<Record<string, string>> = {
  bool: "b1",
  int8: "i1",
  int16: "i2",
  int32: "i4",
  int64: "i8",
  uint8: "u1",
  uint16: "u2",
  uint32: "u4",
  uint64: "u8",
  float16: "f2",
  float32: "f4",
  float64: "f8",
  complex64: "c8",
  complex128: "c16",
};

/** Names of core types, by numpy's kind and item size. */
const CORE_TYPE_NAMES: ReadonlyMap<string, string> = new Map(
  Object.entries(coreTypes).map(([name, type]) => [type, name]),
);

/** Codecs of types whose items have no fixed size, by type. They are the same in v2 and v3. */
const objectCodecs: Readonly<Record<string, "vlen-utf8" | "vlen-bytes">> = {
  string: "vlen-utf8",
  bytes: "vlen-bytes",
  variable_length_bytes: "vlen-bytes",
};

/** V2 type strings without byte order of zarr-python 3's extension types, by name. */
const extensionTypes: Readonly<Record<string, (type: Extension) => string>> = {
  "numpy.datetime64": (type) => `M8${timeBrackets(type)}`,
  "numpy.timedelta64": (type) => `m8${timeBrackets(type)}`,
  fixed_length_utf32: (type) => {
    const byteLength = byteLengthOf(type);
    if (byteLength % 4 !== 0) {
      throw invalidField(v3Document, "length_bytes of fixed_length_utf32 to be a multiple of 4", byteLength);
    }
    return `U${byteLength / 4}`;
  },
  null_terminated_bytes: (type) => `S${byteLengthOf(type)}`,
  raw_bytes: (type) => `V${byteLengthOf(type)}`,
};

/** Types of the registry that are not read: all others of it are above. */
const UNTYPED = /^(?:complex_)?(?:bfloat16|float[468]_\w+)$|^complex_float16$|^u?int[24]$/;

/** A v3 data type in the terms of v2. */
export interface V3DataType {
  readonly dataType: DataType;
  /** Array-to-bytes codec that items without a fixed size need; null for other types. */
  readonly objectCodec: "vlen-utf8" | "vlen-bytes" | null;
}

/**
 * Parses `data_type`.
 * @param byteOrder Byte order that the `bytes` codec names. In v3 it belongs to the codec, in v2 to the type.
 * @throws ZpublishError `invalid-metadata`, `unsupported`
 */
export function parseV3DataType(value: JsonValue | undefined, byteOrder: "<" | ">"): V3DataType {
  const type = parseExtension(value, "data_type");
  if (Object.hasOwn(objectCodecs, type.name)) {
    return { dataType: parseDataType("|O"), objectCodec: objectCodecs[type.name] as "vlen-utf8" };
  }
  return {
    dataType: withinDocument(v3Document, () => parseDataType(v2TypeOf(type, byteOrder))),
    objectCodec: null,
  };
}

function v2TypeOf(type: Extension, byteOrder: "<" | ">"): JsonValue {
  const { name } = type;
  if (Object.hasOwn(coreTypes, name)) return `${byteOrder}${coreTypes[name]}`;
  if (name === "struct" || name === "structured") return fieldsOf(type, byteOrder);
  const raw = /^r([1-9]\d{0,9})$/.exec(name);
  if (raw !== null) {
    const bits = Number(raw[1]);
    if (bits % 8 !== 0) throw invalidField(v3Document, "the bits of a raw data_type to be whole bytes", name);
    return `|V${bits / 8}`;
  }
  const extension = Object.hasOwn(extensionTypes, name) ? extensionTypes[name] : undefined;
  if (extension === undefined) {
    const reason = UNTYPED.test(name) ? ", which numpy and Zarr v2 have no type for" : "";
    throw unsupported("a data_type known here", JSON.stringify(name) + reason);
  }
  return `${byteOrder}${extension(type)}`;
}

function fieldsOf(type: Extension, byteOrder: "<" | ">"): JsonValue {
  return parseArray(type.configuration.fields, v3Document, "fields of a struct").map((field) => {
    const pair = isJsonObject(field) ? [field.name, field.data_type] : field;
    if (!isJsonArray(pair as JsonValue) || (pair as readonly JsonValue[]).length !== 2) {
      throw invalidField(v3Document, "every field of a struct to have a name and a data_type", field);
    }
    const [name, fieldType] = pair as readonly [JsonValue, JsonValue];
    return [name, v2TypeOf(parseExtension(fieldType, "the data_type of a field"), byteOrder)];
  });
}

function byteLengthOf(type: Extension): number {
  const value = type.configuration.length_bytes;
  const length = toBigInt(value);
  if (length === undefined || length < 0n || length > 0xffffffffn) {
    throw invalidField(v3Document, `length_bytes of ${type.name} to be a non-negative integer`, value);
  }
  return Number(length);
}

function timeBrackets(type: Extension): string {
  const { unit, scale_factor: scale = 1 } = type.configuration;
  const factor = toBigInt(scale);
  if (typeof unit !== "string" || factor === undefined || factor < 1n) {
    throw invalidField(
      v3Document,
      `${type.name} to have a unit and a positive scale_factor`,
      describeJson(type.configuration),
    );
  }
  // A count before `generic` has no meaning, and numpy rejects it.
  return `[${factor === 1n || unit === "generic" ? "" : factor}${unit}]`;
}

/** A data type as `zarr.json` says it. */
export interface V3TypeName {
  /** Value of `data_type`. */
  readonly dataType: JsonValue;
  /** Configuration of the codec `bytes`; undefined if byte order means nothing to the type. */
  readonly endian: "little" | "big" | undefined;
}

/**
 * Names a data type of fixed size in Zarr v3, by the names that zarr-python registers.
 * @throws ZpublishError `unsupported`, naming the array, if v3 has no name for it.
 */
export function v3TypeName(type: DataType, array: { readonly path: string }): V3TypeName {
  if (isJsonArray(type.zarr)) return structName(type.zarr, array);
  const { itemSize, byteOrder } = type;
  const endian = byteOrder === "|" ? undefined : byteOrder === ">" ? "big" : "little";
  const core = CORE_TYPE_NAMES.get(`${type.kind}${itemSize}`);
  if (core !== undefined) return { dataType: core, endian };
  switch (type.kind) {
    case "M":
    case "m": {
      const [, factor = "", unit = ""] = /^(\d*)(.+)$/.exec(type.timeUnit as string) ?? [];
      const name = type.kind === "M" ? "numpy.datetime64" : "numpy.timedelta64";
      return { dataType: extension(name, { unit, scale_factor: Number(factor || 1) }), endian };
    }
    case "U":
      return { dataType: extension("fixed_length_utf32", { length_bytes: itemSize }), endian };
    case "S":
      return { dataType: extension("null_terminated_bytes", { length_bytes: itemSize }), endian };
    case "V":
      return { dataType: extension("raw_bytes", { length_bytes: itemSize }), endian };
    default:
      throw unservable(array, `Zarr v3 has no name for items of ${type.numpyName}`);
  }
}

/** zarr-python before 3.2 knows `structured` only, later versions that and `struct`. */
function structName(fields: readonly JsonValue[], array: { readonly path: string }): V3TypeName {
  const endians = new Set<V3TypeName["endian"]>();
  const named = fields.map((field) => {
    const [name, type, shape] = field as readonly JsonValue[];
    if (shape !== undefined) throw unservable(array, `Zarr v3 has no name for fields with a shape`);
    const { dataType, endian } = v3TypeName(parseDataType(type as JsonValue), array);
    if (endian !== undefined) endians.add(endian);
    return [name as JsonValue, dataType];
  });
  const [endian = "little", other] = endians;
  if (other !== undefined) throw unservable(array, "Zarr v3 has one byte order for all fields of an item");
  return { dataType: extension("structured", { fields: named }), endian };
}

function extension(name: string, configuration: Readonly<Record<string, JsonValue>>): JsonValue {
  return { name, configuration };
}

/**
 * Writes the `fill_value` of an array that has none of v3.
 * @param served `fill_value` of the served `.zarray`. A null becomes zero: v3 requires a value.
 */
export function v3FillValue(served: JsonValue, type: DataType): JsonValue {
  if (type.kind === "O") return typeof served === "string" ? served : "";
  if (served === null) return fillItemToJson(new Uint8Array(type.itemSize), type);
  // More digits than most JSON parsers keep.
  if ((type.kind === "M" || type.kind === "m") && served === NOT_A_TIME) return "NaT";
  return served;
}
