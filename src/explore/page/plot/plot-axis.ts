import { CALENDARS, type Calendar } from "../../../cf/cf-time.js";
import type { JsonObject } from "../../../json/json-value.js";
import type { AxisDescription, AxisValues, VariableDescription } from "../../dataset-description.js";
import { isDownward } from "../axis-cells.js";
import { daysOfIso } from "../date-ticks.js";

/** The axis of a plot along which a series runs. Plain data. */
export interface PlotAxis {
  /** Name of the dimension; `index` if a coordinate is plotted, which would be its own axis. */
  readonly dim: string;
  /** `lat [degrees_north]`, or the name of the dimension alone. */
  readonly label: string;
  /** Ascending: values of the coordinate, days since day 0 of the calendar, or indices. */
  readonly positions: Float64Array;
  /** Whether positions are in the opposite order of the cells. */
  readonly isReversed: boolean;
  /** Undefined unless positions are days. */
  readonly calendar: Calendar | undefined;
  /** Names of the cells, in their order, if positions are indices of texts. */
  readonly names: readonly string[] | undefined;
  /** Whether the axis is drawn upright, as of heights and depths. */
  readonly isVertical: boolean;
  /** Whether greater positions are lower: depths and pressures. */
  readonly isDownward: boolean;
}

/** A series that is plotted: where it is, and along which axis. */
export interface SeriesPlace {
  readonly variable: VariableDescription;
  /** Values per axis. */
  readonly values: readonly AxisValues[];
  /** Index per axis; that of `along` says nothing. */
  readonly at: readonly number[];
  readonly along: number;
  readonly axis: PlotAxis;
  /** Centre of the cell on a curvilinear grid, whose axes have no coordinates. */
  readonly onGrid: { readonly latitude: number; readonly longitude: number } | undefined;
}

/** Part of the axis of a plot that is shown. */
export interface PlotZoom {
  readonly low: number;
  readonly high: number;
}

/**
 * Creates the axis of a plot: by its coordinate if that is complete and in order, else by index.
 * @param attrs Attributes of the coordinate; undefined if it has none.
 */
export function createPlotAxis(axis: AxisDescription, values: AxisValues, attrs: JsonObject = {}): PlotAxis {
  const { dim, length, role } = axis;
  const isVertical = role === "Z";
  const calendar = values.calendar === undefined ? undefined : CALENDARS[values.calendar];
  const positions = calendar === undefined ? values.numbers : daysOf(values, calendar);
  const order = positions?.length === length ? orderOf(positions) : undefined;
  if (positions === undefined || order === undefined) {
    return {
      dim,
      label: dim,
      positions: Float64Array.from({ length }, (_, index) => index),
      isReversed: false,
      calendar: undefined,
      names: values.texts,
      isVertical,
      isDownward: false,
    };
  }
  return {
    dim,
    label: values.units === undefined || calendar !== undefined ? dim : `${dim} [${values.units}]`,
    positions: order > 0 ? positions : positions.toReversed(),
    isReversed: order < 0,
    calendar,
    names: undefined,
    isVertical,
    isDownward: isVertical && isDownward(attrs, values.units),
  };
}

/** Returns the index of the cell at a place in the axis' positions, or the reverse. */
export function cellAt({ positions, isReversed }: PlotAxis, index: number): number {
  return isReversed ? positions.length - 1 - index : index;
}

/**
 * Returns the values of a series in the order of an axis, as a plot takes them: null for gaps.
 * @param isLog Whether values that are not positive are gaps, which have no place on the axis.
 */
export function plotValues(axis: PlotAxis, values: ArrayLike<number>, isLog: boolean): (number | null)[] {
  return Array.from(axis.positions, (_, index) => {
    const value = values[cellAt(axis, index)] ?? Number.NaN;
    return Number.isFinite(value) && (!isLog || value > 0) ? value : null;
  });
}

/** Returns the part of an axis that is shown after enlarging it by a factor about a position; undefined for all of it. */
export function zoomedAbout(
  positions: ArrayLike<number>,
  zoom: PlotZoom | undefined,
  point: number | undefined,
  factor: number,
): PlotZoom | undefined {
  const [first, last] = [positions[0] ?? 0, positions[positions.length - 1] ?? 0];
  const { low, high } = zoom ?? { low: first, high: last };
  const centre = point === undefined ? (low + high) / 2 : (positions[point] ?? low);
  const length = (high - low) * factor;
  if (length >= last - first) return undefined;
  const begin = Math.max(first, Math.min(last - length, centre - length / 2));
  return { low: begin, high: begin + length };
}

/** Returns times as days: they are proportional to the numbers, of which the first and the last are dated. */
function daysOf({ numbers, texts }: AxisValues, calendar: Calendar): Float64Array | undefined {
  if (numbers === undefined || texts === undefined || numbers.length === 0) return undefined;
  const [begin, end] = [numbers[0] as number, numbers.at(-1) as number];
  const [first, last] = [daysOfIso(texts[0] ?? "", calendar), daysOfIso(texts.at(-1) ?? "", calendar)];
  const scale = begin === end ? 0 : (last - first) / (end - begin);
  return numbers.map((number) => first + (number - begin) * scale);
}

/** Returns 1 for ascending numbers, -1 for descending ones, undefined for others; equal neighbours are in order. */
function orderOf(positions: Float64Array): 1 | -1 | undefined {
  const order = (positions.at(-1) ?? 0) >= (positions[0] ?? 0) ? 1 : -1;
  for (let index = 0; index < positions.length; index++) {
    const position = positions[index] as number;
    if (!Number.isFinite(position)) return undefined;
    if (index > 0 && (position - (positions[index - 1] as number)) * order < 0) return undefined;
  }
  return order;
}
