import type { Packing } from "../../cf/packing.js";
import { openRows } from "../../codec/item-rows.js";
import { isJsonArray, type JsonObject, type JsonValue, toBigInt } from "../../json/json-value.js";
import type { DataType } from "../../model/data-type.js";
import { encodeFillItem, fillItemToJson } from "../../model/fill-value.js";
import { parseDataType } from "../../model/parse-data-type.js";
import type { LevelMethod } from "../../zarr/plan/compute-step.js";
import type { StoredArray, StoredFill } from "../../zarr/stored-array.js";

/** The form of the values of a level. */
export interface LevelValues {
  readonly dataType: DataType;
  readonly fill: StoredFill;
  /** One item that stands for a missing value; null if there are none. */
  readonly missingItem: Uint8Array | null;
  /** Whether a block of absent chunks makes an absent chunk. */
  readonly absentIsAbsent: boolean;
  /** Returns the attributes that still hold. */
  attributesOf(attrs: JsonObject): JsonObject;
}

/** Attributes that mark missing values, of which a float has NaN. */
const MARKS = ["_FillValue", "missing_value", "_Unsigned"];
/** Attributes about packed numbers. */
const PACKING = ["scale_factor", "add_offset", "valid_min", "valid_max", "valid_range"];

/** Chooses the form of a level's values. @param keepsType As in `LevelRequest`. */
export function levelValues(
  { dataType, fill, attrs }: StoredArray,
  packing: Packing,
  method: LevelMethod,
  keepsType: boolean,
): LevelValues {
  const isKept = method !== "mean" || (keepsType && dataType.kind !== "f");
  if (isKept) {
    return {
      dataType,
      fill,
      missingItem:
        method === "nearest" || method === "bounds"
          ? null
          : missingItemOf(dataType, packing, fill.item, attrs),
      // All that is made of fill values is the fill value.
      absentIsAbsent: fill.absentIsServed,
      attributesOf: (given) => given,
    };
  }
  const to = meanType(dataType, packing);
  const item = encodeFillItem("NaN", to);
  const isPacked = packing.scale !== 1 || packing.offset !== 0;
  const obsolete = new Set([...MARKS, ...(isPacked ? PACKING : [])]);
  return {
    dataType: to,
    fill: { served: fillItemToJson(item, to), item, absentIsServed: true },
    missingItem: item,
    absentIsAbsent: isMissingItem(fill.item ?? new Uint8Array(dataType.itemSize), dataType, packing),
    attributesOf: (given) => Object.fromEntries(Object.entries(given).filter(([key]) => !obsolete.has(key))),
  };
}

/** Returns the type of unpacked means: single floats if they tell values apart, and the numbers between them. */
function meanType({ kind, itemSize }: DataType, { scale, offset }: Packing): DataType {
  const isShort = itemSize <= 2;
  if (kind === "f") return parseDataType(itemSize <= 4 ? "<f4" : "<f8");
  const greatest = Math.abs(offset) + 2 ** (8 * itemSize) * Math.abs(scale);
  // A single float has 24 bits; means of four values need two more than the values.
  const isFine = greatest * 2 ** -24 <= Math.abs(scale) / 4;
  return parseDataType(isShort && isFine ? "<f4" : "<f8");
}

/** Finds an item that means a missing value, as little as possible other than what the array has; null if none does. */
function missingItemOf(
  dataType: DataType,
  packing: Packing,
  fillItem: Uint8Array | null,
  { _FillValue, missing_value }: JsonObject,
): Uint8Array | null {
  const named = [_FillValue, missing_value].flatMap(listOf);
  const items = [fillItem, ...named.map((value) => encoded(value, dataType, packing))];
  const found = items.find((item) => item != null && isMissingItem(item, dataType, packing));
  return found ?? (dataType.kind === "f" ? encodeFillItem("NaN", dataType) : null);
}

function listOf(value: JsonValue | undefined): readonly (JsonValue | undefined)[] {
  return isJsonArray(value) ? value : [value];
}

function encoded(
  value: JsonValue | undefined,
  dataType: DataType,
  { isUnsigned }: Packing,
): Uint8Array | undefined {
  if (value === undefined) return undefined;
  const bits = 8 * dataType.itemSize;
  const integer = isUnsigned === undefined ? undefined : toBigInt(value);
  const wrapped = dataType.kind === "i" ? BigInt.asIntN : BigInt.asUintN;
  try {
    return encodeFillItem(integer === undefined ? value : wrapped(bits, integer), dataType);
  } catch {
    // A number that no item can be marks none.
    return undefined;
  }
}

function isMissingItem(item: Uint8Array, dataType: DataType, packing: Packing): boolean {
  const row = new Float64Array(1);
  openRows(item, dataType, packing).read(row, 0, 1);
  return Number.isNaN(row[0]);
}
