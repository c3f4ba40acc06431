import { minIndex } from "d3-array";
import { continuedLongitudes, orderOf } from "../cf/axis-order.js";
import type { AxisValues } from "./protocol.js";

/** Places of the cells of an axis: what a picture, a pointer and a slider ask. Frozen plain data. */
export interface Axis {
  readonly length: number;
  /** Centres of the cells; undefined if the axis counts cells, from 0. */
  readonly centres: Float64Array | undefined;
  /** One more than cells, ascending or descending; undefined if the axis counts cells, whose edges are at -0.5, 0.5, … */
  readonly edges: Float64Array | undefined;
  readonly isDescending: boolean;
  /** Width of every cell, negative if descending; undefined if they differ. */
  readonly step: number | undefined;
  /** 360 for longitudes, of which equal places differ by multiples; else undefined. */
  readonly period: number | undefined;
  /** Whether the cells go all the way round. */
  readonly isClosed: boolean;
}

interface AxisTraits {
  readonly isLatitude?: boolean;
  readonly isLongitude?: boolean;
}

/** Longest closed axis, in turns: a grid that repeats more is no longitude. */
const MAX_TURNS = 2;

/** Creates an axis that counts cells. */
export function cellAxis(length: number): Axis {
  return Object.freeze({
    length,
    centres: undefined,
    edges: undefined,
    isDescending: false,
    step: 1,
    period: undefined,
    isClosed: false,
  });
}

/**
 * Creates an axis of its coordinate: edges are the coordinate's bounds if these adjoin each other, else midpoints between centres,
 * and the outer cells are symmetric. An axis whose values are missing, equal or not in order counts cells. Longitudes that begin again
 * at Greenwich or at the date line go on instead: 359, 0, 1 are 359, 360, 361.
 * @param values Undefined if the dimension has no coordinate.
 */
export function createAxis(length: number, values?: AxisValues, traits: AxisTraits = {}): Axis {
  const { isLongitude = false } = traits;
  const stored = values?.numbers;
  if (stored === undefined || stored.length !== length || length === 0) return cellAxis(length);
  const centres = isLongitude && !isMonotonic(stored) ? continuedLongitudes(stored) : stored;
  if (!isMonotonic(centres)) return cellAxis(length);
  const bounds =
    isLongitude && values?.bounds !== undefined ? besideCentres(values.bounds, centres) : values?.bounds;
  const edges = edgesOfBounds(bounds, centres) ?? edgesOfCentres(centres);
  if (traits.isLatitude === true) clampToPoles(edges, centres);
  const width = Math.abs(edges[length]! - edges[0]!);
  const period = isLongitude && width <= 360 * MAX_TURNS ? 360 : undefined;
  return Object.freeze({
    length,
    centres,
    edges,
    isDescending: edges[0]! > edges[length]!,
    step: stepOf(edges),
    period,
    isClosed: period !== undefined && width >= period - width / length / 2,
  });
}

/** Returns the index of the cell at a coordinate; -1 outside of the axis. A cell begins at its first edge and ends before the next. */
export function indexAt(axis: Axis, coordinate: number): number {
  const { length, edges } = axis;
  if (!Number.isFinite(coordinate) || length === 0) return -1;
  if (edges === undefined) {
    const index = Math.floor(coordinate + 0.5);
    if (index === length && coordinate === length - 0.5) return length - 1;
    return index >= 0 && index < length ? index : -1;
  }
  const [least, greatest] = dataExtent(axis);
  let place = coordinate;
  if (axis.period !== undefined) {
    place -= Math.floor((place - least) / axis.period) * axis.period;
    // The sum may round up to the end of the turn.
    if (place >= least + axis.period) place = least;
    if (place > greatest) {
      if (!axis.isClosed) return -1;
      // The narrow gap between the last cell and the first one is shared by both.
      const isLast = place - greatest <= least + axis.period - place;
      return isLast !== axis.isDescending ? length - 1 : 0;
    }
  }
  if (place < least || place > greatest) return -1;
  if (axis.step === undefined) return searchEdges(axis, place);
  return Math.max(0, Math.min(length - 1, Math.floor((place - edges[0]!) / axis.step)));
}

/** Returns the coordinate of a cell's centre. */
export function centreOf(axis: Axis, index: number): number {
  return axis.centres?.[index] ?? index;
}

/** Returns both edges of a cell, in the order of the axis. */
export function edgesOf(axis: Axis, index: number): readonly [number, number] {
  const { edges } = axis;
  return edges === undefined ? [index - 0.5, index + 0.5] : [edges[index]!, edges[index + 1]!];
}

