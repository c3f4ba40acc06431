import { extent } from "d3-array";
import { orderOf } from "../../../cf/axis-order.js";
import { isDownward } from "../../../cf/axis-roles.js";
import { CALENDARS, type Calendar, cfTimeFormatter } from "../../../cf/cf-time.js";
import { labelWithUnits, withUnits } from "../../../cf/unit-text.js";
import type { JsonObject } from "../../../json/json-value.js";
import type { AxisDescription, AxisValues, VariableDescription } from "../../protocol.js";
import { MISSING_TEXT, unpackedText } from "../../value-text.js";
import { axisUnitOf, count, daysOfIso, shortDegrees, stepTexts } from "../axis-ticks.js";

/** The axis of a plot along which a series runs. Plain data. */
export interface PlotAxis {
  /** Name of the dimension; `index` if a coordinate is plotted, which would be its own axis. */
  readonly dim: string;
  /** `lat [°N]`, or the name of the dimension alone. */
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
  readonly onGrid:
    | { readonly latitude: number; readonly longitude: number; readonly name?: string | undefined }
    | undefined;
}

/** Part of the axis of a plot that is shown. */
export type PlotZoom = Readonly<Record<"low" | "high", number>>;

/** Creates the axis of a plot: by its coordinate if that is complete and in order, else by index. */
export function createPlotAxis(axis: AxisDescription, values: AxisValues, attrs: JsonObject = {}): PlotAxis {
  const { dim, length, role } = axis;
  const isVertical = role === "Z";
  const calendar = values.calendar === undefined ? undefined : CALENDARS[values.calendar];
  const { factor, units } = axisUnitOf(values);
  const numbers = factor === 1 ? values.numbers : values.numbers?.map((number) => number / factor);
  const positions = calendar === undefined ? numbers : daysOf(values, calendar);
  const order = positions?.length === length ? orderOf(positions, false) : undefined;
  if (positions === undefined || order === undefined)
    return { ...indexPlotAxis(dim, length), names: values.texts, isVertical };
  return {
    ...indexPlotAxis(dim, 0),
    label: labelWithUnits(dim, calendar === undefined ? units : undefined),
    positions: order > 0 ? positions : positions.toReversed(),
    isReversed: order < 0,
    calendar,
    isVertical,
    isDownward: isVertical && isDownward(attrs, values.units),
  };
}

/** Creates an axis that counts cells. */
export function indexPlotAxis(dim: string, length: number): PlotAxis {
  return {
    dim,
    label: dim,
    positions: Float64Array.from({ length }, (_, index) => index),
    isReversed: false,
    calendar: undefined,
    names: undefined,
    isVertical: false,
    isDownward: false,
  };
}

/** Returns the index of the cell at a place in the axis' positions, or the reverse. */
export function cellOfPosition({ positions, isReversed }: PlotAxis, index: number): number {
  return isReversed ? positions.length - 1 - index : index;
}

/** Returns a series in the order of an axis, null for gaps. With `isLog`, values that are not positive are gaps. */
export function plotValues(axis: PlotAxis, values: ArrayLike<number>, isLog: boolean): (number | null)[] {
  return Array.from(axis.positions, (_, index) => {
    const value = values[cellOfPosition(axis, index)] ?? Number.NaN;
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
  const [begin, end] = [numbers[0]!, numbers.at(-1)!];
  const [first, last] = [daysOfIso(texts[0] ?? "", calendar), daysOfIso(texts.at(-1) ?? "", calendar)];
  const scale = begin === end ? 0 : (last - first) / (end - begin);
  return numbers.map((number) => first + (number - begin) * scale);
}

/** Returns a value with its units, with as many digits as its type has; `missing` for NaN and null. */
export function textWithUnits(value: number | null | undefined, variable: VariableDescription): string {
  const text = unpackedText(variable, value ?? Number.NaN);
  return withUnits(text, text === MISSING_TEXT ? undefined : variable.units);
}

/** Returns where a series is, along all axes but its own: `40°N, 115°W, 850 hPa`. */
export function placeText({ variable, values, at, along, onGrid }: SeriesPlace): string {
  const { latitude, longitude, name } = onGrid ?? {};
  const { x, y } = (name === undefined ? undefined : variable.plane) ?? {};
  const others = axesBesides(variable, along).filter((axis) => axis !== x && axis !== y);
  const places = stepTexts(variable, values, at, others);
  if (name !== undefined) places.unshift(name);
  if (latitude === undefined || longitude === undefined) return places.join(", ");
  return [...places, shortDegrees(latitude, "latitude", 3), shortDegrees(longitude, "longitude", 3)].join(
    ", ",
  );
}

/** Returns a value with its units, and no more digits than a description needs. */
function roundText(value: number, variable: VariableDescription): string {
  return textWithUnits(isTime(variable) ? value : Number(value.toPrecision(5)), variable);
}

/** Tells whether values of a variable are dates. */
export function isTime({ dataType, attrs }: VariableDescription): boolean {
  return dataType.kind === "M" || cfTimeFormatter(attrs) !== undefined;
}

/** Describes the values of a series for those who do not see the plot. */
export function seriesSummary(variable: VariableDescription, values: readonly (number | null)[]): string {
  const present = values.filter((value) => value !== null);
  const [least, greatest] = extent(present);
  const all = `${count(values.length)} ${values.length === 1 ? "value" : "values"}`;
  if (least === undefined) return `${all}, all missing`;
  const missing = values.length - present.length;
  const missingText = missing === 0 ? "" : `, ${count(missing)} missing`;
  return `${all} from ${roundText(least, variable)} to ${roundText(greatest, variable)}${missingText}`;
}

/** Returns the axes of a variable but one. */
export function axesBesides({ axes }: VariableDescription, along: number): number[] {
  return axes.map((_, index) => index).filter((index) => index !== along);
}
