import { isJsonArray, isJsonObject, type JsonValue, toBigInt } from "../../json/json-value.js";
import type { DataType } from "../../model/data-type.js";
import { parseDataType } from "../../model/parse-data-type.js";
import { describeValue, invalidField, parseArray, withinDocument } from "../metadata-fields.js";
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
export const CORE_TYPE_NAMES: ReadonlyMap<string, string> = new Map(
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
  if (extension === undefined) throw unsupported("a data_type known here", JSON.stringify(name));
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
      describeValue(type.configuration),
    );
  }
  // A count before `generic` has no meaning, and numpy rejects it.
  return `[${factor === 1n || unit === "generic" ? "" : factor}${unit}]`;
}
