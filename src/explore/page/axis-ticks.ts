import { ticks } from "d3-array";
import { format } from "d3-format";
import { firstIndex } from "../../cf/axis-order.js";
import { CALENDARS, type Calendar, isoText } from "../../cf/cf-time.js";
import { powerText, superscript, withUnits } from "../../cf/unit-text.js";
import { type Axis, edgesOf, stepNearest } from "../axis.js";
import type { AxisDescription, AxisValues, Position, VariableDescription } from "../protocol.js";

/** Whether an axis counts degrees. */
type Directions = Pick<AxisDescription, "isLatitude" | "isLongitude">;

/** Returns which degrees an axis counts; undefined if it counts none. */
export function degreesKind({ isLatitude, isLongitude }: Directions): "latitude" | "longitude" | undefined {
  return isLatitude ? "latitude" : isLongitude ? "longitude" : undefined;
}

/** Returns the edges of a cell, the lesser one first. */
export function cellEdges(axis: Axis, index: number): readonly [low: number, high: number] {
  const [begin, end] = edgesOf(axis, index);
  return begin < end ? [begin, end] : [end, begin];
}

/** Returns what is shown for a step of an axis: a date, a text, degrees, or a number with its units. */
export function stepText(values: AxisValues, index: number, axis?: Directions): string {
  const text = values.texts?.[index];
  if (text !== undefined) return shortDate(text);
  const number = values.numbers?.[index];
  if (number === undefined) return String(index);
  const kind = axis && degreesKind(axis);
  if (kind !== undefined) return shortDegrees(Number(number.toPrecision(DIGITS + 1)), kind, 4);
  const { factor, units } = axisUnitOf(values);
  return withUnits(String(Number((number / factor).toPrecision(DIGITS))), units);
}

/** Returns the steps along some axes of a variable, time first: `2013-01-01 06:00`, `850 hPa`, `member 3`. */
export function stepTexts(
  { axes }: Pick<VariableDescription, "axes">,
  values: readonly AxisValues[],
  at: readonly number[],
  shown: readonly number[],
): string[] {
  const isTime = (index: number): boolean => axes[index]?.role === "T";
  return [...shown.filter(isTime), ...shown.filter((index) => !isTime(index))].map((index) => {
    const [axis, own] = [axes[index]!, values[index]!];
    const text = stepText(own, at[index] ?? 0, axis);
    const isBare = own.texts === undefined && own.units === undefined && !/°/.test(text);
    return isBare ? `${axis.dim} ${text}` : text;
  });
}

/** Least values from which on people use another unit, and how many of the axis' units that is. */
const UNITS: Readonly<Record<string, readonly (readonly [least: number, unit: string, factor: number])[]>> = {
  m: [
    [1e4, "km", 1000],
    [0.01, "m", 1],
    [1e-5, "mm", 1e-3],
    [0, "µm", 1e-6],
  ],
  Pa: [[1e4, "hPa", 100]],
};

/** Returns the unit in which values of an axis are shown, and the number by which they are divided for it. */
export function axisUnitOf({ numbers, units }: AxisValues): { factor: number; units: string | undefined } {
  const greatest = Math.max(Math.abs(numbers?.[0] ?? 0), Math.abs(numbers?.at(-1) ?? 0));
  const known = Object.hasOwn(UNITS, units ?? "") ? UNITS[units ?? ""] : undefined;
  const [, unit = units, factor = 1] = (greatest > 0 && known?.find(([least]) => greatest >= least)) || [];
  return { factor, units: unit };
}

/** Digits of a coordinate: those of 32-bit floats are exact to about as many. */
const DIGITS = 6;

/** Returns an ISO date without what says nothing: `2013-01-01 06:00` for `2013-01-01T06:00:00`. */
export function shortDate(text: string): string {
  const match = /^(-?\d+-\d\d-\d\d)T(\d\d:\d\d)(:\d\d(?:\.\d+)?)?$/.exec(text);
  if (match === null) return text;
  const [, date, clock, seconds = ":00"] = match;
  return seconds === ":00" ? `${date} ${clock}` : `${date} ${clock}${seconds}`;
}

