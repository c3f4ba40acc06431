import { isJsonArray, type JsonObject, type JsonValue, toNumber } from "../json/json-value.js";
import { cfTimeScale } from "./cf-time.js";
import { packingOf } from "./packing.js";

/** The stored type of a variable, as numpy has it. */
interface StoredType {
  /** `i`, `u`, `f`, … */
  readonly kind: string;
  /** Bytes of one item. */
  readonly itemSize: number;
  /** `str(dtype)`: `int16`, `>f4`, `|S5`. */
  readonly numpyStr: string;
}

/** What a client that knows CF makes of a variable. */
export interface CfDecoding {
  /** numpy's `str(dtype)` of the decoded values: `float32`, `datetime64[ns]`; `object` for dates of other calendars. */
  readonly dtype: string;
  /** Whether values are dates or durations, which have no units of their own any more. */
  readonly time: "date" | "duration" | undefined;
  /** Bytes of a decoded number. */
  readonly itemSize: number;
  /** How stored numbers become the numbers that they mean, dates and durations counted in their unit. Undefined if they mean themselves. */
  readonly numbers: NumberDecoding | undefined;
}

/** A type of numbers or truth values in any byte order: numpy's kind and bytes of an item. */
export type NumberType = Pick<StoredType, "kind" | "itemSize">;

/** How packed or marked numbers become the numbers that they mean, by the arithmetic of numpy. Plain data. */
export interface NumberDecoding {
  /** The stored type, or its counterpart of the other signedness. */
  readonly from: NumberType;
  readonly to: NumberType;
  /** Numbers of the type `from` that become NaN; complex ones are two numbers each. */
  readonly missing: readonly number[];
  /** Undefined if nothing is multiplied. */
  readonly scale: number | undefined;
  /** Undefined if nothing is added, not even the 0 that makes a negative zero positive. */
  readonly offset: number | undefined;
}

/** Tells whether stored values are something else than the values that they mean. */
export function isDecoded({ time, numbers, dtype }: CfDecoding): boolean {
  return time !== undefined || numbers !== undefined || dtype === "bool";
}

const DURATION_UNITS = new Set("days hours minutes seconds milliseconds microseconds nanoseconds".split(" "));
const COMMON_CALENDARS = /^(?:standard|gregorian|proleptic_gregorian)$/i;
/** Years that `datetime64[ns]` can hold whole. */
const FIRST_YEAR = 1678;
const LAST_YEAR = 2261;

const NUMBERS: Readonly<Record<string, string>> = { i: "int", u: "uint", f: "float", c: "complex" };

/**
 * Tells what xarray's `decode_cf` makes of a variable, by the rules of its version 2023.01: `_Unsigned`, then missing values, then
 * `scale_factor` and `add_offset`, then durations and times. Later versions read packed numbers of Zarr stores as `float64`.
 * @param fillValue `fill_value` of the Zarr v2 document, which xarray takes for `_FillValue`; null if there is none.
 * @param dates First and last date, if they are known: years outside of 1678 to 2261 are no `datetime64[ns]`.
 */
export function cfDecodingOf(
  stored: StoredType,
  attrs: JsonObject,
  fillValue: JsonValue,
  dates: readonly string[] = [],
): CfDecoding {
  const asStored = { itemSize: stored.itemSize, numbers: undefined, time: undefined };
  if (!"iufbc".includes(stored.kind)) return { dtype: textType(stored, attrs, fillValue), ...asStored };
  if (attrs.dtype === "bool") return { dtype: "bool", ...asStored, numbers: truthOf(stored) };
  const signed = signedness(stored, attrs);
  // As JSON writes it in a document.
  const fill = (fillValue === "NaN" ? Number.NaN : fillValue) ?? attrs._FillValue ?? null;
  const isMasked = hasValue(fill) || hasValue(attrs.missing_value);
  const masked = isMasked ? promoted(signed) : signed;
  const decoded = "scale_factor" in attrs || "add_offset" in attrs ? scaled(masked, attrs) : masked;
  const time = timeOf(attrs);
  return {
    dtype: time === undefined ? nameOf(decoded, stored) : timeType(time, attrs, dates),
    time,
    itemSize: decoded.itemSize,
    numbers:
      (decoded === stored && !isMasked) || decoded.kind === "O"
        ? undefined
        : numberDecoding(stored, signed, decoded, attrs, fill),
  };
}

