import { type CfTimeScale, cfTimeScale, isSameCalendar } from "../cf/cf-time.js";
import { cfDecodingOf, type NumberDecoding } from "../cf/decoded-type.js";
import { type Packing, packingOf } from "../cf/packing.js";
import { wordSizeOf } from "../codec/items/decode-numbers.js";
import { ZpublishError } from "../errors.js";
import { isJsonArray, type JsonObject, type JsonValue, toNumber } from "../json/json-value.js";
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

const keys = new WeakMap<PartStored, string>();

/** Returns a text that is equal for arrays whose stored items mean the same: type, fill value, packing and units are equal. */
export function formKey(stored: PartStored): string {
  const known = keys.get(stored);
  if (known !== undefined) return known;
  const { dataType, fill, attrs } = stored;
  const key = [dataType.zarr, fill.served, ...MEANING.map((name) => attrs[name])].map(jsonKey).join();
  keys.set(stored, key);
  return key;
}

/** Names the first difference between arrays whose {@link formKey} differs, and how each of them has it. */
function formDifference(
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

const packings = new WeakMap<PartStored, Packing>();

/** Returns the packing of a stored array; xarray takes its fill value for a mark of missing values. */
export function packingOfStored(stored: PartStored): Packing {
  const packing = packings.get(stored) ?? packingOf(stored.attrs, stored.fill.served);
  packings.set(stored, packing);
  return packing;
}

/** Returns a text that is equal for equal JSON values, numbers by their value: 1 and 1.0 are equal, and so are NaN and NaN. */
function jsonKey(value: JsonValue | undefined): string {
  return value === undefined ? "" : stringifyJson(normalOf(value));
}

function isSameJson(a: JsonValue | undefined, b: JsonValue | undefined): boolean {
  return Object.is(a, b) || jsonKey(a) === jsonKey(b);
}

/** Replaces numbers that keep their text by their value. */
function normalOf(value: JsonValue): JsonValue {
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
  const formOf = arrays.map((stored, index) => {
    const key = formKey(stored);
    const form = byKey.get(key) ?? forms.push({ stored, name: names[index]! }) - 1;
    byKey.set(key, form);
    weights[form] = (weights[form] ?? 0) + steps[index]!;
    return form;
  });
  return { forms, formOf, heaviest: weights.indexOf(Math.max(...weights)) };
}

/**
 * Compares the units and calendars of forms.
 * @returns The time scale of each form if they differ; undefined if all mean the same.
 * @throws ZpublishError `invalid-metadata` if they differ, and are not all those of times
 */
export function differingScales(forms: readonly PartForm[]): readonly CfTimeScale[] | undefined {
  const first = forms[0]!;
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
  const { unit, reference, calendar } = scales[0]!;
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
 * heaviest form stays. If packing differs, or an integer meets a float, all become floats.
 * @throws ZpublishError `invalid-metadata`, naming two parts, if items are no numbers, or integers of different types
 */
export function joinForms(forms: readonly PartForm[], heaviest: number): JoinedForm {
  const first = forms[0]!;
  const main = forms[heaviest]!;
  const odd = forms.find((form) => !isSameMeaning(form.stored, first.stored));
  if (odd === undefined) {
    const conversions = forms.map(({ stored }) => swapOf(stored.dataType, main.stored.dataType));
    const { attrs } = first.stored;
    return { dataType: main.stored.dataType, attrs, fill: undefined, conversions, change: undefined };
  }
  const decoded = forms.map(({ stored }) => decodedType(stored));
  const isFloat = decoded.some((type) => type === "f4" || type === "f8");
  if (!isFloat || decoded.includes(undefined)) throw formError(first, odd);
  const attrs = Object.fromEntries(
    Object.entries(first.stored.attrs).filter(([key]) => !OF_PACKING.has(key)),
  );
  // If some integers are packed, those of more than 53 bits are rounded, as xarray rounds them.
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
 * Returns the type to which xarray decodes items, dates and durations as their numbers: `f4`, `f8`, or the integers' own, such as `i2`.
 * Undefined if it is none of these.
 */
function decodedType(stored: PartStored): string | undefined {
  const { kind, itemSize } = decodingOf(stored)?.to ?? stored.dataType;
  const isKnown = kind === "f" ? itemSize === 4 || itemSize === 8 : kind === "i" || kind === "u";
  return isKnown ? `${kind}${itemSize}` : undefined;
}

function decodingOf({ dataType, attrs, fill }: PartStored): NumberDecoding | undefined {
  return cfDecodingOf(dataType, attrs, fill.served).numbers;
}

function swapOf(from: DataType, to: DataType): ItemConversion | undefined {
  if (from.byteOrder === to.byteOrder || from.byteOrder === "|" || to.byteOrder === "|") return undefined;
  return { kind: "swap", wordSize: wordSizeOf(from) };
}

function unpackingOf(stored: PartStored, { kind, itemSize, zarr }: DataType): ItemConversion | undefined {
  const { dataType } = stored;
  const decoding = decodingOf(stored);
  if (decoding === undefined && dataType.zarr === zarr) return undefined;
  const { from, missing, scale, offset } = decoding ?? { ...AS_STORED, from: dataType };
  const type = { kind: from.kind, itemSize: from.itemSize };
  return {
    kind: "unpack",
    from: String(dataType.zarr),
    decoding: { from: type, to: { kind, itemSize }, missing, scale, offset },
  };
}

/** Numbers that mean themselves. */
const AS_STORED = { missing: [], scale: undefined, offset: undefined };
