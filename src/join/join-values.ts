import { type CfTimeScale, cfTimeOf, isSameCalendar } from "../cf/cf-time.js";
import { ZpublishError } from "../errors.js";
import type { JsonObject } from "../json/json-value.js";
import { type DataType, parseDataType } from "../model/data-type.js";
import { parseFillValue, readHalf, readLongDouble, writeHalf } from "../model/fill-value.js";
import { DEFAULT_COMPRESSOR, type ItemConversion } from "../zarr/codec-step.js";
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
export interface PartValues extends PartArrays {
  readonly values: readonly Uint8Array[];
}

/** A coordinate of all parts. */
export interface JoinedValues {
  readonly stored: Omit<StoredArray, "chunks">;
  readonly values: Uint8Array;
  /** True if numbers are counted from another time, or in another unit, than in some parts. */
  readonly isRetimed: boolean;
  /** Line for people, without the array's path; undefined if nothing was changed. */
  readonly warning: string | undefined;
}

/**
 * Bytes of a served chunk. It does not depend on the length of the coordinate: clients with older metadata can read the chunks of a
 * dataset that has grown.
 */
const CHUNK_BYTES = 128 * 1024;

/** Runs of steps, and the index of the array of each. */
export interface ValueRuns {
  readonly steps: readonly { readonly from: number; readonly length: number }[];
  readonly presentOf: readonly number[];
}

/**
 * Puts the values of a coordinate in a row.
 * @param dims Names of the axes, the joined one first.
 * @throws ZpublishError `invalid-metadata`, naming two parts, if their values cannot be in one array
 */
export function joinValues(
  arrays: PartValues,
  { steps, presentOf }: ValueRuns,
  dims: readonly string[],
): JoinedValues {
  const grouped = groupForms(arrays);
  const scales = differingScales(grouped.forms);
  const joined = scales === undefined ? undefined : retime(arrays, grouped, scales);
  const { dataType, attrs, fill, items, change } = joined ?? bringTogether(arrays, grouped);
  const first = arrays.stored[0] as PartStored;
  const others = first.shape.slice(1);
  const stride = others.reduce((product, length) => product * length, 1);
  const total = steps.reduce((sum, { length }) => sum + length, 0);
  const ranges = steps.map(({ from, length }, run) => ({
    member: presentOf[run] as number,
    begin: from * stride,
    end: (from + length) * stride,
  }));
  const values =
    items === undefined
      ? concatBytes(arrays.values, ranges, dataType.itemSize)
      : writeItems(
          ranges.flatMap(({ member, begin, end }) => Array.from(items(member).slice(begin, end) as Item[])),
          dataType,
        );
  const shape = [total, ...others];
  const stored = {
    name: first.name,
    path: first.path,
    shape,
    chunkShape: shape.map((length) => Math.max(1, length)),
    dataType,
    axisOrder: shape.map((_, axis) => axis),
    codecs: [],
    compressorCount: 0 as const,
    fill: { ...fill, absentIsServed: true },
    dimNames: dims,
    attrs,
    servedChunks: [Math.max(1, Math.floor(CHUNK_BYTES / Math.max(1, stride * dataType.itemSize))), ...others],
    servedCompressor: dataType.itemSize === 0 ? null : DEFAULT_COMPRESSOR,
  };
  return { stored, values, isRetimed: joined?.change !== undefined, warning: change };
}

/** Values of all members in one type; `items` is undefined if they are that as they are stored. */
interface Together {
  readonly dataType: DataType;
  readonly attrs: JsonObject;
  readonly fill: StoredFill;
  readonly items: ((member: number) => Items | readonly Item[]) | undefined;
  readonly change: string | undefined;
}

function retime(arrays: PartValues, { forms, formOf }: PartForms, scales: readonly CfTimeScale[]): Together {
  const first = arrays.stored[0] as PartStored;
  const times = arrays.stored.map((stored, index) => ({
    name: arrays.names[index] as string,
    units: String(stored.attrs.units),
    scale: scales[formOf[index] as number] as CfTimeScale,
    items: readItems(arrays.values[index] as Uint8Array, stored.dataType),
    missing: packingOfStored(stored).missing,
  }));
  const { items, units, dataType } = joinTimes(times, first.dataType);
  const fill = parseFillValue(first.fill.served, dataType);
  const odd = forms.find(({ stored }) => stored.attrs.units !== units);
  const count = arrays.stored.filter(({ attrs }) => attrs.units !== units).length;
  return {
    dataType,
    attrs: { ...first.attrs, units },
    fill: { served: fill.json, item: fill.item, absentIsServed: true },
    items: (member) => items[member] as readonly Item[],
    change:
      odd &&
      `times of ${count} of ${arrays.stored.length} files are converted to '${units}', the first of ${odd.name}, which has '${odd.stored.attrs.units}'`,
  };
}

