import type { JsonObject } from "../../json/json-value.js";
import { type Axis, dataExtent, edgesOf, stepNearest } from "../axis.js";
import type { AxisDescription, AxisValues } from "../dataset-description.js";
import type { Position } from "../view.js";

/** Returns the edges of a cell, the lesser one first. */
export function cellEdges(axis: Axis, index: number): readonly [low: number, high: number] {
  const [begin, end] = edgesOf(axis, index);
  return begin < end ? [begin, end] : [end, begin];
}

/** Returns what is shown for a step of an axis: a date, a text, or a number with its units. */
export function stepText(values: AxisValues, index: number): string {
  const text = values.texts?.[index];
  if (text !== undefined) return shortDate(text);
  const number = values.numbers?.[index];
  if (number === undefined) return String(index);
  const written = String(Number(number.toPrecision(DIGITS)));
  return values.units === undefined ? written : `${written} ${values.units}`;
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

/** Returns the outer edges of an axis and the mean length of its cells. */
export function spanOf(axis: Axis): { readonly low: number; readonly high: number; readonly cell: number } {
  const [low, high] = dataExtent(axis);
  return { low, high, cell: (high - low) / Math.max(1, axis.length) };
}

const PRESSURE_UNITS = /^(?:hpa|pa|mbar|millibars?|bar|dbar|decibars?|kpa)$/i;

/** Tells whether values of an axis increase downwards: by the attribute `positive` (CF section 4.3); pressures do without it. */
export function isDownward(attrs: JsonObject | undefined, units: string | undefined): boolean {
  const { positive } = attrs ?? {};
  if (typeof positive === "string" && /^(?:up|down)$/i.test(positive))
    return positive.toLowerCase() === "down";
  return units !== undefined && PRESSURE_UNITS.test(units);
}
