import { type CfTimeScale, cfTimeOf, isSameCalendar } from "../cf/cf-time.js";
import { convertPiece } from "../codec/convert-items.js";
import { itemValues, type NumericArray, variableTexts } from "../codec/items/item-values.js";
import { OWN_MEMORY } from "../codec/kernel/kernel-memory.js";
import { ZpublishError } from "../errors.js";
import type { JsonObject } from "../json/json-value.js";
import { type DataType, parseDataType } from "../model/data-type.js";
import { encodeFillItem, parseFillValue, writeHalf } from "../model/fill-value.js";
import { DEFAULT_COMPRESSOR } from "../zarr/codec-step.js";
import type { StoredArray, StoredFill } from "../zarr/stored-array.js";
import {
  differingScales,
  formError,
  groupForms,
  joinForms,
  type PartArrays,
  type PartForm,
  type PartForms,
  type PartStored,
  packingOfStored,
} from "./item-forms.js";

/** A coordinate in the parts that have steps, with the joined axis in front. */
interface PartValues extends PartArrays {
  readonly values: readonly Uint8Array[];
}

const NANOSECONDS_PER_DAY = 86_400_000_000_000n;

/**
 * Bytes of a served chunk. It does not depend on the length of the coordinate: clients with older metadata can read the chunks of a
 * dataset that has grown.
 */
const CHUNK_BYTES = 128 * 1024;

/**
 * Puts the values of a coordinate in a row.
 * @throws ZpublishError `invalid-metadata`, naming two parts, if their values cannot be in one array
 */
export function joinValues(arrays: PartValues, dims: readonly string[]) {
  const grouped = groupForms(arrays);
  const scales = differingScales(grouped.forms);
  const joined = scales === undefined ? bringTogether(arrays, grouped) : joinNumbers(arrays, grouped, scales);
  const { dataType, attrs, fill, change } = joined;
  const first = arrays.stored[0]!;
  const others = first.shape.slice(1);
  const stepBytes = others.reduce((product, length) => product * length, dataType.itemSize);
  const shape = [arrays.stored.reduce((sum, each) => sum + each.shape[0]!, 0), ...others];
  const stored: Omit<StoredArray, "chunks"> = {
    name: first.name,
    path: first.path,
    shape,
    chunkShape: shape.map((length) => Math.max(1, length)),
    dataType,
    axisOrder: shape.map((_, axis) => axis),
    codecs: [],
    compressorCount: 0,
    fill: { ...fill, absentIsServed: true },
    dimNames: dims,
    attrs,
    servedChunks: [Math.max(1, Math.floor(CHUNK_BYTES / Math.max(1, stepBytes))), ...others],
    servedCompressor: dataType.itemSize === 0 ? null : DEFAULT_COMPRESSOR,
  };
  return {
    stored,
    values: Buffer.concat(joined.values),
    /** True if numbers are counted from another time, or in another unit, than in some parts. */
    isRetimed: scales !== undefined && change !== undefined,
    /** Line for people, without the array's path; undefined if nothing was changed. */
    warning: change,
  };
}

/** Values of all parts in one type. */
interface Together {
  readonly dataType: DataType;
  readonly attrs: JsonObject;
  readonly fill: StoredFill;
  /** Items of each part, in that type. */
  readonly values: readonly Uint8Array[];
  readonly change: string | undefined;
}

function bringTogether(arrays: PartValues, { forms, formOf, heaviest }: PartForms): Together {
  const { stored: first } = forms[0]!;
  const { fill, attrs, dataType } = first;
  if (dataType.kind !== "O" && forms.length === 1)
    return { dataType, attrs, fill, values: arrays.values, change: undefined };
  const isText = ({ stored }: PartForm) => ["S", "U", "O"].includes(stored.dataType.kind);
  const odd = forms.find((form) => isText(form) !== isText(forms[0]!));
  if (odd !== undefined) throw formError(forms[0]!, odd);
  if (isText(forms[0]!)) {
    const texts = arrays.values.map((values, member) =>
      itemsOfValues(values, arrays.stored[member]!.dataType),
    );
    const type = widestText(texts as readonly (readonly string[])[], forms);
    const noFill = { served: null, item: null, absentIsServed: true };
    const values = texts.map((items) => writeItems(items, type));
    return { dataType: type, attrs, fill: noFill, values, change: undefined };
  }
  if (forms.every(({ stored }) => isPlainInteger(stored)))
    return joinNumbers(arrays, { forms, formOf, heaviest }, undefined);
  const joined = joinForms(forms, heaviest);
  return {
    ...{ dataType: joined.dataType, attrs: joined.attrs, change: joined.change },
    fill: joined.fill ?? { ...fill, item: parseFillValue(fill.served, joined.dataType).item },
    values: arrays.values.map((values, member) => {
      const conversion = joined.conversions[formOf[member]!];
      return conversion === undefined ? values : convertPiece(values, conversion, OWN_MEMORY);
    }),
  };
}