function bringTogether(arrays: PartValues, { forms, formOf, heaviest }: PartForms): Together {
  const { stored: first } = forms[0] as PartForm;
  const { fill, attrs, dataType } = first;
  const isText = (type: DataType) => type.kind === "S" || type.kind === "U" || type.kind === "O";
  if (dataType.kind !== "O" && forms.every(({ stored }) => stored.dataType.zarr === dataType.zarr)) {
    if (forms.length === 1) return { dataType, attrs, fill, items: undefined, change: undefined };
  }
  const itemsOf = (member: number, type?: DataType) => {
    const { dataType: own } = arrays.stored[member] as PartStored;
    return readItems(arrays.values[member] as Uint8Array, type ?? own);
  };
  if (forms.every(({ stored }) => isText(stored.dataType))) {
    const type = widestText(arrays, forms);
    const noFill = { served: null, item: null, absentIsServed: true };
    return { dataType: type, attrs, fill: noFill, items: (member) => itemsOf(member), change: undefined };
  }
  const odd = forms.find(({ stored }) => isText(stored.dataType) !== isText(dataType));
  if (odd !== undefined) throw formError(forms[0] as PartForm, odd);
  const joined = joinForms(forms, heaviest);
  const served = joined.fill ?? { ...fill, item: parseFillValue(fill.served, joined.dataType).item };
  return {
    ...{ dataType: joined.dataType, attrs: joined.attrs, fill: served, change: joined.change },
    items: (member) => {
      const conversion = joined.conversions[formOf[member] as number];
      if (conversion?.kind !== "unpack") return itemsOf(member);
      return unpack(itemsOf(member, parseDataType(conversion.from)), conversion);
    },
  };
}

/** Returns the type that has the texts of all parts. */
function widestText(arrays: PartValues, forms: readonly PartForm[]): DataType {
  const { dataType } = (forms[0] as PartForm).stored;
  if (forms.every(({ stored }) => stored.dataType.kind === "S")) {
    return parseDataType(`|S${Math.max(...forms.map(({ stored }) => stored.dataType.itemSize))}`);
  }
  const odd = forms.find(({ stored }) => (stored.dataType.kind === "S") !== (dataType.kind === "S"));
  if (odd !== undefined) throw formError(forms[0] as PartForm, odd);
  let width = 1;
  arrays.values.forEach((values, member) => {
    for (const text of readItems(
      values,
      (arrays.stored[member] as PartStored).dataType,
    ) as readonly string[]) {
      width = Math.max(width, Array.from(text).length);
    }
  });
  return parseDataType(`<U${width}`);
}

/** Unpacks items as workers do those of chunks. */
function unpack(
  items: Items,
  { to, scale, offset, missing }: Extract<ItemConversion, { kind: "unpack" }>,
): Float64Array {
  const round = to === "<f4" ? Math.fround : Number;
  return Float64Array.from(items as Iterable<Item>, Number).map((item) => {
    if (missing.includes(item)) return Number.NaN;
    const scaled = round(round(item) * round(scale));
    return offset === 0 ? scaled : round(scaled + round(offset));
  });
}

function concatBytes(
  values: readonly Uint8Array[],
  ranges: readonly { readonly member: number; readonly begin: number; readonly end: number }[],
  itemSize: number,
): Uint8Array {
  return Buffer.concat(
    ranges.map(({ member, begin, end }) =>
      (values[member] as Uint8Array).subarray(begin * itemSize, end * itemSize),
    ),
  );
}

/** Times of one part, as they are stored. */
export interface PartTimes {
  readonly name: string;
  readonly units: string;
  readonly scale: CfTimeScale;
  readonly items: Items;
  /** Stored numbers that mean that there is no time. */
  readonly missing: readonly number[];
}

/** Times of several parts in one unit. */
export interface JoinedTimes {
  /** One list per part. */
  readonly items: readonly (readonly Item[])[];
  readonly units: string;
  readonly dataType: DataType;
}

