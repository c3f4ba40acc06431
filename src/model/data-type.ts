import { ZpublishError } from "../errors.js";
import { isJsonArray, type JsonValue, toNumber } from "../json/json-value.js";
import { describeJson, pythonString } from "../json/stringify-json.js";

/** Bytes that are assumed of an item without a fixed size, such as a text of any length. */
export const GUESSED_ITEM_BYTES = 64;

/** numpy's kind characters; `O` is an object type, whose items have no fixed size. */
export type DataTypeKind = "b" | "i" | "u" | "f" | "c" | "S" | "U" | "M" | "m" | "V" | "O";

/** The type of one item, frozen. */
export interface DataType {
  readonly kind: DataTypeKind;
  /** Bytes of one item; 0 for `O`. */
  readonly itemSize: number;
  /** `|` if byte order means nothing (one-byte types, `S`, `V`, `O`). */
  readonly byteOrder: "<" | ">" | "|";
  /** As in `dtype` of a v2 `.zarray`: `"<f4"`, `"<M8[s]"`, or a list of fields for structured types. */
  readonly zarr: JsonValue;
  /** numpy's `dtype.name`, without byte order: `float32`, `bytes40`, `str128`, `datetime64[s]`, `object`. */
  readonly numpyName: string;
  /** numpy's `str(dtype)` on a little-endian machine: `float32`, `>f4`, `<U4`, `|S5`, `bool`. */
  readonly numpyStr: string;
  /** Unit of `M` and `m`, as numpy writes it: `ns`, `s`, `25us`, `D`; undefined for other kinds. */
  readonly timeUnit?: string;
}

/** Larger than any real item by far, and small enough to make one; numpy's own bound is 2^31 - 1. */
const maxItemSize = 2 ** 28;

interface Field {
  readonly zarr: JsonValue;
  readonly numpyStr: string;
  readonly type: DataType;
  readonly count: number;
}

/**
 * Makes the type of a list of fields `[name, dtype]` or `[name, dtype, shape]`, packed one after the other as in numpy.
 * A type with an object field anywhere is of kind `O`: its items have no fixed size.
 * @param parseFieldType Parses the type of one field, which may be a list again.
 * @throws ZpublishError `invalid-metadata`
 */
function structuredDataType(
  fields: readonly JsonValue[],
  parseFieldType: (dtype: JsonValue) => DataType,
): DataType {
  if (fields.length === 0) throw invalidField("at least one field", fields);
  const names = new Set<string>();
  const parsed = fields.map((field, index) => parseField(field, index, names, parseFieldType));
  const byteLength = parsed.reduce((sum, field) => sum + numpyItemSize(field.type) * field.count, 0);
  if (byteLength > maxItemSize) throw invalidField(`items of at most ${maxItemSize} bytes`, fields);
  const hasObjects = parsed.some((field) => field.type.kind === "O");
  return Object.freeze({
    kind: hasObjects ? "O" : "V",
    itemSize: hasObjects ? 0 : byteLength,
    byteOrder: "|",
    zarr: Object.freeze(parsed.map((field) => field.zarr)),
    numpyName: `void${byteLength === 0 ? "" : byteLength * 8}`,
    numpyStr: `[${parsed.map((field) => field.numpyStr).join(", ")}]`,
  } satisfies DataType);
}

function parseField(
  field: JsonValue,
  index: number,
  names: Set<string>,
  parseFieldType: (dtype: JsonValue) => DataType,
): Field {
  if (!isJsonArray(field) || field.length < 2 || field.length > 3 || typeof field[0] !== "string") {
    throw invalidField("every field to be [name, dtype] or [name, dtype, shape]", field);
  }
  // numpy numbers fields without a name; zarr-python writes padding as such a field.
  const name = field[0] === "" ? `f${index}` : field[0];
  if (names.has(name)) throw invalidField("field names that differ", name);
  names.add(name);
  const type = parseFieldType(field[1] as JsonValue);
  const shape = parseShape(field[2]);
  const shapeText = shape.length === 1 ? `(${shape[0]},)` : `(${shape.join(", ")})`;
  const suffix = shape.length === 0 ? "" : `, ${shapeText}`;
  return {
    type,
    count: shape.reduce((product, length) => product * length, 1),
    zarr: Object.freeze(shape.length === 0 ? [field[0], type.zarr] : [field[0], type.zarr, shape]),
    numpyStr: `(${pythonString(name)}, ${shortText(type)}${suffix})`,
  };
}

/** Parses a subarray shape. A bare 1 means none, any other bare number one axis. */
function parseShape(shape: JsonValue | undefined): readonly number[] {
  if (shape === undefined) return [];
  const lengths = isJsonArray(shape) ? shape.map(toNumber) : [toNumber(shape)];
  if (!lengths.every((length) => length !== undefined && Number.isSafeInteger(length) && length >= 0)) {
    throw invalidField("a subarray shape of non-negative integers", shape);
  }
  return isJsonArray(shape) || lengths[0] !== 1 ? (lengths as number[]) : [];
}

/** Writes a field's type as numpy does: `'<f4'`, `'?'`, `'i1'`, `'S5'`, `'M8'` with its order, nested fields as a list. */
function shortText(type: DataType): string {
  if (isJsonArray(type.zarr)) return type.numpyStr;
  if (type.kind === "b") return "'?'";
  const text = (type.zarr as string).replace("|", "");
  return `'${type.itemSize === 0 ? text.replace("0", "") : text}'`;
}

/** Bytes of an item in numpy's memory, in which an object is a pointer. */
function numpyItemSize(type: DataType): number {
  if (type.kind !== "O") return type.itemSize;
  return type.numpyName === "object" ? 8 : Number(type.numpyName.slice("void".length)) / 8;
}

function invalidField(expected: string, received: JsonValue): ZpublishError {
  return new ZpublishError(
    "invalid-metadata",
    `expected dtype to have ${expected}, received ${describeJson(received)}`,
  );
}

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
      `expected dtype to be a numpy type string or a list of fields, received ${describeJson(dtype)}`,
    );
  }
  const known = knownTypes.get(dtype);
  if (known !== undefined) return known;
  const text = Object.hasOwn(aliases, dtype) ? (aliases[dtype] as string) : dtype;
  const type = parsePlainType(text) ?? parseTimeType(text);
  if (type === undefined) {
    throw new ZpublishError(
      "unsupported",
      `expected dtype to be a numpy type such as "<f4", "|S5" or "<M8[ns]", received ${describeJson(dtype)}`,
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
