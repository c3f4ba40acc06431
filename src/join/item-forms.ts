import { type CfTimeScale, cfTimeScale, isSameCalendar } from "../cf/cf-time.js";
import { type Packing, packingOf } from "../cf/packing.js";
import { ZpublishError } from "../errors.js";
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue, toNumber } from "../json/json-value.js";
import { stringifyJson } from "../json/stringify-json.js";
import { type DataType, parseDataType } from "../model/data-type.js";
import { encodeFillItem } from "../model/fill-value.js";
import type { ItemConversion } from "../zarr/codec-step.js";
import type { StoredArray, StoredFill } from "../zarr/stored-array.js";

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

/** The arrays of one path in the parts that have steps, in order. */
export interface PartArrays {
  readonly stored: readonly PartStored[];
  /** Names of the parts. */
  readonly names: readonly string[];
  /** Steps that the joined array has of each part. */
  readonly weights: readonly number[];
}

/** Stored items of one or more parts that mean the same. */
export interface PartForm {
  readonly stored: PartStored;
  /** The first part that has it, for messages. */
  readonly name: string;
}

/** The forms that an array has in its parts. */
export interface PartForms {
  /** That of the first part first. */
  readonly forms: readonly PartForm[];
  /** Index in `forms`, one per array. */
  readonly formOf: readonly number[];
  /** Index of the form that most steps have. */
  readonly heaviest: number;
}

/** Groups arrays by type, packing and units. */
export function groupForms({ stored: arrays, names, weights: steps }: PartArrays): PartForms {
  const forms: PartForm[] = [];
  const byKey = new Map<string, number>();
  const weights: number[] = [];
  let last = -1;
  const formOf = arrays.map((stored, index) => {
    // Most parts are as the one before, which is quicker to tell than to make a key.
    if (last < 0 || !isSameForm((forms[last] as PartForm).stored, stored)) {
      const key = formKey(stored);
      let form = byKey.get(key);
      if (form === undefined) {
        form = forms.push({ stored, name: names[index] as string }) - 1;
        byKey.set(key, form);
      }
      last = form;
    }
    weights[last] = (weights[last] ?? 0) + (steps[index] as number);
    return last;
  });
  return { forms, formOf, heaviest: weights.indexOf(Math.max(...weights)) };
}

/**
 * Compares the units and calendars of forms.
 * @returns The time scale of each form if they differ; undefined if all mean the same.
 * @throws ZpublishError `invalid-metadata` if they differ, and are not all those of times
 */
export function differingScales(forms: readonly PartForm[]): readonly CfTimeScale[] | undefined {
  const first = forms[0] as PartForm;
  const odd = forms.find(
    ({ stored: { attrs } }) =>
      !isSameJson(attrs.units, first.stored.attrs.units) ||
      !isSameJson(attrs.calendar, first.stored.attrs.calendar),
  );
  if (odd === undefined) return undefined;
  const scales: CfTimeScale[] = [];
  for (const { stored } of forms) {
    const scale = cfTimeScale(stored.attrs);
    if (scale === undefined) throw unitsError(first, odd);
    scales.push(scale);
  }
  const { unit, reference, calendar } = scales[0] as CfTimeScale;
  if (scales.some((scale) => !isSameCalendar(scale.calendar, calendar, Number.POSITIVE_INFINITY))) {
    throw unitsError(first, odd);
  }
  const isSame = scales.every(
    (scale) => scale.unit === unit && scale.reference === reference && scale.calendar === calendar,
  );
  return isSame ? undefined : scales;
}

/** Returns the error about two parts whose units differ. */
export function unitsError(first: PartForm, odd: PartForm): ZpublishError {
  const text = ({ stored: { attrs } }: PartForm) =>
    [attrs.units, attrs.calendar]
      .filter((each) => each !== undefined)
      .map((each) => `'${String(each)}'`)
      .join(", ") || "none";
  return new ZpublishError(
    "invalid-metadata",
    `expected units ${text(first)} in ${odd.name}, as in ${first.name}, received ${text(odd)}`,
  );
}

/** Returns the error about two parts of which the latter's items cannot become the former's. */
export function formError(first: PartForm, odd: PartForm): ZpublishError {
  const { name, expected, received } = formDifference(first.stored, odd.stored);
  return new ZpublishError(
    "invalid-metadata",
    `expected ${name} ${expected} in ${odd.name}, as in ${first.name}, received ${received}`,
  );
}

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