/** Returns the position that a step has in an address: by coordinate, unless another step has the same one. */
export function positionOf(values: AxisValues, axis: AxisDescription, index: number): Position {
  const short = values.texts?.[index]?.replace(/(?<=T\d\d:\d\d):00$/, "").replace(/(?<=T\d\d):00$/, "");
  const value = short ?? values.numbers?.[index];
  if (value === undefined || Number.isNaN(value)) return { index };
  const position: Position = { value };
  return stepOf(values, axis, position) === index ? position : { index };
}

/** Returns the step at a position, as {@link stepNearest} finds it; undefined if the axis has none. */
export function stepOf(values: AxisValues, axis: AxisDescription, position: Position): number | undefined {
  if (position === "last") return axis.length - 1;
  if ("index" in position) return position.index < axis.length ? position.index : undefined;
  const { value } = position;
  if (values.texts !== undefined) return stepNearest(values, String(value));
  if (typeof value !== "number") return undefined;
  if (values.numbers !== undefined) return stepNearest(values, value);
  return Number.isInteger(value) && value >= 0 && value < axis.length ? value : undefined;
}

const ISO = /^(-?\d+)-(\d\d)-(\d\d)(?:T(\d\d):(\d\d):(\d\d(?:\.\d+)?))?$/;
const SECONDS_PER_DAY = 86_400;

/** Returns the days since day 0 of the calendar, with their fraction, of an ISO date; NaN if the text is none. */
export function daysOfIso(text: string, calendar: Calendar): number {
  const match = ISO.exec(text);
  if (match === null) return Number.NaN;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match
    .slice(1)
    .map((part) => Number(part ?? 0));
  return calendar.daysOf([year, month, day]) + (hour * 3600 + minute * 60 + second) / SECONDS_PER_DAY;
}

/** Distance of ticks: a number of years, months, days or seconds, and how many days that is about. */
type Step = readonly [unit: "year" | "month" | "day" | "second", count: number, days: number];

const STEPS: readonly Step[] = [
  ...[
    0.001, 0.01, 0.1, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200,
  ].map((count): Step => ["second", count, count / SECONDS_PER_DAY]),
  ...[1, 2, 5, 10].map((count): Step => ["day", count, count]),
  ...[1, 2, 3, 6].map((count): Step => ["month", count, count * 30.4]),
  ...[1, 2, 5].map((count): Step => ["year", count, count * 365]),
];

/** Returns round times of a calendar, and their distance. Times are days since its day 0. */
function roundTimes(calendar: Calendar, low: number, high: number, maxCount: number) {
  const least = (high - low) / Math.max(1, maxCount);
  const step = STEPS.find(([, , days]) => days >= least) ?? yearStep(least / 365);
  if (!(high > low) || !Number.isFinite(high - low)) return { step, positions: [] };
  const positions = positionsOf(calendar, step, low, high).filter((each) => each >= low && each <= high);
  return { step, positions };
}

/** Returns ticks at round times of a calendar, as {@link roundTimes}. A second line is the date or year that begins there. */
export function dateTicks(calendar: Calendar, low: number, high: number, maxCount: number): Tick[] {
  const { step, positions } = roundTimes(calendar, low, high, maxCount);
  return positions.map((value, index) => ({
    value,
    label: labelOf(calendar, step, value, positions[index - 1]).join("\n"),
  }));
}

function yearStep(years: number): Step {
  const power = 10 ** Math.floor(Math.log10(years));
  const count = ([1, 2, 5, 10].find((factor) => factor * power >= years) ?? 10) * power;
  return ["year", count, count * 365];
}

