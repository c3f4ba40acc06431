import type { AxisDescription, AxisValues } from "./dataset-description.js";
import type { Position } from "./view.js";

/** Values of an axis that has no readable coordinate: its indices are shown. */
export const INDEX_AXIS: AxisValues = Object.freeze({
  numbers: undefined,
  texts: undefined,
  bounds: undefined,
  units: undefined,
  calendar: undefined,
});

/** Edges of a cell along one axis, the lower one first. */
export type CellEdges = readonly [low: number, high: number];

/**
 * Returns the edges of a cell: by the coordinate's bounds, else the midpoints between centres, else half a cell beside the index. The
 * outer edge of an end cell mirrors its inner one. Undefined if the coordinate is missing there.
 */
export function cellEdges(values: AxisValues, index: number): CellEdges | undefined {
  const { numbers, bounds } = values;
  if (numbers === undefined) return [index - 0.5, index + 0.5];
  const given = bounds && [bounds[index * 2] as number, bounds[index * 2 + 1] as number];
  if (given?.every(Number.isFinite)) return sorted(given[0] as number, given[1] as number);
  const centre = numbers[index] as number;
  const before = numbers[index - 1] ?? Number.NaN;
  const after = numbers[index + 1] ?? Number.NaN;
  if (Number.isNaN(centre)) return undefined;
  const step = firstNumber(after - centre, centre - before, 1);
  const begin = centre - firstNumber(centre - before, step) / 2;
  const end = centre + firstNumber(after - centre, step) / 2;
  return sorted(begin, end);
}

/** Returns the edges of the whole axis, and whether its values ascend; undefined if all its coordinates are missing. */
export function axisExtent(
  values: AxisValues,
  length: number,
): { readonly low: number; readonly high: number } | undefined {
  const { numbers } = values;
  if (numbers === undefined) return { low: -0.5, high: length - 0.5 };
  const first = numbers.findIndex((value) => !Number.isNaN(value));
  const last = numbers.findLastIndex((value) => !Number.isNaN(value));
  const ends = [cellEdges(values, first), cellEdges(values, last)];
  const [begin, end] = ends;
  if (first < 0 || begin === undefined || end === undefined) return undefined;
  return { low: Math.min(begin[0], end[0]), high: Math.max(begin[1], end[1]) };
}

/** Returns what is shown for a step of an axis: a date, a text, or a number with its units. */
export function stepText(values: AxisValues, index: number, digits = 6): string {
  const text = values.texts?.[index];
  if (text !== undefined) return shortDate(text);
  const number = values.numbers?.[index];
  if (number === undefined) return String(index);
  const written = String(Number(number.toPrecision(digits)));
  return values.units === undefined ? written : `${written} ${values.units}`;
}

/** Returns an ISO date without what says nothing: `2013-01-01 06:00` for `2013-01-01T06:00:00`. */
export function shortDate(text: string): string {
  const match = /^(-?\d+-\d\d-\d\d)T(\d\d:\d\d)(:\d\d(?:\.\d+)?)?$/.exec(text);
  if (match === null) return text;
  const [, date, clock, seconds = ":00"] = match;
  return seconds === ":00" ? `${date} ${clock}` : `${date} ${clock}${seconds}`;
}

/** Returns the position that a step has in an address: by coordinate, unless another step has the same one. */
export function positionOf(values: AxisValues, axis: AxisDescription, index: number): Position {
  const text = values.texts?.[index];
  const short = text?.replace(/(?<=T\d\d:\d\d):00$/, "").replace(/(?<=T\d\d):00$/, "");
  const value = short ?? values.numbers?.[index];
  if (value === undefined || Number.isNaN(value)) return { index };
  const position: Position = { value };
  return stepOf(values, axis, position) === index ? position : { index };
}

/**
 * Returns the step at a position: of a text the one that is it or begins with it, else the last date before it; of a number the nearest.
 * Undefined if the axis has none.
 */
export function stepOf(values: AxisValues, axis: AxisDescription, position: Position): number | undefined {
  const { texts, numbers } = values;
  const last = axis.length - 1;
  if (position === "last") return last;
  if ("index" in position) return position.index <= last ? position.index : undefined;
  if (texts !== undefined) return stepOfText(texts, String(position.value), values.calendar !== undefined);
  const number = Number(position.value);
  if (numbers === undefined)
    return Number.isInteger(number) && number >= 0 && number <= last ? number : undefined;
  const index = nearestIndex(numbers, number);
  const extent = axisExtent(values, axis.length);
  if (index === undefined || extent === undefined || Number.isNaN(number)) return undefined;
  const slack = extent.high - extent.low;
  return number < extent.low - slack || number > extent.high + slack ? undefined : index;
}

function stepOfText(texts: readonly string[], text: string, isDate: boolean): number | undefined {
  const exact = texts.indexOf(text);
  if (exact >= 0) return exact;
  const begins = texts.findIndex((each) => each.startsWith(text));
  if (begins >= 0) return begins;
  if (!isDate || !/^\d{4}/.test(text)) return undefined;
  const before = texts.findLastIndex((each) => each <= text);
  return before >= 0 ? before : undefined;
}

function nearestIndex(numbers: Float64Array, number: number): number | undefined {
  let nearest: number | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (let index = 0; index < numbers.length; index++) {
    const distance = Math.abs((numbers[index] as number) - number);
    if (distance < least) [nearest, least] = [index, distance];
  }
  return nearest;
}

function firstNumber(...numbers: readonly number[]): number {
  return numbers.find((number) => Number.isFinite(number)) as number;
}

function sorted(first: number, second: number): CellEdges {
  return first <= second ? [first, second] : [second, first];
}
