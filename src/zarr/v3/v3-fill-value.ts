import {
  isJsonArray,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  toBigInt,
} from "../../json/json-value.js";
import { describeJson, stringifyJson } from "../../json/stringify-json.js";
import { type DataType, parseDataType } from "../../model/data-type.js";
import { decodeBase64, encodeFillItem, fillItemToJson } from "../../model/fill-value.js";
import { invalidField, withinDocument, withoutKey } from "../metadata-fields.js";
import type { StoredFill } from "../stored-array.js";
import type { V3DataType } from "./v3-data-type.js";
import { v3Document } from "./v3-extension.js";

/** The attribute in which xarray stores the missing-value mark of a v3 array. */
const maskAttribute = "_FillValue";

/**
 * Parses a v3 `fill_value` into one item in the type's byte order; null for object types and `null`. V3 has three forms
 * that v2 has not: floats as `"0x7fc00000"`, raw bytes as a list of integers, structured items as an object of fields.
 * @throws ZpublishError `invalid-metadata`
 */
export function parseV3FillItem(value: JsonValue | undefined, type: DataType): Uint8Array | null {
  if (value === undefined) throw invalidField(v3Document, 'the key "fill_value"', undefined);
  if (value === null || type.kind === "O") return null;
  return withinDocument(v3Document, () => itemOf(value, type));
}

function itemOf(value: JsonValue, type: DataType): Uint8Array {
  if (type.kind === "f") return floatItem(value, type);
  if (type.kind === "c" && isJsonArray(value) && value.length === 2) return complexItem(value, type);
  if (type.kind === "V" && isJsonArray(value)) return rawItem(value, type);
  if (isJsonArray(type.zarr) && isJsonObject(value)) return structItem(value, type);
  return encodeFillItem(value, type);
}

/**
 * Parses an object that maps every field to its fill value. zarr-python writes that for `struct` since 3.2
 * (`Struct.to_json_scalar` in src/zarr/core/dtype/npy/structured.py), and base64 for `structured` before. The
 * specification requires every field: https://github.com/zarr-developers/zarr-extensions/tree/main/data-types/struct
 */
function structItem(values: JsonObject, type: DataType): Uint8Array {
  const item = new Uint8Array(type.itemSize);
  let offset = 0;
  for (const [name, zarr] of type.zarr as readonly (readonly [string, JsonValue])[]) {
    const value = Object.hasOwn(values, name) ? values[name] : undefined;
    if (value === undefined) {
      throw invalidField("fill_value", `an entry for the field ${JSON.stringify(name)}`, values);
    }
    const field = parseDataType(zarr);
    item.set(itemOf(value, field), offset);
    offset += field.itemSize;
  }
  return item;
}

function floatItem(value: JsonValue, type: DataType): Uint8Array {
  if (typeof value !== "string" || !value.startsWith("0x")) return encodeFillItem(value, type);
  const digits = value.slice(2);
  if (digits.length !== type.itemSize * 2 || !/^[0-9a-fA-F]+$/.test(digits)) {
    throw invalidField("fill_value", `${type.itemSize * 2} hexadecimal digits after 0x`, value);
  }
  const item = new Uint8Array(Buffer.from(digits, "hex"));
  return type.byteOrder === ">" ? item : item.reverse();
}

function complexItem(parts: readonly JsonValue[], type: DataType): Uint8Array {
  const half: DataType = { ...type, kind: "f", itemSize: type.itemSize / 2 };
  const item = new Uint8Array(type.itemSize);
  item.set(floatItem(parts[0] as JsonValue, half), 0);
  item.set(floatItem(parts[1] as JsonValue, half), half.itemSize);
  return item;
}

function rawItem(bytes: readonly JsonValue[], type: Pick<DataType, "itemSize">): Uint8Array {
  const values = bytes.map((byte) => Number(toBigInt(byte) ?? -1));
  if (values.length !== type.itemSize || !values.every((byte) => byte >= 0 && byte <= 255)) {
    throw invalidField("fill_value", `a list of ${type.itemSize} bytes`, bytes);
  }
  return Uint8Array.from(values);
}

/** Fill value and attributes of a v3 array, as v2 serves them. */
interface ServedV3Fill {
  readonly fill: StoredFill;
  readonly attrs: JsonObject;
}