function positionsOf(calendar: Calendar, [unit, count]: Step, low: number, high: number): number[] {
  if (unit === "second") {
    const first = Math.ceil((low * SECONDS_PER_DAY) / count);
    const last = Math.floor((high * SECONDS_PER_DAY) / count);
    return range(first, last).map((index) => (index * count) / SECONDS_PER_DAY);
  }
  const [firstYear, firstMonth] = calendar.dateOf(Math.floor(low));
  const [lastYear, lastMonth] = calendar.dateOf(Math.ceil(high));
  if (unit === "year") {
    const years = range(Math.floor(firstYear / count), Math.ceil(lastYear / count));
    return years.map((index) => calendar.daysOf([index * count, 1, 1]));
  }
  const monthCount = unit === "month" ? count : 1;
  const months = range(
    Math.floor((firstYear * 12 + firstMonth - 1) / monthCount),
    Math.ceil((lastYear * 12 + lastMonth - 1) / monthCount),
  ).map((index) => index * monthCount);
  if (unit === "month") return months.map((month) => monthStart(calendar, month));
  return months.flatMap((month) => {
    const begin = monthStart(calendar, month);
    // No tick just before the first of the next month.
    const end = monthStart(calendar, month + 1) - count / 2;
    return range(0, Math.ceil((end - begin) / count) - 1).map((index) => begin + index * count);
  });
}

function monthStart(calendar: Calendar, month: number): number {
  return calendar.daysOf([Math.floor(month / 12), (((month % 12) + 12) % 12) + 1, 1]);
}

/** Returns `06:00`, `Mar 5`, `Mar` or `2013`; then the date or year if the tick before has another one, or there is none. */
function labelOf(
  calendar: Calendar,
  [unit, count]: Step,
  position: number,
  before: number | undefined,
): [own: string, begun?: string] {
  const [date, clock] = isoParts(calendar, position);
  const year = date.slice(0, -6);
  if (unit === "year") return [year];
  const previous = before === undefined ? "" : isoParts(calendar, before)[0];
  if (unit === "second") {
    const own = clock.slice(0, count >= 60 ? 5 : count >= 1 ? 8 : undefined);
    return previous === date ? [own] : [own, date];
  }
  const month = MONTHS[Number(date.slice(-5, -3)) - 1]!;
  const own = unit === "month" ? month : `${month} ${Number(date.slice(-2))}`;
  return previous.slice(0, -6) === year ? [own] : [own, year];
}

/** Returns a label of one line: the date instead of its midnight, the year instead of January, and `Dec 2001` after another year. */
function shortLabel(calendar: Calendar, step: Step, position: number, before: number | undefined): string {
  const [own, begun] = labelOf(calendar, step, position, before);
  const [date, clock] = isoParts(calendar, position);
  if (step[0] === "second" && clock === "00:00:00")
    return labelOf(calendar, ["day", 1, 1], position, before)[0];
  if (step[0] !== "month") return own;
  if (own === MONTHS[0]) return date.slice(0, -6);
  return before === undefined || begun === undefined ? own : `${own} ${begun}`;
}

const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");

function isoParts(calendar: Calendar, days: number): [date: string, clock: string] {
  // A float of days is no exact second: the last microsecond of a day is the next day's first.
  const milliseconds = BigInt(Math.round(days * SECONDS_PER_DAY * 1000));
  return (isoText(milliseconds * 1_000_000n, calendar) ?? "").split("T") as [string, string];
}

function range(first: number, last: number): number[] {
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => first + index);
}

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

/** Writes a whole number: `12,345`. */
export const count = format(",");

