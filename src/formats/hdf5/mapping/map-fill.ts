import { ZpublishError } from "../../../errors.js";
import type { JsonValue } from "../../../json/json-value.js";
import type { DataType } from "../../../model/data-type.js";
import { encodeFillItem, fillItemToJson } from "../../../model/fill-value.js";
import type { StoredFill } from "../../../zarr/stored-array.js";

/** The fill value of an array. */
export interface MappedFill {
  readonly fill: StoredFill;
  /** True if `_FillValue` is no attribute of the array: it is `fill.served`, or it is NaN and marks nothing among integers. */
  readonly isAttribute: boolean;
}

/**
 * Keeps three fill values apart: the one of absent chunks (HDF5's), the one of missing values (`_FillValue`), and `fill_value` of
 * the `.zarray`, which xarray takes for `_FillValue`.
 *
 * The attribute is served as `fill_value` even if absent chunks have other items: the server fills them then, and no client
 * applies `fill_value` itself. In the attributes it would come as a JSON text if it is NaN or bytes.
 * @param item What absent chunks hold, in the array's type; null for zeros.
 * @param attribute Value of `_FillValue`; undefined if there is none.
 */
export function mapFill(
  type: DataType,
  item: Uint8Array | null,
  attribute: JsonValue | undefined,
  hasAbsent: boolean,
): MappedFill {
  const marked = attribute === undefined ? undefined : encodeMark(attribute, type);
  if (marked === undefined) {
    // As a JSON text, xarray would take it for a mark, and decode to another type than it does from the file.
    const isNothing = (type.kind === "i" || type.kind === "u") && Number.isNaN(attribute);
    return { fill: { served: null, item, absentIsServed: !hasAbsent }, isAttribute: isNothing };
  }
  const served = type.kind === "O" ? (attribute as JsonValue) : fillItemToJson(marked, type);
  const isSame = sameItem(marked, item, type);
  return {
    fill: { served, item: hasAbsent ? item : marked, absentIsServed: isSame || !hasAbsent },
    isAttribute: true,
  };
}

/** Encodes one text as an item of a variable-length type (`StoredFill.item`). */
export function textItem(text: string): Uint8Array {
  const bytes = Buffer.from(text);
  const item = new Uint8Array(4 + bytes.length);
  new DataView(item.buffer).setUint32(0, bytes.length, true);
  item.set(bytes, 4);
  return item;
}

/** Encodes `_FillValue` as an item; undefined if the type cannot hold the very value. */
function encodeMark(value: JsonValue, type: DataType): Uint8Array | undefined {
  if (type.kind === "O") return typeof value === "string" ? textItem(value) : undefined;
  if (type.kind === "S") {
    if (typeof value !== "string" || Buffer.byteLength(value) > type.itemSize) return undefined;
    const item = new Uint8Array(type.itemSize);
    item.set(Buffer.from(value));
    return item;
  }
  // Texts stand for NaN and infinities in a fill value, but an attribute that is a text is no number.
  if (type.kind === "V" || (typeof value === "string") !== (type.kind === "U")) return undefined;
  const number = typeof value === "number" && !Number.isFinite(value) ? String(value) : value;
  try {
    const item = encodeFillItem(number, type);
    const back = fillItemToJson(item, type);
    return sameNumber(back, number) ? item : undefined;
  } catch (error) {
    if (error instanceof ZpublishError) return undefined;
    throw error;
  }
}

/** True if rounding to the type has not changed a value. */
function sameNumber(a: JsonValue, b: JsonValue): boolean {
  if (Array.isArray(a) && Array.isArray(b)) return a.every((item, index) => sameNumber(item, b[index]));
  return typeof a === "object" || typeof b === "object" ? Number(a) === Number(b) : String(a) === String(b);
}

/** True if two items are the same; any NaN is the same as another. */
function sameItem(a: Uint8Array, b: Uint8Array | null, type: DataType): boolean {
  const other = b ?? new Uint8Array(a.length);
  if (Buffer.compare(a, other) === 0) return true;
  return type.kind === "f" && fillItemToJson(a, type) === "NaN" && fillItemToJson(other, type) === "NaN";
}