/**
 * Chooses the `fill_value` of the v2 document.
 *
 * xarray takes the `fill_value` of a v2 array for the missing-value mark and reads it as NaN. In a v3 array the mark is the
 * attribute `_FillValue`, and `fill_value`, 0 by default, is an ordinary value. Served unchanged, it would make every 0
 * of a v3 store missing. So:
 *
 * - An array that xarray does not read (dimensions without names) is served with its fill value.
 * - An array with `_FillValue` is served with that as its `fill_value`, and without the attribute, which xarray rejects in
 *   v2. Absent chunks mean that value only if it equals the v3 fill value.
 * - Any other array is served with `null`. Absent chunks are answered filled, since `null` does not say their value.
 * @param isReadByXarray Whether every dimension has a name. A scalar, which has no dimension, counts as named.
 * @param warnings Gets a line if `_FillValue` does not fit the type.
 * @throws ZpublishError `invalid-metadata`
 */
export function serveV3Fill(
  value: JsonValue | undefined,
  { dataType: type, objectCodec }: Pick<V3DataType, "dataType" | "objectCodec">,
  attrs: JsonObject,
  isReadByXarray: boolean,
  warnings: string[],
): ServedV3Fill {
  const item = parseV3FillItem(value, type);
  const own = type.kind === "O" || item === null ? (value as JsonValue) : fillItemToJson(item, type);
  if (!isReadByXarray || own === null) return { fill: { served: own, item, absentIsServed: true }, attrs };
  if (type.kind === "O") return serveObjectFill(variableLengthItem(own, objectCodec), own, attrs);
  const mask = parseMask(attrs[maskAttribute], type, warnings);
  if (mask === undefined) return { fill: { served: null, item, absentIsServed: false }, attrs };
  const served = fillItemToJson(mask, type);
  const absentIsServed = stringifyJson(served) === stringifyJson(own);
  return { fill: { served, item, absentIsServed }, attrs: withoutKey(attrs, maskAttribute) };
}

/** Chooses it for texts and byte strings without a fixed length, whose mark is a plain string. */
function serveObjectFill(item: Uint8Array, own: JsonValue, attrs: JsonObject): ServedV3Fill {
  const mask = attrs[maskAttribute];
  if (typeof mask !== "string") return { fill: { served: null, item, absentIsServed: false }, attrs };
  return {
    fill: { served: mask, item, absentIsServed: mask === own },
    attrs: withoutKey(attrs, maskAttribute),
  };
}

/**
 * Encodes an item as numcodecs' vlen-utf8 and vlen-bytes do: its length as little-endian uint32, then its bytes.
 * @throws ZpublishError `invalid-metadata` if the value is no text, or no bytes in base64.
 */
export function variableLengthItem(value: JsonValue, objectCodec: JsonValue): Uint8Array {
  const content =
    objectCodec === "vlen-bytes" ? bytesOf(value) : typeof value === "string" && Buffer.from(value);
  if (!content) throw invalidField(v3Document, "fill_value: a text, or bytes in base64", value);
  const item = Buffer.alloc(4 + content.length);
  item.writeUInt32LE(content.length);
  item.set(content, 4);
  return new Uint8Array(item);
}

/** Decodes bytes that are given in base64, or as a list of integers. */
function bytesOf(value: JsonValue): Uint8Array | undefined {
  if (typeof value === "string") return decodeBase64(value);
  return isJsonArray(value) ? rawItem(value, { itemSize: value.length }) : undefined;
}

/** Parses `_FillValue` into an item; undefined if there is none, or if it does not fit the type. */
function parseMask(value: JsonValue | undefined, type: DataType, warnings: string[]): Uint8Array | undefined {
  if (value === undefined || value === null) return undefined;
  try {
    if (type.kind === "c" && isJsonArray(value)) return encodeFillItem(value.map(maskFloat), type);
    return encodeFillItem(type.kind === "f" ? maskFloat(value) : value, type);
  } catch {
    warnings.push(
      `expected the attribute _FillValue to fit dtype ${type.numpyStr}, received ${describeJson(value)}`,
    );
    return undefined;
  }
}

/**
 * Decodes a float of `_FillValue`. xarray writes any float type as base64 of the little-endian float64 (`"AAAAAAAA+H8="`
 * is NaN); other writers write a number.
 */
export function maskFloat(value: JsonValue): JsonValue {
  const bytes = typeof value === "string" ? decodeBase64(value) : undefined;
  if (bytes?.length !== 8) return value;
  return new DataView(bytes.buffer, bytes.byteOffset, 8).getFloat64(0, true);
}
