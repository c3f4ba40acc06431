import { type Packing, packingOf } from "../cf/packing.js";
import { isJsonArray, isJsonObject, type JsonValue, toNumber } from "../json/json-value.js";
import { stringifyJson } from "../json/stringify-json.js";
import type { StoredArray } from "../zarr/stored-array.js";

/** An array of a part as it is stored, without the place of its chunks. */
export type PartStored = Omit<StoredArray, "chunks" | "v3">;

/** Attributes that tell what stored numbers mean, in the order in which messages name them. */
const MEANING = [
  "scale_factor",
  "add_offset",
  "_FillValue",
  "missing_value",
  "_Unsigned",
  "units",
  "calendar",
] as const;

/** Tells whether stored items of two arrays mean the same: type, fill value, packing and units are equal. */
export function isSameForm(a: PartStored, b: PartStored): boolean {
  if (a === b) return true;
  if (a.dataType !== b.dataType && !isSameJson(a.dataType.zarr, b.dataType.zarr)) return false;
  if (!isSameJson(a.fill.served, b.fill.served)) return false;
  if (a.attrs === b.attrs) return true;
  return MEANING.every((name) => isSameJson(a.attrs[name], b.attrs[name]));
}

/** Returns a text that is equal for arrays of {@link isSameForm}. */
export function formKey({ dataType, fill, attrs }: PartStored): string {
  const meaning = MEANING.map((name) => normalOf(attrs[name]));
  return stringifyJson([dataType.zarr, normalOf(fill.served), ...meaning]);
}

/** Names the first difference between arrays that are not of {@link isSameForm}, and how each of them has it. */
export function formDifference(
  expected: PartStored,
  received: PartStored,
): { readonly name: string; readonly expected: string; readonly received: string } {
  const text = (value: JsonValue | undefined) => (value === undefined ? "none" : stringifyJson(value));
  const differing = MEANING.find((name) => !isSameJson(expected.attrs[name], received.attrs[name]));
  if (!isSameJson(expected.dataType.zarr, received.dataType.zarr)) {
    return { name: "type", expected: expected.dataType.numpyStr, received: received.dataType.numpyStr };
  }
  if (differing === undefined) {
    return { name: "fill value", expected: text(expected.fill.served), received: text(received.fill.served) };
  }
  return {
    name: differing,
    expected: text(expected.attrs[differing]),
    received: text(received.attrs[differing]),
  };
}

/** Returns the packing of a stored array; xarray takes its fill value for a mark of missing values. */
export function packingOfStored({ attrs, fill }: PartStored): Packing {
  return packingOf(attrs, fill.served);
}

/** Compares two JSON values, numbers by their value: 1 and 1.0 are equal, and so are NaN and NaN. */
export function isSameJson(a: JsonValue | undefined, b: JsonValue | undefined): boolean {
  if (Object.is(a, b)) return true;
  if (isJsonArray(a) && isJsonArray(b)) {
    return a.length === b.length && a.every((each, index) => isSameJson(each, b[index]));
  }
  if (isJsonObject(a) && isJsonObject(b)) {
    const keys = Object.keys(a);
    return keys.length === Object.keys(b).length && keys.every((key) => isSameJson(a[key], b[key]));
  }
  if (typeof a === "bigint" && typeof b === "bigint") return false;
  const number = toNumber(a);
  return number !== undefined && number === toNumber(b);
}

/** Replaces numbers that keep their text by their value. */
function normalOf(value: JsonValue | undefined): JsonValue {
  if (value === undefined) return null;
  if (isJsonArray(value)) return value.map(normalOf);
  return typeof value === "bigint" ? value : (toNumber(value) ?? value);
}