/** Units of times that are not whole in the first part's, from the coarsest. */
const FINER: readonly (readonly [name: string, nanoseconds: bigint])[] = [
  ["days", 86_400_000_000_000n],
  ["hours", 3_600_000_000_000n],
  ["minutes", 60_000_000_000n],
  ["seconds", 1_000_000_000n],
  ["milliseconds", 1_000_000n],
  ["microseconds", 1000n],
  ["nanoseconds", 1n],
];

/**
 * Brings times to the units of the first part, exactly. Integers stay integers, and become 64 bits wide if need be. If a time is not
 * whole in that unit, or no float of 64 bits, all are counted in the coarsest finer unit that has all.
 * @param dataType Type of the first part's times.
 * @throws ZpublishError `invalid-metadata` if there is no such unit, or a calendar differs
 */
export function joinTimes(parts: readonly PartTimes[], dataType: DataType): JoinedTimes {
  const first = parts[0] as PartTimes;
  for (const part of parts) assertCalendar(part, first);
  const isInteger = dataType.kind !== "f";
  const finer = FINER.filter(([, unit]) => unit < first.scale.unit).map(
    ([name, unit]) => [`${name} since ${first.scale.since}`, unit] as const,
  );
  for (const [units, unit] of [[first.units, first.scale.unit] as const, ...finer]) {
    const items = encodeAll(parts, unit, isInteger);
    if (items !== undefined) return { items, units, dataType: widened(items, dataType) };
  }
  const other = parts.find(({ units }) => units !== first.units);
  throw new ZpublishError(
    "invalid-metadata",
    `expected times in '${first.units}', as in ${first.name}, received '${other?.units}' in ${other?.name}, and some that are no exact ${isInteger ? "integers" : "floats"} in these or finer units`,
  );
}

function assertCalendar(part: PartTimes, first: PartTimes): void {
  if (part.scale.calendar === first.scale.calendar) return;
  let least: bigint | undefined;
  for (const { items, scale } of [part, first]) {
    for (const item of items) {
      if (typeof item === "string" || !Number.isFinite(Number(item))) continue;
      const time = cfTimeOf(item, scale);
      if (least === undefined || time < least) least = time;
    }
  }
  const leastDays = Number((least ?? 0n) / 86_400_000_000_000n);
  if (isSameCalendar(part.scale.calendar, first.scale.calendar, leastDays)) return;
  throw new ZpublishError(
    "invalid-metadata",
    `expected one calendar in ${part.name} and ${first.name} (${first.units}), received two that differ before 1582-10-15`,
  );
}

/** Encodes the times of all parts as numbers of `unit` since the first part's reference; undefined if one of them is not exact. */
function encodeAll(parts: readonly PartTimes[], unit: bigint, isInteger: boolean): Item[][] | undefined {
  const first = parts[0] as PartTimes;
  const encoded: Item[][] = [];
  for (const part of parts) {
    const items = encodePart(part, first, unit, isInteger);
    if (items === undefined) return undefined;
    encoded.push(items);
  }
  return encoded;
}

function encodePart(
  { name, items, scale, missing }: PartTimes,
  first: PartTimes,
  unit: bigint,
  isInteger: boolean,
): Item[] | undefined {
  const shift = scale.reference - first.scale.reference;
  const isAligned = scale.unit % unit === 0n && shift % unit === 0n;
  const factor = isAligned ? Number(scale.unit / unit) : Number.NaN;
  const offset = isAligned ? Number(shift / unit) : Number.NaN;
  const encoded: Item[] = [];
  for (const item of items) {
    const number = Number(item);
    if (Number.isNaN(number) || missing.includes(number)) {
      encoded.push(isInteger ? markOf(first, name) : Number.NaN);
      continue;
    }
    const quick = number * factor + offset;
    const isSafe = Number.isSafeInteger(number) && Number.isSafeInteger(quick);
    const value = isSafe ? quick : encodeExactly(item, scale.unit, shift, unit, isInteger);
    if (value === undefined) return undefined;
    if (first.missing.includes(Number(value))) {
      throw new ZpublishError(
        "invalid-metadata",
        `expected times in '${first.units}', as in ${first.name}; one of ${name} would be ${value}, its mark of missing values`,
      );
    }
    encoded.push(value);
  }
  return encoded;
}

