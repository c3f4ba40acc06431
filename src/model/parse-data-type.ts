import { ZpublishError } from "../errors.js";
import { isJsonArray, type JsonValue } from "../json/json-value.js";
import { stringifyJson } from "../json/stringify-json.js";
import type { DataType, DataTypeKind } from "./data-type.js";
import { maxItemSize, structuredDataType } from "./structured-data-type.js";

/** What numpy can hold per kind: item sizes in bytes. `f16` and `c32` are the long double of x86-64. */
const itemSizes: Readonly<Record<string, readonly number[]>> = {
  b: [1],
  i: [1, 2, 4, 8],
  u: [1, 2, 4, 8],
  f: [2, 4, 8, 16],
  c: [8, 16, 32],
  O: [8],
};

const kindNames: Readonly<Record<string, string>> = {
  i: "int",
  u: "uint",
  f: "float",
  c: "complex",
  S: "bytes",
  U: "str",
  V: "void",
  M: "datetime64",
  m: "timedelta64",
};

/** Names that numpy, and so zarr-python, takes in place of a type string. */
const aliases: Readonly<Record<string, string>> = {
  bool: "|b1",
  "?": "|b1",
  "|?": "|b1",
  int8: "|i1",
  int16: "<i2",
  int32: "<i4",
  int64: "<i8",
  uint8: "|u1",
  uint16: "<u2",
  uint32: "<u4",
  uint64: "<u8",
  float16: "<f2",
  float32: "<f4",
  float64: "<f8",
  complex64: "<c8",
  complex128: "<c16",
  object: "|O",
  O: "|O",
};

/** Parsed types by their text: thousands of arrays share a few. */
const knownTypes = new Map<string, DataType>();
const maxKnownTypes = 1_000;

const plainType = /^([<>|=]?)([biufcSUVO])(\d{0,10})$/;
const timeType = /^([<>|=]?)([Mm])8(?:\[(\d{0,10})(generic|[YMWDhms]|ms|[uμµ]s|[npfa]s)\])?$/;

/**
 * Parses the `dtype` of a v2 `.zarray`: a type string (`"<f4"`, `"|S5"`, `"<M8[25us]"`) or a list of fields. Names are
 * numpy's, type strings are in numpy's canonical form (`"i1"` becomes `"|i1"`).
 * @throws ZpublishError `invalid-metadata` if it is no data type, `unsupported` if the type is unknown here.
 */
export function parseDataType(dtype: JsonValue): DataType {
  if (isJsonArray(dtype)) return structuredDataType(dtype, parseDataType);
  if (typeof dtype !== "string") {
    throw new ZpublishError(
      "invalid-metadata",
      `expected dtype to be a numpy type string or a list of fields, received ${shorten(stringifyJson(dtype))}`,
    );
  }
  const known = knownTypes.get(dtype);
  if (known !== undefined) return known;
  const text = Object.hasOwn(aliases, dtype) ? (aliases[dtype] as string) : dtype;
  const type = parsePlainType(text) ?? parseTimeType(text);
  if (type === undefined) {
    throw new ZpublishError(
      "unsupported",
      `expected dtype to be a numpy type such as "<f4", "|S5" or "<M8[ns]", received ${shorten(JSON.stringify(dtype))}`,
    );
  }
  if (knownTypes.size >= maxKnownTypes) knownTypes.clear();
  knownTypes.set(dtype, Object.freeze(type));
  return type;
}

function parsePlainType(text: string): DataType | undefined {
  const match = plainType.exec(text);
  if (match === null) return undefined;
  const [, order = "", kind = "", digits = ""] = match as unknown as [string, string, DataTypeKind, string];
  const size = digits === "" && kind === "O" ? 8 : Number(digits);
  const sizes = itemSizes[kind];
  if (sizes !== undefined && !sizes.includes(size)) return undefined;
  if (kind === "O") {
    return { kind, itemSize: 0, byteOrder: "|", zarr: "|O", numpyName: "object", numpyStr: "object" };
  }
  const itemSize = kind === "U" ? size * 4 : size;
  if (itemSize > maxItemSize) return undefined;
  const hasOrder = kind === "U" || (sizes !== undefined && size > 1);
  const byteOrder = hasOrder ? explicitOrder(order) : "|";
  const zarr = `${byteOrder}${kind}${size}`;
  const isFlexible = sizes === undefined;
  const numpyName = kind === "b" ? "bool" : `${kindNames[kind]}${itemSize === 0 ? "" : itemSize * 8}`;
  return {
    kind: kind as DataTypeKind,
    itemSize,
    byteOrder,
    zarr,
    numpyName,
    numpyStr: isFlexible || byteOrder === ">" ? zarr : numpyName,
  };
}

function parseTimeType(text: string): DataType | undefined {
  const match = timeType.exec(text);
  if (match === null) return undefined;
  const [, order = "", kind = "", digits = "", unitText = "generic"] = match;
  const count = digits === "" ? 1 : Number(digits);
  // numpy counts units in a signed 32-bit integer.
  if (count < 1 || count > 0x7fffffff) return undefined;
  const unit = unitText.replace(/[μµ]/, "u");
  const timeUnit = unit === "generic" ? undefined : `${count === 1 ? "" : count}${unit}`;
  const byteOrder = explicitOrder(order);
  const brackets = timeUnit === undefined ? "" : `[${timeUnit}]`;
  const zarr = `${byteOrder}${kind}8${brackets}`;
  const numpyName = `${kindNames[kind]}${brackets}`;
  return {
    kind: kind as DataTypeKind,
    itemSize: 8,
    byteOrder,
    zarr,
    numpyName,
    numpyStr: byteOrder === ">" ? zarr : numpyName,
    ...(timeUnit === undefined ? {} : { timeUnit }),
  };
}

/** The byte order that a type string names. If it names none, it means the machine's, which is little-endian here. */
function explicitOrder(order: string): "<" | ">" {
  return order === ">" ? ">" : "<";
}

function shorten(text: string): string {
  return text.length <= 120 ? text : `${text.slice(0, 117)}...`;
}