/** Returns the ticks of an axis between two of its values, in any order; about as many as asked for, and never many more. */
export function axisTicks(
  axis: Directions & Pick<AxisDescription, "length">,
  values: AxisValues,
  from: number,
  to: number,
  count: number,
): Tick[] {
  const [low, high] = from < to ? [from, to] : [to, from];
  const { texts, numbers, calendar } = values;
  if (texts === undefined) {
    const kind = degreesKind(axis);
    if (kind !== undefined) return degreeTicks(low, high, count, kind);
    if (numbers === undefined) return indexTicks(axis.length, low, high, count);
    const { factor } = axisUnitOf(values);
    const shown = numberTicks(low / factor, high / factor, count);
    return shown.map(({ value, label }) => ({ value: value * factor, label }));
  }
  const steps = stepsBetween(values, axis.length, low, high);
  if (steps === undefined) return [];
  const known = calendar === undefined ? undefined : CALENDARS[calendar];
  const dates = known && cellTicks(texts, known, ...steps, count);
  const labelled = dates ?? textTicks(texts, ...steps, count);
  return numbers === undefined
    ? labelled
    : labelled.map(({ value, label }) => ({ value: numbers[value]!, label }));
}

/** Returns the decimals by which numbers of a distance are told apart. */
export function decimalsOf(distance: number): number {
  return Math.max(0, Math.min(20, -Math.floor(Math.log10(distance) + 1e-9)));
}

/** Characters of a number, and decimals, beyond which it is written with a power of ten. */
const MOST_CHARACTERS = 7;
const MOST_DECIMALS = 4;

/** Returns ticks at round numbers, with as many digits as tell them apart, and a power of ten if they are long: `2×10⁻⁵`. */
export function numberTicks(low: number, high: number, count: number): Tick[] {
  const values = ticks(low, high, Math.max(1, count)).map((value) => (value === 0 ? 0 : value));
  const step = (values[1] ?? high) - (values[0] ?? low);
  const greatest = Math.max(...values.map(Math.abs), step);
  const decimals = decimalsOf(step);
  const plain = values.map((value) => format(`,.${decimals}f`)(value).replace("−", "-"));
  const power = Math.floor(Math.log10(greatest) + 1e-9);
  const powers = values.map((value) =>
    value === 0
      ? "0"
      : `${(value / 10 ** power).toFixed(decimalsOf(step / 10 ** power))}×10${superscript(power)}`,
  );
  const lengthOf = (labels: readonly string[]): number => Math.max(...labels.map((label) => label.length));
  const isShort = decimals <= MOST_DECIMALS && lengthOf(plain) <= MOST_CHARACTERS;
  const labels = isShort || lengthOf(plain) < lengthOf(powers) ? plain : powers;
  return values.map((value, index) => ({ value, label: labels[index]! }));
}

/** Returns ticks at powers of ten; at the ends and in the middle of a range that has only one. */
export function powerTicks(low: number, high: number, count: number): Tick[] {
  const [first, last] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)];
  const step = Math.max(1, Math.ceil((last - first + 1) / count));
  const powers = range(0, Math.floor((last - first) / step)).map((index) => 10 ** (first + index * step));
  const values = powers.length > 1 ? powers : [low, Math.sqrt(low * high), high];
  return values.map((value) => ({ value, label: shortNumber(value) }));
}

/** Writes a number with three digits, and a power of ten if it is long: `0.01`, `2.5×10⁻⁵`. */
export function shortNumber(value: number): string {
  const short = Number(value.toPrecision(3));
  const [digits, exponent] = short.toExponential().split("e") as [string, string];
  return Math.abs(Number(exponent)) <= MOST_DECIMALS || short === 0
    ? String(short)
    : powerText(digits, Number(exponent));
}

/** Returns ticks whose labels lie beside each other: as many as asked for, or fewer if they are long. @param spanOf Returns both ends of a label, in pixels. */
export function fittingTicks(
  count: number,
  ticksOf: (count: number) => readonly Tick[],
  spanOf: (tick: Tick) => readonly [begin: number, end: number],
): readonly Tick[] {
  const apart = (one: Tick, other: Tick): boolean => {
    const [[begin, end], [otherBegin, otherEnd]] = [spanOf(one), spanOf(other)];
    return end + LABEL_GAP <= otherBegin || otherEnd + LABEL_GAP <= begin;
  };
  for (let fewer = count; fewer > 1; fewer--) {
    const shown = ticksOf(fewer);
    if (shown.every((tick, index) => index === 0 || apart(shown[index - 1]!, tick))) return shown;
  }
  const kept: Tick[] = [];
  for (const tick of ticksOf(1)) if (kept.every((each) => apart(each, tick))) kept.push(tick);
  return kept;
}

