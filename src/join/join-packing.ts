import type { JsonObject } from "../json/json-value.js";
import { type DataType, parseDataType } from "../model/data-type.js";
import { encodeFillItem } from "../model/fill-value.js";
import type { ItemConversion } from "../zarr/codec-step.js";
import type { StoredFill } from "../zarr/stored-array.js";
import { formError, type PartForm } from "./part-forms.js";
import { type PartStored, packingOfStored } from "./stored-form.js";

/** Type and meaning of the items of a joined array, and how those of each form become them. */
export interface JoinedForm {
  readonly dataType: DataType;
  readonly attrs: JsonObject;
  /** Undefined if parts keep theirs. */
  readonly fill: StoredFill | undefined;
  /** One per form; undefined if items stay as they are. */
  readonly conversions: readonly (ItemConversion | undefined)[];
  /** Words for a warning: `served as float32, unpacked`. Undefined if meaning and type stay. */
  readonly change: string | undefined;
}

/** Attributes that mean something only while items are packed (CF sections 2.5.1 and 8.1). */
const OF_PACKING: ReadonlySet<string> = new Set([
  "scale_factor",
  "add_offset",
  "_FillValue",
  "missing_value",
  "_Unsigned",
  "valid_min",
  "valid_max",
  "valid_range",
]);

/**
 * Settles the type of items that are stored in several forms, as xarray decodes and concatenates them. If only the byte order differs, the
 * heaviest form stays. If packing differs, or an integer meets a float, all become floats. Integers of several widths become the widest.
 * @param forms That of the first part first. Their units are the same.
 * @param heaviest Index of the form that most steps have.
 * @throws ZpublishError `invalid-metadata`, naming two parts, if items are no numbers, or no type has all values of those that are not packed
 */
export function joinForms(forms: readonly PartForm[], heaviest: number): JoinedForm {
  const first = forms[0] as PartForm;
  const main = forms[heaviest] as PartForm;
  const odd = forms.find((form) => !isSameMeaning(form.stored, first.stored));
  if (odd === undefined) {
    const conversions = forms.map(({ stored }) => swapOf(stored.dataType, main.stored.dataType));
    const { attrs } = first.stored;
    return { dataType: main.stored.dataType, attrs, fill: undefined, conversions, change: undefined };
  }
  const decoded = forms.map(({ stored }) => decodedType(stored));
  if (decoded.includes(undefined)) throw formError(first, odd);
  const attrs = Object.fromEntries(
    Object.entries(first.stored.attrs).filter(([key]) => !OF_PACKING.has(key)),
  );
  if (decoded.every((type) => type !== "f4" && type !== "f8")) {
    const dataType = widestOf(decoded as readonly string[]);
    if (dataType === undefined) throw formError(first, odd);
    const to = String(dataType.zarr);
    const conversions = forms.map(({ stored }) => {
      const { from } = meaningOf(stored);
      return from === to ? undefined : ({ kind: "widen", from, to } as const);
    });
    const fill = { served: null, item: null, absentIsServed: true };
    return { dataType, attrs, fill, conversions, change: `served as ${dataType.numpyStr}` };
  }
  // Where some integers are packed, those of more than 53 bits are rounded, as xarray rounds them.
  const isPacked = forms.some(
    ({ stored }, form) => stored.dataType.kind !== "f" && decoded[form]?.[0] === "f",
  );
  if (!isPacked && decoded.some((type) => type === "i8" || type === "u8")) throw formError(first, odd);
  // Integers of more than 24 bits are no floats of 32 bits.
  const isWide = decoded.some((type) => type === "f8" || /^[iu][48]$/.test(type as string));
  const dataType = parseDataType(isWide ? "<f8" : "<f4");
  const item = encodeFillItem("NaN", dataType);
  return {
    dataType,
    attrs,
    fill: { served: "NaN", item, absentIsServed: true },
    conversions: forms.map(({ stored }) => unpackingOf(stored, dataType)),
    change: `served unpacked, as ${dataType.numpyStr}`,
  };
}

