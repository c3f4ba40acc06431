import { ticks } from "d3-array";
import { format } from "d3-format";
import { CALENDARS, type Calendar } from "../../cf/cf-time.js";
import type { AxisDescription, AxisValues } from "../dataset-description.js";
import { shortDate } from "./axis-cells.js";
import { daysOfIso, roundTimes, shortLabel } from "./date-ticks.js";

/** A labelled place of an axis. */
export interface Tick {
  /** In the units of the axis: its coordinate, or the index of a cell. */
  readonly value: number;
  readonly label: string;
}

/** Steps in degrees that people expect; smaller ones are decimal. */
const DEGREE_STEPS = [1, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180];

/** In days, which are no exact milliseconds. */
const HALF_MILLISECOND = 0.5 / 86_400_000;

const wholeNumber = format(",");

/** Returns the ticks of an axis between two of its values, in any order; about as many as asked for, and never many more. */
export function axisTicks(
  axis: Pick<AxisDescription, "isLatitude" | "isLongitude" | "length">,
  values: AxisValues,
  from: number,
  to: number,
  count: number,
): Tick[] {
  const [low, high] = from < to ? [from, to] : [to, from];
  const { texts, numbers, calendar } = values;
  if (texts === undefined) {
    if (axis.isLatitude || axis.isLongitude) {
      return degreeTicks(low, high, count, axis.isLatitude ? "latitude" : "longitude");
    }
    return numbers === undefined ? indexTicks(axis.length, low, high, count) : numberTicks(low, high, count);
  }
  const steps = stepsBetween(values, axis.length, low, high);
  if (steps === undefined) return [];
  const known = calendar === undefined ? undefined : CALENDARS[calendar];
  const dates = known && cellTicks(texts, known, ...steps, count);
  const labelled = dates ?? textTicks(texts, ...steps, count);
  return numbers === undefined
    ? labelled
    : labelled.map(({ value, label }) => ({ value: numbers[value] as number, label }));
}

/** Returns ticks at round numbers, with as many digits as tell them apart. */
export function numberTicks(low: number, high: number, count: number): Tick[] {
  const values = ticks(low, high, Math.max(1, count));
  const step = (values[1] ?? high) - (values[0] ?? low);
  const greatest = Math.max(Math.abs(low), Math.abs(high));
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const isPlain = greatest < 1e7 && decimals <= 6;
  const digits = Math.max(1, Math.ceil(Math.log10(greatest / step)) + 1);
  const write = isPlain ? format(`,.${decimals}f`) : format(`.${Math.min(digits, 12)}~e`);
  return values.map((value) => ({ value, label: write(value === 0 ? 0 : value).replace("−", "-") }));
}

/** Returns ticks at round degrees: `30°N`, `120°W`, `0°`. Longitudes may exceed 180. */
export function degreeTicks(from: number, to: number, count: number, kind: "latitude" | "longitude"): Tick[] {
  const [low, high] = kind === "latitude" ? [Math.max(-90, from), Math.min(90, to)] : [from, to];
  const length = high - low;
  const step = DEGREE_STEPS.find((each) => length / each <= count);
  const values =
    step === undefined || length < DEGREE_STEPS.length / 2
      ? ticks(low, high, Math.max(1, count))
      : multiples(low, high, step);
  const distance = Math.abs((values[1] ?? high) - (values[0] ?? low));
  const decimals = Math.max(0, -Math.floor(Math.log10(distance) + 1e-9));
  return values.map((value) => ({ value, label: degreesText(value, kind, decimals) }));
}

/** Writes a latitude or longitude: `52.5°N`; longitudes as -180 to 180. */
export function degreesText(value: number, kind: "latitude" | "longitude", decimals: number): string {
  const turned = kind === "longitude" ? value - 360 * Math.round(value / 360) : value;
  const written = Math.abs(turned).toFixed(decimals);
  if (Number(written) === 0) return "0°";
  const [positive, negative] = kind === "longitude" ? ["E", "W"] : ["N", "S"];
  if (kind === "longitude" && Number(written) === 180) return "180°";
  return `${written}°${turned > 0 ? positive : negative}`;
}

/** Returns ticks at the cells that follow round times, of ascending or descending dates; undefined if there are none. */
function cellTicks(
  texts: readonly string[],
  calendar: Calendar,
  first: number,
  last: number,
  count: number,
): Tick[] | undefined {
  const isDescending = (texts[first] as string) > (texts[last] as string);
  const indexOf = (nth: number): number => (isDescending ? last - nth : first + nth);
  const daysAt = (nth: number): number => daysOfIso(texts[indexOf(nth)] as string, calendar);
  const length = last - first + 1;
  const [begin, end] = [daysAt(0), daysAt(length - 1)];
  // A month of which only the middle is there begins half a step before.
  const low = begin - (end - begin) / Math.max(1, length - 1) / 2;
  // Ticks are no denser than cells.
  let times = roundTimes(calendar, low, end, Math.min(count, length));
  for (let fewer = count - 1; times.positions.length > count; fewer--)
    times = roundTimes(calendar, low, end, fewer);
  const cells = new Set(
    times.positions.map((position) => firstFrom(position - HALF_MILLISECOND, length, daysAt)),
  );
  const ticks = Array.from(cells).map((nth, place, all): Tick => {
    const before = place === 0 ? undefined : daysAt(all[place - 1] as number);
    return { value: indexOf(nth), label: shortLabel(calendar, times.step, daysAt(nth), before) };
  });
  if (ticks.length === 0) return undefined;
  return isDescending ? ticks.reverse() : ticks;
}

/** Returns the first of ascending values that is not below a bound; the last one if all are. */
function firstFrom(bound: number, length: number, valueAt: (nth: number) => number): number {
  let [low, high] = [0, length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (valueAt(middle) < bound) low = middle + 1;
    else high = middle;
  }
  return low;
}

function textTicks(texts: readonly string[], first: number, last: number, count: number): Tick[] {
  const step = Math.max(1, Math.ceil((last - first + 1) / Math.max(1, count)));
  return multiples(first, last, step).map((value) => ({ value, label: shortDate(texts[value] as string) }));
}

function indexTicks(length: number, low: number, high: number, count: number): Tick[] {
  const [first, last] = [Math.max(0, low), Math.min(length - 1, high)];
  const values = ticks(first, last, Math.max(1, Math.min(count, last - first))).filter(Number.isInteger);
  return values.map((value) => ({ value, label: wholeNumber(value) }));
}

/** Returns the first and last step whose coordinate lies between two values; undefined if none does. */
function stepsBetween(
  { numbers }: AxisValues,
  length: number,
  low: number,
  high: number,
): [number, number] | undefined {
  const isInside = (index: number): boolean => {
    const value = numbers === undefined ? index : (numbers[index] as number);
    return value >= low && value <= high;
  };
  let [first, last] = [0, length - 1];
  while (first < length && !isInside(first)) first++;
  while (last > first && !isInside(last)) last--;
  return first < length ? [first, last] : undefined;
}

function multiples(low: number, high: number, step: number): number[] {
  const first = Math.ceil(low / step - 1e-9);
  const count = Math.floor(high / step + 1e-9) - first + 1;
  return Array.from({ length: Math.max(0, count) }, (_, index) => (first + index) * step);
}