/** Returns the least and the greatest edge of the data. */
export function dataExtent(axis: Axis): readonly [least: number, greatest: number] {
  const { edges, length } = axis;
  if (edges === undefined) return [-0.5, length - 0.5];
  const [first, last] = [edges[0]!, edges[length]!];
  return first < last ? [first, last] : [last, first];
}

/**
 * Returns the step of a coordinate that is nearest to a value: a number, or the beginning of a text such as `2013-01-01T06`. A text
 * that no step begins with finds the last one before it, if texts ascend. Undefined if there is none.
 */
export function stepNearest(values: AxisValues, value: number | string): number | undefined {
  const { numbers, texts } = values;
  if (typeof value === "number") {
    const nearest = minIndex(numbers ?? [], (number) => Math.abs(number - value));
    return nearest === -1 ? undefined : nearest;
  }
  if (texts === undefined || texts.length === 0) return undefined;
  const exact = texts.indexOf(value);
  if (exact >= 0) return exact;
  const begun = value === "" ? -1 : texts.findIndex((text) => text.startsWith(value));
  if (begun >= 0) return begun;
  if (texts[0]! > texts.at(-1)!) return undefined;
  return Math.max(
    0,
    texts.findLastIndex((text) => text <= value),
  );
}

function isMonotonic(values: Float64Array): boolean {
  return orderOf(values, true) !== undefined;
}

/** Returns bounds of longitudes, each within half a turn of its centre. */
function besideCentres(bounds: Float64Array, centres: Float64Array): Float64Array {
  return bounds.map((bound, index) => {
    const centre = centres[index >> 1] ?? bound;
    return bound - Math.round((bound - centre) / 360) * 360;
  });
}

/** Returns undefined if the cells overlap, leave gaps, or do not hold their centres. */
function edgesOfBounds(bounds: Float64Array | undefined, centres: Float64Array): Float64Array | undefined {
  const { length } = centres;
  if (bounds?.length !== 2 * length) return undefined;
  const isDescending = length > 1 && centres[0]! > centres[1]!;
  const edges = new Float64Array(length + 1);
  for (let index = 0; index < length; index++) {
    const [one, other] = [bounds[2 * index]!, bounds[2 * index + 1]!];
    const [low, high] = one < other ? [one, other] : [other, one];
    const centre = centres[index]!;
    if (!(low < high && low <= centre && centre <= high)) return undefined;
    const [begin, end] = isDescending ? [high, low] : [low, high];
    if (index > 0 && Math.abs(begin - edges[index]!) > (high - low) * 1e-6) return undefined;
    if (index === 0) edges[0] = begin;
    edges[index + 1] = end;
  }
  return isMonotonic(edges) ? edges : undefined;
}

function edgesOfCentres(centres: Float64Array): Float64Array {
  const { length } = centres;
  const edges = new Float64Array(length + 1);
  for (let index = 1; index < length; index++) edges[index] = (centres[index - 1]! + centres[index]!) / 2;
  const [first, last] = [centres[0]!, centres[length - 1]!];
  edges[0] = length === 1 ? first - 0.5 : first + (first - edges[1]!);
  edges[length] = length === 1 ? first + 0.5 : last + (last - edges[length - 1]!);
  return edges;
}

/** Cuts outer cells at the poles, where grids with a row of points at ±90° have half a cell. */
function clampToPoles(edges: Float64Array, centres: Float64Array): void {
  if (centres.some((centre) => Math.abs(centre) > 90)) return;
  for (const end of [0, edges.length - 1]) edges[end] = Math.max(-90, Math.min(90, edges[end]!));
}

/** Returns the width of the cells if it is the same to a millionth of a cell; rounding of 32-bit coordinates is seen as none. */
function stepOf(edges: Float64Array): number | undefined {
  const count = edges.length - 1;
  const first = edges[0]!;
  const step = (edges[count]! - first) / count;
  const allowed = Math.abs(step) * 1e-6;
  return edges.every((edge, index) => Math.abs(edge - (first + index * step)) <= allowed) ? step : undefined;
}

function searchEdges({ edges, isDescending, length }: Axis, place: number): number {
  let low = 0;
  let high = length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    const edge = (edges as Float64Array)[middle]!;
    if (isDescending ? edge >= place : edge <= place) low = middle;
    else high = middle - 1;
  }
  return low;
}