/** Tells whether items differ in nothing but their byte order, and in how missing values are marked that no item can have. */
function isSameMeaning(a: PartStored, b: PartStored): boolean {
  if (a.dataType !== b.dataType && !isSameButOrder(a.dataType, b.dataType)) return false;
  if (!isNumber(a.dataType)) return true;
  const [one, other] = [packingOfStored(a), packingOfStored(b)];
  return (
    one.scale === other.scale &&
    one.offset === other.offset &&
    one.isUnsigned === other.isUnsigned &&
    one.missing.length === other.missing.length &&
    one.missing.every((value) => other.missing.includes(value)) &&
    decodedType(a) === decodedType(b)
  );
}

function isSameButOrder(a: DataType, b: DataType): boolean {
  return a.numpyName === b.numpyName && a.kind !== "V";
}

function isNumber({ kind }: DataType): boolean {
  return kind === "i" || kind === "u" || kind === "f";
}

/**
 * Returns the type to which xarray decodes items (`_choose_float_dtype`, after marks of missing values have made floats of integers):
 * `f4`, `f8`, or the integers' own, such as `i2`. Undefined if it is none of these.
 */
function decodedType(stored: PartStored): string | undefined {
  const { dataType, attrs } = stored;
  if (!isNumber(dataType)) return undefined;
  const { missing, isUnsigned } = packingOfStored(stored);
  const { itemSize } = dataType;
  const kind = dataType.kind === "f" || isUnsigned === undefined ? dataType.kind : isUnsigned ? "u" : "i";
  if (kind === "f") return itemSize === 4 || itemSize === 8 ? `f${itemSize}` : undefined;
  const isMasked = missing.length > 0;
  const isScaled = attrs.scale_factor !== undefined || attrs.add_offset !== undefined;
  if (!isMasked && !isScaled) return `${kind}${itemSize}`;
  const isExact = itemSize <= 2 && (isMasked || attrs.add_offset === undefined);
  return isExact ? "f4" : "f8";
}

/** Returns the narrowest type of integers that has the values of all, as numpy's `result_type`; undefined if there is none. */
function widestOf(types: readonly string[]): DataType | undefined {
  const sizes = (kind: string) => types.filter((type) => type[0] === kind).map((type) => Number(type[1]));
  const signed = Math.max(0, ...sizes("i"));
  const unsigned = Math.max(0, ...sizes("u"));
  const size = signed === 0 ? unsigned : Math.max(signed, 2 * unsigned);
  if (size > 8) return undefined;
  return parseDataType(`${size === 1 ? "|" : "<"}${signed === 0 ? "u" : "i"}${size}`);
}

function swapOf(from: DataType, to: DataType): ItemConversion | undefined {
  if (from.byteOrder === to.byteOrder || from.byteOrder === "|" || to.byteOrder === "|") return undefined;
  const wordSize = from.kind === "c" ? from.itemSize / 2 : from.kind === "U" ? 4 : from.itemSize;
  return { kind: "swap", wordSize };
}

function unpackingOf(stored: PartStored, to: DataType): ItemConversion | undefined {
  const { scale, offset, missing, isUnsigned } = packingOfStored(stored);
  const { dataType } = stored;
  const isPlain = scale === 1 && offset === 0 && missing.length === 0;
  if (isPlain && dataType.zarr === to.zarr) return undefined;
  const { from, isReversed } = meaningOf(stored);
  return {
    kind: "unpack",
    from,
    to: String(to.zarr),
    scale,
    offset,
    missing: isReversed ? missing.map((value) => reversed(value, dataType, isUnsigned === true)) : missing,
  };
}

/** Returns the type as which stored bits are read, which `_Unsigned` may turn into that of the other signedness. */
function meaningOf(stored: PartStored): { readonly from: string; readonly isReversed: boolean } {
  const { isUnsigned } = packingOfStored(stored);
  const { kind, byteOrder, itemSize } = stored.dataType;
  const isReversed = isUnsigned !== undefined && (kind === "u") !== isUnsigned && kind !== "f";
  const letter = isReversed ? (isUnsigned ? "u" : "i") : kind;
  return { from: `${byteOrder}${letter}${itemSize}`, isReversed };
}

/** Returns a mark as the number that its bits are in the type of the other signedness. */
function reversed(value: number, { itemSize }: DataType, isUnsigned: boolean): number {
  const modulus = 2 ** (8 * itemSize);
  if (isUnsigned) return value < 0 ? value + modulus : value;
  return value >= modulus / 2 ? value - modulus : value;
}
