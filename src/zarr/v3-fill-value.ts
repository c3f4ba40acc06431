import type { DataType } from "../model/data-type.js";
import { decodeBase64, encodeFillItem, fillItemToJson } from "../model/fill-value.js";
import { isJsonArray, type JsonObject, type JsonValue, toBigInt } from "../model/json-value.js";
import { stringifyJson } from "../model/stringify-json.js";
import type { StoredFill } from "../source/source.js";
import { withoutKey } from "./dimension-names.js";
import { describeValue, invalidField, withinDocument } from "./metadata-fields.js";
import type { V3DataType } from "./v3-data-type.js";
import { v3Document } from "./v3-extension.js";

/** The attribute in which xarray keeps the mark of missing values, in a v3 store. */
const maskAttribute = "_FillValue";

/**
 * The item a v3 `fill_value` stands for, in the type's byte order; null for object types and `null`. Knows the forms
 * v2 has not: floats as `"0x7fc00000"`, raw bytes as a list of integers.
 * @throws ZpublishError `invalid-metadata`
 */
export function parseV3FillItem(value: JsonValue | undefined, type: DataType): Uint8Array | null {
  if (value === undefined) throw invalidField(v3Document, 'the key "fill_value"', undefined);
  if (value === null || type.kind === "O") return null;
  return withinDocument(v3Document, () => {
    if (type.kind === "f") return floatItem(value, type);
    if (type.kind === "c" && isJsonArray(value) && value.length === 2) return complexItem(value, type);
    if (type.kind === "V" && isJsonArray(value)) return rawItem(value, type);
    return encodeFillItem(value, type);
  });
}

function floatItem(value: JsonValue, type: DataType): Uint8Array {
  if (typeof value !== "string" || !value.startsWith("0x")) return encodeFillItem(value, type);
  const digits = value.slice(2);
  if (digits.length !== type.itemSize * 2 || !/^[0-9a-fA-F]+$/.test(digits)) {
    throw invalidField("fill_value", `${type.itemSize * 2} hexadecimal digits behind 0x`, value);
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

/** What a v3 array's absent chunks and attributes become in v2. */
export interface ServedV3Fill {
  readonly fill: StoredFill;
  readonly attrs: JsonObject;
}

/**
 * Settles what the v2 document says about missing values.
 *
 * xarray takes the `fill_value` of a v2 array for the mark of missing values and turns it into NaN; of a v3 array it
 * does so only with the attribute `_FillValue`, and the `fill_value` of v3, 0 unless said otherwise, is an ordinary value. So
 * serving it as it is would make every 0 of a v3 store missing:
 *
 * - Arrays that xarray does not read (no dimension names) are served with their fill value: both mean the same.
 * - With `_FillValue`, that mark is served as v2's `fill_value` and leaves the attributes, where xarray refuses it.
 *   Absent chunks mean that only if it equals the fill value.
 * - Without, `null` is served, and absent chunks are answered filled, since their value is no longer said.
 * @param warnings Gets a line where something of this cannot be kept.
 * @throws ZpublishError `invalid-metadata`
 */
export function serveV3Fill(
  value: JsonValue | undefined,
  { dataType: type, objectCodec }: Pick<V3DataType, "dataType" | "objectCodec">,
  attrs: JsonObject,
  isNamed: boolean,
  warnings: string[],
): ServedV3Fill {
  const item = parseV3FillItem(value, type);
  const own = type.kind === "O" || item === null ? (value as JsonValue) : fillItemToJson(item, type);
  if (!isNamed || own === null) return { fill: { served: own, item, absentIsServed: true }, attrs };
  if (type.kind === "O") return serveObjectFill(variableLengthItem(own, objectCodec), own, attrs);
  const mask = parseMask(attrs[maskAttribute], type, warnings);
  if (mask === undefined) return { fill: { served: null, item, absentIsServed: false }, attrs };
  const served = fillItemToJson(mask, type);
  const absentIsServed = stringifyJson(served) === stringifyJson(own);
  return { fill: { served, item, absentIsServed }, attrs: withoutKey(attrs, maskAttribute) };
}

/** The same for texts and byte strings without a fixed length, whose mark is a plain string. */
function serveObjectFill(item: Uint8Array, own: JsonValue, attrs: JsonObject): ServedV3Fill {
  const mask = attrs[maskAttribute];
  if (typeof mask !== "string") return { fill: { served: null, item, absentIsServed: false }, attrs };
  return {
    fill: { served: mask, item, absentIsServed: mask === own },
    attrs: withoutKey(attrs, maskAttribute),
  };
}

/** An item as numcodecs' vlen-utf8 and vlen-bytes write it: its length in four bytes, little-endian, and its bytes. */
function variableLengthItem(value: JsonValue, objectCodec: string | null): Uint8Array {
  const content =
    objectCodec === "vlen-bytes" ? bytesOf(value) : typeof value === "string" && Buffer.from(value);
  if (!content) throw invalidField(v3Document, "fill_value: a text, or bytes in base64", value);
  const item = Buffer.alloc(4 + content.length);
  item.writeUInt32LE(content.length);
  item.set(content, 4);
  return new Uint8Array(item);
}

/** Bytes in base64, or as a list of integers. */
function bytesOf(value: JsonValue): Uint8Array | undefined {
  if (typeof value === "string") return decodeBase64(value);
  return isJsonArray(value) ? rawItem(value, { itemSize: value.length }) : undefined;
}

/** The item of `_FillValue`, undefined where there is none or none that can be understood. */
function parseMask(value: JsonValue | undefined, type: DataType, warnings: string[]): Uint8Array | undefined {
  if (value === undefined || value === null) return undefined;
  try {
    if (type.kind === "c" && isJsonArray(value)) return encodeFillItem(value.map(maskFloat), type);
    return encodeFillItem(type.kind === "f" ? maskFloat(value) : value, type);
  } catch {
    warnings.push(
      `expected the attribute _FillValue to fit dtype ${type.numpyStr}, received ${describeValue(value)}`,
    );
    return undefined;
  }
}

/**
 * A float of `_FillValue`: xarray writes base64 of the little-endian float64, whatever the type (`"AAAAAAAA+H8="` is
 * NaN); other writers write a number.
 */
function maskFloat(value: JsonValue): JsonValue {
  const bytes = typeof value === "string" ? decodeBase64(value) : undefined;
  if (bytes?.length !== 8) return value;
  return new DataView(bytes.buffer, bytes.byteOffset, 8).getFloat64(0, true);
}
