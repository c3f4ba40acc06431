import { ticks } from "d3-array";
import { format } from "d3-format";
import type { AxisDescription, AxisValues } from "../dataset-description.js";

/** A labelled place of an axis. */
export interface Tick {
  /** In the units of the axis: its coordinate, or the index of a cell. */
  readonly value: number;
  readonly label: string;
}

/** Steps in degrees that people expect; smaller ones are decimal. */
const DEGREE_STEPS = [1, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180];

const wholeNumber = format(",");

const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");

/** Parts of an ISO date, coarse first: what tells two apart, and steps in which ticks may follow each other. */
const DATE_PARTS = [
  { end: /^-?\d+/, steps: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000] },
  { end: /^-?\d+-\d\d/, steps: [1, 3, 6] },
  { end: /^-?\d+-\d\d-\d\d/, steps: [1, 5, 10] },
  { end: /^-?\d+-\d\d-\d\dT\d\d/, steps: [1, 3, 6, 12] },
  { end: /^-?\d+-\d\d-\d\dT\d\d:\d\d/, steps: [1, 5, 10, 15, 30] },
  { end: /^.*$/, steps: [1, 5, 10, 15, 30] },
] as const;

/** Returns the ticks of an axis between two of its values, in any order; about as many as asked for, and never many more. */
export function axisTicks(
  axis: Pick<AxisDescription, "isLatitude" | "isLongitude" | "length">,
  values: AxisValues,
  from: number,
  to: number,
  count: number,
): Tick[] {
  const [low, high] = from < to ? [from, to] : [to, from];
  const { texts, numbers } = values;
  if (texts === undefined) {
    if (axis.isLatitude || axis.isLongitude) {
      return degreeTicks(low, high, count, axis.isLatitude ? "latitude" : "longitude");
    }
    return numbers === undefined ? indexTicks(axis.length, low, high, count) : numberTicks(low, high, count);
  }
  const steps = stepsBetween(values, axis.length, low, high);
  if (steps === undefined) return [];
  const labelled =
    values.calendar === undefined ? textTicks(texts, ...steps, count) : dateTicks(texts, ...steps, count);
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

/**
 * Returns ticks of dates, in the calendar that the dates are written in: the first steps of years, months, days, hours.
 * @param texts ISO dates, ascending or descending. Ticks are at indices of it.
 */
export function dateTicks(texts: readonly string[], first: number, last: number, count: number): Tick[] {
  for (const [level, { end, steps }] of [...DATE_PARTS.entries()].reverse()) {
    const begins = beginnings(texts, first, last, end);
    const coarser = DATE_PARTS[level - 1]?.end;
    // If hours tell all steps apart, minutes say nothing.
    if (coarser !== undefined && beginnings(texts, first, last, coarser).length === begins.length) continue;
    for (const step of steps) {
      const chosen =
        step === 1 ? begins : begins.filter((index) => isRound(texts[index] as string, level, step));
      if (chosen.length <= count && (chosen.length > 1 || (level === 0 && step === 1))) {
        return chosen.map((value, place) => ({
          value,
          label: dateLabel(texts[value] as string, level, texts[chosen[place - 1] ?? -1]),
        }));
      }
    }
  }
  return textTicks(texts, first, last, count);
}

/** Returns indices of steps at which a part of the date differs from the step before; the first one too. */
function beginnings(texts: readonly string[], first: number, last: number, part: RegExp): number[] {
  const indices: number[] = [];
  // The first step seldom begins a month, but the step before it tells.
  let before = part.exec(texts[first - 1] ?? "")?.[0];
  for (let index = first; index <= last; index++) {
    const own = part.exec(texts[index] as string)?.[0];
    if (own !== undefined && own !== before) indices.push(index);
    before = own ?? before;
  }
  return indices;
}

/** Whether the last part of a date is a multiple of a step: of years, of months from January, of days from the first. */
function isRound(text: string, level: number, step: number): boolean {
  const parts = /^(-?\d+)-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)/.exec(text);
  if (parts === null) return false;
  const value = Number(parts[level + 1]);
  if (level === 2) return value === 1 || (value % step === 1 && value < 30);
  return (level === 1 ? value - 1 : value) % step === 0;
}

/** Returns the label of a date, with its year if neither January nor the date before tells it. */
function dateLabel(text: string, level: number, before = text): string {
  const [year = "", month = "", day = ""] = /^(-?\d+)-(\d\d)-(\d\d)/.exec(text)?.slice(1) ?? [];
  const monthName = MONTHS[Number(month) - 1] ?? month;
  if (level === 0 || (level === 1 && month === "01")) return year;
  if (level === 1) return year === /^-?\d+/.exec(before)?.[0] ? monthName : `${monthName} ${year}`;
  const clock = text.slice(text.indexOf("T") + 1);
  if (level === 2 || (level === 3 && clock.startsWith("00"))) return `${monthName} ${Number(day)}`;
  return level === 5 ? clock : clock.slice(0, 5);
}

function textTicks(texts: readonly string[], first: number, last: number, count: number): Tick[] {
  const step = Math.max(1, Math.ceil((last - first + 1) / Math.max(1, count)));
  return multiples(first, last, step).map((value) => ({ value, label: texts[value] as string }));
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