/** The number that stands for a missing time among the first part's integers. */
function markOf({ missing, name: firstName }: PartTimes, name: string): number {
  if (missing[0] !== undefined) return missing[0];
  throw new ZpublishError(
    "invalid-metadata",
    `expected a time at each step of ${name}, since ${firstName} has no mark of missing ones; received a missing one`,
  );
}

/** Returns `(item * itemUnit + shift) / unit`; undefined if that is no integer, or no float of 64 bits. */
function encodeExactly(
  item: Item,
  itemUnit: bigint,
  shift: bigint,
  unit: bigint,
  isInteger: boolean,
): Item | undefined {
  let denominator = 1n;
  let numerator: bigint;
  if (typeof item === "bigint") numerator = item;
  else {
    let number = Number(item);
    if (!Number.isFinite(number)) return undefined;
    while (!Number.isInteger(number)) {
      number *= 2;
      denominator *= 2n;
    }
    numerator = BigInt(number);
  }
  const dividend = numerator * itemUnit + shift * denominator;
  const divisor = denominator * unit;
  if (dividend % divisor === 0n) {
    const quotient = dividend / divisor;
    const number = Number(quotient);
    return BigInt(number) === quotient ? number : isInteger ? quotient : undefined;
  }
  return isInteger ? undefined : exactFloat(dividend, divisor);
}

/** Returns a quotient as a float; undefined if there is none that is exactly it. */
function exactFloat(dividend: bigint, divisor: bigint): number | undefined {
  const common = greatestDivisor(dividend < 0n ? -dividend : dividend, divisor);
  const [above, below] = [dividend / common, divisor / common];
  const isPower = (below & (below - 1n)) === 0n;
  const [top, bottom] = [Number(above), Number(below)];
  return isPower && BigInt(top) === above && bottom < 2 ** 1000 ? top / bottom : undefined;
}

function greatestDivisor(a: bigint, b: bigint): bigint {
  let [large, small] = [a, b];
  while (small !== 0n) [large, small] = [small, large % small];
  return large;
}

/** Returns the type itself if it has all items, else the one of 64 bits. */
function widened(lists: readonly (readonly Item[])[], type: DataType): DataType {
  const order = type.byteOrder === ">" ? ">" : "<";
  if (type.kind === "f") {
    const fits = (item: Item) => Number.isNaN(item) || Math.fround(Number(item)) === item;
    return type.itemSize === 8 || (type.itemSize === 4 && lists.every((items) => items.every(fits)))
      ? type
      : parseDataType(`${order}f8`);
  }
  const bits = BigInt(type.itemSize * 8);
  const least = type.kind === "u" ? 0n : -(1n << (bits - 1n));
  const most = (type.kind === "u" ? 1n << bits : 1n << (bits - 1n)) - 1n;
  const [low, high] = [Number(least), Number(most)];
  // A float of the greatest integer of 64 bits is rounded up, so integers that are not safe are compared as bigint.
  const isWithin = (item: Item) =>
    typeof item === "bigint" ? item >= least && item <= most : Number(item) >= low && Number(item) <= high;
  if (lists.every((items) => items.every(isWithin))) return type;
  const wide = (item: Item) => BigInt.asIntN(64, BigInt(item)) === BigInt(item);
  if (lists.every((items) => items.every(wide))) return parseDataType(`${order}i8`);
  throw new ZpublishError("invalid-metadata", "expected times within integers of 64 bits");
}

/** Items of a small array: numbers, integers and times of 64 bits as bigint, or texts. */
export type Items = Float64Array | BigInt64Array | BigUint64Array | readonly string[];

/** One of {@link Items}. Those of one array can be compared with `<`. */
export type Item = number | bigint | string;

/**
 * Reads items in C order.
 * @param values In the type and its byte order; those of a variable-length type as vlen-utf8 writes one chunk.
 * @throws ZpublishError `invalid-metadata` if items of the type are neither numbers nor texts
 */
