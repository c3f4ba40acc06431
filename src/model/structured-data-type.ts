import { ZpublishError } from "../errors.js";
import { isJsonArray, type JsonValue, toNumber } from "../json/json-value.js";
import { pythonString, stringifyJson } from "../json/stringify-json.js";
import type { DataType } from "./data-type.js";

/** Larger than any real item by far, and small enough to make one; numpy's own bound is 2^31 - 1. */
export const maxItemSize = 2 ** 28;

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
export function structuredDataType(
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
  const text = stringifyJson(received);
  return new ZpublishError(
    "invalid-metadata",
    `expected dtype to have ${expected}, received ${text.length <= 120 ? text : `${text.slice(0, 117)}...`}`,
  );
}