/** Least pixels between two labels. */
const LABEL_GAP = 6;

/** Pixels from tick to tick, at least. */
const PIXELS_PER_TICK = 90;

/** Returns how many ticks find room on an axis of a length in pixels. */
export function tickCount(length: number): number {
  return Math.max(2, Math.floor(length / PIXELS_PER_TICK));
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
  const decimals = decimalsOf(distance);
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

/** Writes a latitude or longitude with no more decimals than it has: `52.5°N`, `5°E`. */
export function shortDegrees(value: number, kind: "latitude" | "longitude", mostDecimals: number): string {
  const decimals = String(Number(Math.abs(value).toFixed(mostDecimals))).split(".")[1]?.length ?? 0;
  return degreesText(value, kind, decimals);
}

/** Returns ticks at the cells that follow round times, of ascending or descending dates; undefined if there are none. */
function cellTicks(
  texts: readonly string[],
  calendar: Calendar,
  first: number,
  last: number,
  count: number,
): Tick[] | undefined {
  const isDescending = texts[first]! > texts[last]!;
  const indexOf = (nth: number): number => (isDescending ? last - nth : first + nth);
  const daysAt = (nth: number): number => daysOfIso(texts[indexOf(nth)]!, calendar);
  const length = last - first + 1;
  const [begin, end] = [daysAt(0), daysAt(length - 1)];
  // A month of which only the middle is there begins half a step before.
  const low = begin - (end - begin) / Math.max(1, length - 1) / 2;
  // Ticks are no denser than cells.
  let times = roundTimes(calendar, low, end, Math.min(count, length));
  for (let fewer = count - 1; times.positions.length > count; fewer--)
    times = roundTimes(calendar, low, end, fewer);
  const cells = new Set(
    // The last cell if all are before.
    times.positions.map((position) =>
      firstIndex(length - 1, (nth) => !(daysAt(nth) < position - HALF_MILLISECOND)),
    ),
  );
  const ticks = Array.from(cells).map((nth, place, all): Tick => {
    const before = place === 0 ? undefined : daysAt(all[place - 1]!);
    return { value: indexOf(nth), label: shortLabel(calendar, times.step, daysAt(nth), before) };
  });
  if (ticks.length === 0) return undefined;
  return isDescending ? ticks.reverse() : ticks;
}

/** Returns ticks of names or dates, from a first to a last cell. */
export function textTicks(texts: readonly string[], first: number, last: number, count: number): Tick[] {
  const step = Math.max(1, Math.ceil((last - first + 1) / Math.max(1, count)));
  return multiples(first, last, step).map((value) => ({ value, label: shortDate(texts[value]!) }));
}

function indexTicks(length: number, low: number, high: number, maxCount: number): Tick[] {
  const [first, last] = [Math.max(0, low), Math.min(length - 1, high)];
  const values = ticks(first, last, Math.max(1, Math.min(maxCount, last - first))).filter(Number.isInteger);
  return values.map((value) => ({ value, label: count(value) }));
}

/** Returns the first and last step whose coordinate lies between two values; undefined if none does. */
function stepsBetween(
  { numbers }: AxisValues,
  length: number,
  low: number,
  high: number,
): [number, number] | undefined {
  const valueAt = (index: number): number => (numbers === undefined ? index : numbers[index]!);
  const steps = range(0, length - 1).filter((index) => valueAt(index) >= low && valueAt(index) <= high);
  return steps.length === 0 ? undefined : [steps[0]!, steps.at(-1)!];
}

function multiples(low: number, high: number, step: number): number[] {
  return range(Math.ceil(low / step - 1e-9), Math.floor(high / step + 1e-9)).map((index) => index * step);
}
