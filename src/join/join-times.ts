import { type CfTimeScale, cfTimeOf, isSameCalendar } from "../cf/cf-time.js";
import { ZpublishError } from "../errors.js";
import { type DataType, parseDataType } from "../model/data-type.js";
import type { Item, Items } from "./part-items.js";

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