export function readItems(values: Uint8Array, type: DataType): Items {
  const { kind, itemSize } = type;
  const little = type.byteOrder !== ">";
  const view = new DataView(values.buffer, values.byteOffset, values.byteLength);
  if (kind === "O") return readVariable(values, view);
  const count = itemSize === 0 ? 0 : values.length / itemSize;
  if (kind === "S") return Array.from({ length: count }, (_, i) => readBytes(values, i * itemSize, itemSize));
  if (kind === "U") return Array.from({ length: count }, (_, i) => readText(view, i * itemSize, type));
  if (itemSize === 8 && kind !== "f" && kind !== "c") {
    const items = kind === "u" ? new BigUint64Array(count) : new BigInt64Array(count);
    for (let i = 0; i < count; i++) {
      items[i] = kind === "u" ? view.getBigUint64(i * 8, little) : view.getBigInt64(i * 8, little);
    }
    return items;
  }
  const read = numberReader(view, type);
  const items = new Float64Array(count);
  for (let i = 0; i < count; i++) items[i] = read(i * itemSize, little);
  return items;
}

/** Writes items of any number type, or texts of kind `U` and `S`. The opposite of {@link readItems}. */
export function writeItems(items: ArrayLike<Item>, type: DataType): Uint8Array {
  const { kind, itemSize } = type;
  const little = type.byteOrder !== ">";
  const bytes = new Uint8Array(items.length * itemSize);
  const view = new DataView(bytes.buffer);
  for (let i = 0; i < items.length; i++) {
    const item = items[i] as Item;
    const at = i * itemSize;
    if (kind === "S") bytes.set(Buffer.from(String(item)).subarray(0, itemSize), at);
    else if (kind === "U") writeText(view, at, String(item), little);
    else if (kind === "f") writeFloat(view, at, Number(item), type);
    else if (itemSize === 8) view.setBigUint64(at, BigInt.asUintN(64, BigInt(item)), little);
    else if (itemSize === 4) view.setUint32(at, Number(item) >>> 0, little);
    else if (itemSize === 2) view.setUint16(at, Number(item), little);
    else view.setUint8(at, Number(item));
  }
  return bytes;
}

type NumberReader = (at: number, little: boolean) => number;

function numberReader(view: DataView, type: DataType): NumberReader {
  switch (`${type.kind}${type.itemSize}`) {
    case "b1":
    case "u1":
      return (at) => view.getUint8(at);
    case "i1":
      return (at) => view.getInt8(at);
    case "u2":
      return (at, little) => view.getUint16(at, little);
    case "i2":
      return (at, little) => view.getInt16(at, little);
    case "u4":
      return (at, little) => view.getUint32(at, little);
    case "i4":
      return (at, little) => view.getInt32(at, little);
    case "f2":
      return (at, little) => readHalf(new DataView(view.buffer, view.byteOffset + at, 2), little);
    case "f4":
      return (at, little) => view.getFloat32(at, little);
    case "f8":
      return (at, little) => view.getFloat64(at, little);
    case "f16":
      return (at, little) => readLongDouble(new Uint8Array(view.buffer, view.byteOffset + at, 16), little);
    default:
      throw new ZpublishError(
        "invalid-metadata",
        `expected numbers, times or texts, received items of type ${type.numpyStr}`,
      );
  }
}

function writeFloat(view: DataView, at: number, value: number, { itemSize, byteOrder }: DataType): void {
  const little = byteOrder !== ">";
  if (itemSize === 8) view.setFloat64(at, value, little);
  else if (itemSize === 4) view.setFloat32(at, value, little);
  else writeHalf(new DataView(view.buffer, at, 2), value, little);
}

function readVariable(values: Uint8Array, view: DataView): string[] {
  const texts: string[] = [];
  for (let at = 4; at + 4 <= values.length; ) {
    const length = view.getUint32(at, true);
    texts.push(Buffer.from(values.subarray(at + 4, at + 4 + length)).toString());
    at += 4 + length;
  }
  return texts;
}

function readBytes(values: Uint8Array, at: number, length: number): string {
  let end = at + length;
  // numpy strips trailing zeros.
  while (end > at && values[end - 1] === 0) end--;
  return Buffer.from(values.subarray(at, end)).toString();
}

function readText(view: DataView, at: number, { itemSize, byteOrder }: DataType): string {
  let text = "";
  for (let offset = 0; offset < itemSize; offset += 4) {
    text += String.fromCodePoint(view.getUint32(at + offset, byteOrder !== ">"));
  }
  return text.replace(/\0+$/, "");
}

function writeText(view: DataView, at: number, text: string, little: boolean): void {
  let offset = at;
  for (const character of text) {
    view.setUint32(offset, character.codePointAt(0) as number, little);
    offset += 4;
  }
}