function truthOf({ kind, itemSize }: StoredType): NumberDecoding | undefined {
  if (kind === "b") return undefined;
  const to = { kind: "b", itemSize: 1 };
  return { from: { kind, itemSize }, to, missing: [], scale: undefined, offset: undefined };
}

/** Texts with a fill value become objects, since no text is missing; bytes with an encoding become texts, which are objects, too. */
function textType({ kind, numpyStr }: StoredType, attrs: JsonObject, fillValue: JsonValue): string {
  if (kind === "M" || kind === "m") return numpyStr;
  const isMasked = hasValue(fillValue ?? attrs._FillValue) || hasValue(attrs.missing_value);
  return isMasked || (kind === "S" && attrs._Encoding !== undefined) ? "object" : numpyStr;
}

function signedness(stored: StoredType, { _Unsigned }: JsonObject): NumberType {
  if (stored.kind === "i" && _Unsigned === "true") return { ...stored, kind: "u" };
  return stored.kind === "u" && _Unsigned === "false" ? { ...stored, kind: "i" } : stored;
}

/** Tells whether an attribute names a missing value besides NaN. */
function hasValue(value: JsonValue | undefined): boolean {
  const values = isJsonArray(value) ? value : [value];
  return values.some((each) => each !== undefined && each !== null && !Number.isNaN(toNumber(each) ?? 0));
}

/** Returns the type that has NaN besides all numbers of a type; an object type if there is none. */
function promoted(type: NumberType): NumberType {
  if (type.kind === "f" || type.kind === "c") return type;
  if (type.kind === "b") return { kind: "O", itemSize: 0 };
  return { kind: "f", itemSize: type.itemSize <= 2 ? 4 : 8 };
}

function scaled({ kind, itemSize }: NumberType, { add_offset = null }: JsonObject): NumberType {
  const isSmall = kind === "f" ? itemSize <= 4 : "iu".includes(kind) && itemSize <= 2 && add_offset === null;
  return { kind: "f", itemSize: isSmall ? 4 : 8 };
}

function nameOf({ kind, itemSize }: NumberType, stored: StoredType): string {
  if (kind === "O") return "object";
  return kind in NUMBERS ? `${NUMBERS[kind]}${itemSize * 8}` : stored.numpyStr;
}

function timeOf(attrs: JsonObject): CfDecoding["time"] {
  const { units, calendar } = attrs;
  if (typeof units !== "string") return undefined;
  if (DURATION_UNITS.has(units)) return "duration";
  return cfTimeScale({ units, ...(calendar !== undefined && { calendar }) }) === undefined
    ? undefined
    : "date";
}

function timeType(
  time: "date" | "duration",
  { calendar = "standard" }: JsonObject,
  dates: readonly string[],
): string {
  if (time === "duration") return "timedelta64[ns]";
  const isInRange = dates.every((date) => {
    const year = /^-?\d+(?=-)/.exec(date)?.[0];
    return year === undefined || (Number(year) >= FIRST_YEAR && Number(year) <= LAST_YEAR);
  });
  return COMMON_CALENDARS.test(String(calendar)) && isInRange ? "datetime64[ns]" : "object";
}

function numberDecoding(
  stored: StoredType,
  { kind, itemSize }: NumberType,
  decoded: NumberType,
  attrs: JsonObject,
  fill: JsonValue,
): NumberDecoding {
  const { scale, offset } = packingOf(attrs);
  const wrap = kind === stored.kind ? undefined : kind === "u" ? BigInt.asUintN : BigInt.asIntN;
  // xarray reads the fill value as unsigned, too, but not `missing_value`.
  const asFill = (value: number) =>
    wrap && Number.isFinite(value) ? Number(wrap(8 * itemSize, BigInt(Math.trunc(value)))) : value;
  const marks = packingOf({ missing_value: attrs.missing_value ?? null }).missing;
  const missing = new Set([...packingOf({}, fill).missing.map(asFill), ...marks]);
  return {
    from: { kind, itemSize },
    to: { kind: decoded.kind, itemSize: decoded.itemSize },
    missing: kind === "c" ? complexMark(fill) : [...missing],
    scale: "scale_factor" in attrs ? scale : undefined,
    offset: "add_offset" in attrs ? offset : undefined,
  };
}

/** Returns the real and the imaginary part of a complex fill value; empty if one is NaN. */
function complexMark(fill: JsonValue): number[] {
  const parts = isJsonArray(fill) ? fill.map(toNumber) : [toNumber(fill), 0];
  return parts.length === 2 && parts.every((part) => part !== undefined && !Number.isNaN(part))
    ? (parts as number[])
    : [];
}