function isPlainInteger(stored: PartStored): boolean {
  const { scale, offset, missing, isUnsigned } = packingOfStored(stored);
  const isPlain = scale === 1 && offset === 0 && missing.length === 0 && isUnsigned === undefined;
  return isPlain && ["i", "u"].includes(stored.dataType.kind);
}

/** Returns the type that has the texts of all parts. */
function widestText(texts: readonly (readonly string[])[], forms: readonly PartForm[]): DataType {
  const isBytes = ({ stored }: PartForm) => stored.dataType.kind === "S";
  const odd = forms.find((form) => isBytes(form) !== isBytes(forms[0]!));
  if (odd !== undefined) throw formError(forms[0]!, odd);
  if (isBytes(forms[0]!))
    return parseDataType(`|S${Math.max(...forms.map(({ stored }) => stored.dataType.itemSize))}`);
  let width = 1;
  for (const items of texts) for (const text of items) width = Math.max(width, Array.from(text).length);
  return parseDataType(`<U${width}`);
}

/**
 * Counts times in the units of the first part, or brings integers to one type. Integers stay integers, and become 64 bits wide if need be.
 * @param scales Number line of each form. Undefined if numbers stay as they are.
 * @throws ZpublishError `invalid-metadata`, naming two parts, if a time is no exact number in these units
 */
function joinNumbers(
  { stored, values, names }: PartValues,
  { forms, formOf }: PartForms,
  scales: readonly CfTimeScale[] | undefined,
): Together {
  const { dataType: type, attrs, fill } = stored[0]!;
  const { units } = attrs;
  const isInteger = type.kind !== "f";
  const marks = packingOfStored(stored[0]!).missing;

  function itemsOf(member: number): Items | Item[] {
    const { dataType, attrs: own } = stored[member]!;
    const items = itemsOfValues(values[member]!, dataType);
    const form = formOf[member]!;
    const [from, to] = [scales?.[form], scales?.[0]];
    if (from === undefined || to === undefined || form === 0) return items;
    const { missing } = packingOfStored(stored[member]!);
    return Array.from(items as Iterable<number | bigint>, (item) => {
      const isMissing = Number.isNaN(item) || missing.includes(Number(item));
      const value = isMissing ? (isInteger ? marks[0] : Number.NaN) : encodeTime(item, from, to, isInteger);
      if (value !== undefined && (isMissing || !marks.includes(Number(value)))) return value;
      throw new ZpublishError(
        "invalid-metadata",
        `expected times that are exact ${isInteger ? "integers" : "floats"} in '${units}', as in ${names[0]}, received ${item} in '${own.units}' in ${names[member]}`,
      );
    });
  }

  const items = stored.map((_, member) => itemsOf(member));
  const wide = parseDataType(`${type.byteOrder === ">" ? ">" : "<"}${isInteger ? "i8" : "f8"}`);
  const dataType = [type, wide].find((each) => items.every((own) => hasAll(each, own)));
  if (dataType === undefined)
    throw new ZpublishError("invalid-metadata", "expected numbers within integers of 64 bits");
  const odd = scales && forms.find((form) => form.stored.attrs.units !== units);
  const count = stored.filter((each) => each.attrs.units !== units).length;
  const { json, item } = parseFillValue(fill.served, dataType);
  return {
    ...{ dataType, attrs, fill: { served: json, item, absentIsServed: true } },
    values: items.map((own) => writeItems(own, dataType)),
    change:
      odd &&
      `times of ${count} of ${stored.length} files are converted to '${units}', the first of ${odd.name}, which has '${odd.stored.attrs.units}'`,
  };
}

