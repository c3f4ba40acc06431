import { isJsonArray, type JsonObject, type JsonValue, toNumber, toNumbers } from "../json/json-value.js";
import type { DataType } from "../model/data-type.js";
import { readHalf, writeHalf } from "../model/fill-value.js";

/** How stored numbers become values (CF sections 2.5.1 and 8.1). Plain data. */
export interface Packing {
  /** Stored numbers that mean a missing value: `_FillValue` and `missing_value`. NaN is always missing. */
  readonly missing: readonly number[];
  /** Least and greatest stored number that is a value, by `valid_range`, `valid_min` and `valid_max`. xarray ignores them. */
  readonly validMin: number;
  readonly validMax: number;
  /** A value is `stored * scale + offset`. */
  readonly scale: number;
  readonly offset: number;
  /** Whether stored integers of a signed type are unsigned, or the reverse (attribute `_Unsigned`); undefined if the attribute is absent. */
  readonly isUnsigned: boolean | undefined;
}

/**
 * Reads the packing of a variable from its attributes.
 * @param fillValue `fill_value` of the array's document, which xarray takes for `_FillValue`; null for none.
 */
export function packingOf(attrs: JsonObject, fillValue: JsonValue | undefined = null): Packing {
  const missing = [fillValue, attrs._FillValue, attrs.missing_value].flatMap(toNumbers);
  const [rangeMin, rangeMax] = toNumbers(attrs.valid_range);
  const unsigned = typeof attrs._Unsigned === "string" ? attrs._Unsigned.toLowerCase() : undefined;
  return {
    missing: [...new Set(missing.filter((value) => !Number.isNaN(value)))],
    validMin: toNumbers(attrs.valid_min)[0] ?? rangeMin ?? Number.NEGATIVE_INFINITY,
    validMax: toNumbers(attrs.valid_max)[0] ?? rangeMax ?? Number.POSITIVE_INFINITY,
    scale: toNumbers(attrs.scale_factor)[0] ?? 1,
    offset: toNumbers(attrs.add_offset)[0] ?? 0,
    isUnsigned: unsigned === undefined ? undefined : unsigned === "true",
  };
}

/**
 * Returns the number that marks missing values of a coordinate: its `fill_value`, unless that is 0, which is Zarr's default, and a place
 * such as the longitude 0. xarray takes that place for missing.
 */
export function coordinateMark(fillValue: JsonValue | undefined): JsonValue {
  return fillValue === undefined || toNumber(fillValue) === 0 ? null : fillValue;
}

/**
 * Returns a packing with its stored numbers as items of a type have them, so that equal texts are equal numbers: 1e20 is another number in
 * 32 bits, and the fill value of unsigned integers in a signed type is negative.
 * @param type Type of the items that are compared: after `_Unsigned`.
 */
export function roundedPacking(
  packing: Packing,
  { kind, itemSize }: Pick<DataType, "kind" | "itemSize">,
): Packing {
  const span = 2 ** (8 * itemSize);
  const least = kind === "u" ? 0 : -span / 2;
  const round = (value: number): number => {
    if (kind === "f") return roundFloat(value, itemSize);
    if (packing.isUnsigned === undefined || !(value >= -span / 2 && value < span)) return value;
    return value < least ? value + span : value >= least + span ? value - span : value;
  };
  const { missing, validMin, validMax } = packing;
  return { ...packing, missing: missing.map(round), validMin: round(validMin), validMax: round(validMax) };
}

const half = new DataView(new ArrayBuffer(2));

/** Rounds a number to a float of so many bytes. */
export function roundFloat(value: number, itemSize: number | undefined): number {
  if (itemSize !== 2) return itemSize === 4 ? Math.fround(value) : value;
  writeHalf(half, value, true);
  return readHalf(half, true);
}

/** Returns the value of a stored number; NaN if it is missing. */
export function unpacked(stored: number, { missing, validMin, validMax, scale, offset }: Packing): number {
  for (let index = 0; index < missing.length; index++) if (missing[index] === stored) return Number.NaN;
  // The comparison is false for NaN.
  return stored >= validMin && stored <= validMax ? stored * scale + offset : Number.NaN;
}

/** Whether some values of a variable are flags (CF section 3.5), which are never averaged. */
export function hasFlags({ flag_values, flag_masks }: JsonObject): boolean {
  return flag_values !== undefined || flag_masks !== undefined;
}

/**
 * Whether a variable holds categories, which have no range. Flags beside packed numbers, or outside of the valid range, say why there
 * is no number: such a variable holds numbers.
 */
export function isCategorical(attrs: JsonObject): boolean {
  if (!hasFlags(attrs)) return false;
  const { scale, offset, validMin, validMax } = packingOf(attrs);
  const flags = flagValuesOf(attrs);
  const isBeside = flags.length > 0 && flags.every((flag) => flag < validMin || flag > validMax);
  return scale === 1 && offset === 0 && !isBeside;
}

/** Returns the `flag_values` of a variable that {@link isCategorical}: empty if it has masks only. */
export function flagValuesOf({ flag_values }: JsonObject): number[] {
  // Some writers make a text of them: `0b, 1b, 2b`.
  if (typeof flag_values !== "string") return toNumbers(flag_values);
  return (flag_values.match(/-?\d+/g) ?? []).map(Number);
}

/** Returns the `flag_colors` of a variable, `#rrggbb` each, as 3 bytes per flag value; undefined if it has none, or too few. */
export function flagColoursOf({ flag_colors }: JsonObject, count: number): Uint8Array | undefined {
  const texts = isJsonArray(flag_colors)
    ? flag_colors.map(String)
    : String(flag_colors ?? "").split(/[\s,]+/);
  const colours = texts.filter((text) => /^#[0-9a-f]{6}$/i.test(text)).slice(0, count);
  if (count === 0 || colours.length < count) return undefined;
  return Uint8Array.from(
    colours.flatMap((text) => [1, 3, 5].map((at) => Number.parseInt(text.slice(at, at + 2), 16))),
  );
}