/** Returns the number of a time in other units; undefined if it is no integer, or no float to the nanosecond, or another date. */
function encodeTime(
  item: number | bigint,
  from: CfTimeScale,
  to: CfTimeScale,
  isInteger: boolean,
): number | bigint | undefined {
  if (!Number.isFinite(Number(item))) return undefined;
  const time = cfTimeOf(item, from);
  if (!isSameCalendar(from.calendar, to.calendar, Number(time / NANOSECONDS_PER_DAY))) return undefined;
  const whole = (time - to.reference) / to.unit;
  const rest = (time - to.reference) % to.unit;
  if (rest === 0n) return Number.isSafeInteger(Number(whole)) ? Number(whole) : whole;
  const value = Number(whole) + Number(rest) / Number(to.unit);
  return !isInteger && cfTimeOf(value, to) === time ? value : undefined;
}

function hasAll(type: DataType, items: ArrayLike<Item>): boolean {
  const found = itemsOfValues(writeItems(items, type), type);
  return found.every((item, index) => isSameItem(item, items[index]));
}

/** Items of a small array: numbers, integers and times of 64 bits as bigint, or texts. */
export type Items = Float64Array | BigInt64Array | BigUint64Array | readonly string[];

/** One of {@link Items}. Those of one array can be compared with `<`. */
export type Item = number | bigint | string;

/** Tells whether two items are equal, whatever their types; NaN is equal to itself. */
export function isSameItem(a: Item | undefined, b: Item | undefined): boolean {
  if ((typeof a === "string") !== (typeof b === "string")) return false;
  // biome-ignore lint/suspicious/noDoubleEquals: 1 and 1n are one value, whatever its type.
  return a == b || (Number.isNaN(a) && Number.isNaN(b));
}

/**
 * Reads items in C order.
 * @param values In the type and its byte order; those of a variable-length type as vlen-utf8 writes one chunk.
 * @throws ZpublishError `invalid-metadata` if items of the type are neither numbers nor texts
 */
export function itemsOfValues(values: Uint8Array, type: DataType): Items {
  if (type.kind === "O") return variableTexts(values);
  const items = itemValues(values, type);
  if (items === undefined) {
    throw new ZpublishError(
      "invalid-metadata",
      `expected numbers, times or texts, received items of type ${type.numpyStr}`,
    );
  }
  const isItems = Array.isArray(items) || items instanceof BigInt64Array || items instanceof BigUint64Array;
  return isItems ? items : Float64Array.from(items as Exclude<NumericArray, BigInt64Array | BigUint64Array>);
}

/**
 * Reads items as values that can be compared with those of other types, packings and units.
 * @param scale Undefined if items are no times, or times that are compared with those of the same units; else they become nanoseconds.
 */
export function decodeItems(values: Uint8Array, stored: PartStored, scale: CfTimeScale | undefined): Items {
  const items = itemsOfValues(values, stored.dataType);
  const { scale: factor, offset } = packingOfStored(stored);
  if (scale === undefined && factor === 1 && offset === 0) return items;
  const decode = (item: Item) => {
    if (typeof item === "string") return item;
    const isTime = scale !== undefined && Number.isFinite(Number(item));
    return isTime ? cfTimeOf(item, scale) : Number(item) * factor + offset;
  };
  return Array.from(items as Iterable<Item>, decode) as never;
}

/** Writes items of any number type, or texts of kind `U` and `S`. The opposite of {@link itemsOfValues}. */
export function writeItems(items: ArrayLike<Item>, type: DataType): Uint8Array {
  const { kind, itemSize } = type;
  const little = type.byteOrder !== ">";
  const bytes = new Uint8Array(items.length * itemSize);
  const view = new DataView(bytes.buffer);
  for (let i = 0; i < items.length; i++) {
    const item = items[i]!;
    const at = i * itemSize;
    if (kind === "S") bytes.set(Buffer.from(String(item)).subarray(0, itemSize), at);
    else if (kind === "U") bytes.set(encodeFillItem(String(item), type) ?? [], at);
    else if (kind === "f") writeFloat(view, at, Number(item), type);
    else if (itemSize === 8) view.setBigUint64(at, BigInt.asUintN(64, BigInt(item)), little);
    else if (itemSize === 4) view.setUint32(at, Number(item) >>> 0, little);
    else if (itemSize === 2) view.setUint16(at, Number(item), little);
    else view.setUint8(at, Number(item));
  }
  return bytes;
}

function writeFloat(view: DataView, at: number, value: number, { itemSize, byteOrder }: DataType): void {
  const little = byteOrder !== ">";
  if (itemSize === 8) view.setFloat64(at, value, little);
  else if (itemSize === 4) view.setFloat32(at, value, little);
  else writeHalf(new DataView(view.buffer, at, 2), value, little);
}
