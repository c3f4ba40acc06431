import type { CoordinateAxis } from "../cf/axis-labels.js";
import { continuedLongitudes, firstIndex, orderOf, type RegularAxis, regularAxis } from "../cf/axis-order.js";
import type { GridProjection } from "../cf/grid-mapping.js";
import type { GridCells } from "../values/values.js";

/** Coordinate systems of maps. Boxes are x before y in all of them: WMS 1.3.0 has it the other way round for EPSG:4326. */
export type MapCrs = "EPSG:3857" | "CRS:84";

/** A map to draw. */
export interface MapFrame {
  readonly crs: MapCrs;
  /** In units of the system; the edges of the outermost pixels. */
  readonly bbox: readonly [west: number, south: number, east: number, north: number];
  /** Pixels. */
  readonly width: number;
  readonly height: number;
}

/** An axis of a grid that has the coordinates of rows or columns. */
export interface GridAxis {
  /** Centres of cells, which ascend or descend; longitudes without the turns that some leave out. */
  readonly centres: Float64Array;
  readonly regular: RegularAxis | undefined;
  /** Whether places that differ by 360 are one. */
  readonly isLongitude: boolean;
  /** Whether the first cell follows the last one: longitudes of the whole Earth. */
  readonly isCyclic: boolean;
}

/** Where the cells of a grid lie on the Earth. Plain data, which goes to workers. */
export type MapGrid =
  | { readonly kind: "degrees"; readonly y: GridAxis; readonly x: GridAxis }
  | {
      readonly kind: "projected";
      readonly y: GridAxis;
      readonly x: GridAxis;
      readonly projection: GridProjection;
    }
  | ({ readonly kind: "cells" } & Omit<GridCells, "version">);

/** Rows or columns that pixels show. */
export interface AxisTable {
  /** Those that are read, ascending. */
  readonly indexes: Int32Array;
  /** Position in `indexes` by pixel; -1 if the pixel is beside the grid. */
  readonly at: Int32Array;
  /** Position of the second row or column and its weight, if values are interpolated. */
  readonly next: Int32Array | undefined;
  readonly share: Float32Array | undefined;
}

/** Which cells the pixels of a map show. */
export interface GridSample {
  /** Whether a table has an entry per row or column of pixels; else per pixel. */
  readonly isSeparable: boolean;
  readonly y: AxisTable;
  readonly x: AxisTable;
  /** Cells along the side of a pixel; infinite if no pixel is on the grid, as far as that is known. */
  readonly cellsPerPixel: number;
}

/** Parts of a cell by which the axis of the whole Earth may be longer or shorter than a turn: longitudes are often single floats. */
const SEAM = 1e-2;

const axes = new WeakMap<CoordinateAxis, GridAxis>();

/** Returns an axis of a grid; what is wrong with it if it is none. */
export function gridAxis(axis: CoordinateAxis): GridAxis | string {
  const known = axes.get(axis);
  if (known !== undefined) return known;
  const { values, isLongitude, length, dim } = axis;
  if (!(values instanceof Float64Array)) return `its axis '${dim}' has no numbers as coordinates`;
  if (length < 2) return `its axis '${dim}' has one cell, whose width is not known`;
  const centres = isLongitude ? continuedLongitudes(values) : values;
  if (orderOf(centres, true) === undefined) return `its coordinate '${dim}' neither ascends nor descends`;
  const step = Math.abs(centres[length - 1]! - centres[0]!) / (length - 1);
  const isCyclic = isLongitude && Math.abs(length * step - 360) <= SEAM * step;
  const found = { centres, regular: regularAxis(centres), isLongitude, isCyclic };
  axes.set(axis, found);
  return found;
}

/** Returns the outer edges of the first and the last cell of an axis. */
export function outerEdges({ centres }: GridAxis): [first: number, last: number] {
  const last = centres.length - 1;
  const half = (cell: number, neighbour: number) => (centres[cell]! - centres[neighbour]!) / 2;
  return [centres[0]! + half(0, 1), centres[last]! + half(last, last - 1)];
}

/** Web Mercator (EPSG:3857): the radius of its sphere in metres, and the latitude at which its square ends. */
export const WEB_MERCATOR = { radius: 6_378_137, latitude: 85.05112877980659 } as const;
const DEGREES = 180 / Math.PI;

/** Returns the longitudes of a map's columns of pixels and the latitudes of its rows, at their centres. */
export function placesOf({ crs, bbox: [west, south, east, north], width, height }: MapFrame) {
  const [across, down] = [(east - west) / width, (south - north) / height];
  const x = Float64Array.from({ length: width }, (_, column) => west + (column + 0.5) * across);
  const y = Float64Array.from({ length: height }, (_, row) => north + (row + 0.5) * down);
  if (crs === "CRS:84") return { longitudes: x, latitudes: y };
  return {
    longitudes: x.map((each) => (each / WEB_MERCATOR.radius) * DEGREES),
    latitudes: y.map((each) => Math.atan(Math.sinh(each / WEB_MERCATOR.radius)) * DEGREES),
  };
}

/**
 * Returns where places lie along an axis, counted in cells: the first cell reaches from 0 to 1. Between the centres of an irregular axis
 * the scale is even, so that cells meet half-way.
 */
export function positionsOf(axis: GridAxis, places: Float64Array): Float64Array {
  const { centres, regular, isLongitude } = axis;
  const last = centres.length - 1;
  const isAscending = centres[last]! > centres[0]!;
  const position = regular
    ? (place: number) => (place - regular.first) / regular.step + 0.5
    : (place: number) => {
        const after = firstIndex(last, (cell) =>
          isAscending ? centres[cell]! > place : centres[cell]! < place,
        );
        const low = Math.max(0, after - 1);
        return low + 0.5 + (place - centres[low]!) / (centres[low + 1]! - centres[low]!);
      };
  if (!isLongitude) return places.map(position);
  const west = Math.min(...outerEdges(axis));
  return places.map((place) => position(place - Math.floor((place - west) / 360) * 360));
}

/** Parts of a cell that count as rounding, as in GDAL's warper. */
const ROUNDING = 1e-10;

/** Makes the table of positions. @param isLinear Whether values are interpolated. */
function axisTable({ positions, length, isCyclic }: PixelAxis, isLinear: boolean): AxisTable {
  const cellAt = (position: number): number => {
    const cell = Math.floor(position + ROUNDING);
    if (cell >= 0 && cell < length) return cell;
    return isCyclic && position >= -SEAM && position < length + SEAM ? (cell < 0 ? 0 : length - 1) : -1;
  };
  const cells = Int32Array.from(positions, cellAt);
  if (!isLinear) return { ...numbered(cells), next: undefined, share: undefined };
  const inside = (cell: number) =>
    isCyclic ? (cell + length) % length : Math.min(Math.max(cell, 0), length - 1);
  // Of the two cells around each place, the one before it; then all those after them.
  const before = positions.map((position) => Math.floor(position - 0.5));
  const both = new Int32Array(2 * cells.length);
  for (const [pixel, cell] of cells.entries()) {
    both[pixel] = cell < 0 ? -1 : inside(before[pixel]!);
    both[cells.length + pixel] = cell < 0 ? -1 : inside(before[pixel]! + 1);
  }
  const { indexes, at } = numbered(both);
  return {
    indexes,
    at: at.subarray(0, cells.length),
    next: at.subarray(cells.length),
    share: Float32Array.from(positions, (position, pixel) => position - 0.5 - before[pixel]!),
  };
}

/** Lists the cells that occur, and where each is in the list. */
function numbered(cells: Int32Array): Pick<AxisTable, "indexes" | "at"> {
  let [least, greatest] = [Number.POSITIVE_INFINITY, -1];
  for (const cell of cells) {
    if (cell >= 0 && cell < least) least = cell;
    if (cell > greatest) greatest = cell;
  }
  const places = new Int32Array(greatest < 0 ? 0 : greatest - least + 1);
  for (const cell of cells) if (cell >= 0) places[cell - least] = 1;
  const indexes = Int32Array.from(places.keys(), (at) => at + least).filter((_, at) => places[at] === 1);
  for (const [at, cell] of indexes.entries()) places[cell - least] = at;
  return { indexes, at: cells.map((cell) => (cell < 0 ? -1 : places[cell - least]!)) };
}

/** Where pixels lie along an axis of a grid. */
interface PixelAxis {
  /** Counted in cells; NaN for pixels beside the grid. */
  readonly positions: Float64Array;
  /** Cells of the axis. */
  readonly length: number;
  readonly isCyclic: boolean;
}

/** Samples a grid. @param isSeparable As in {@link GridSample}. @param isLinear Whether values are interpolated. */
export function sampleAxes(y: PixelAxis, x: PixelAxis, isSeparable: boolean, isLinear: boolean): GridSample {
  const [ofY, ofX] = [axisTable(y, isLinear), axisTable(x, isLinear)];
  const steps = [medianStep(y.positions, ofY.at), medianStep(x.positions, ofX.at)];
  const cellsPerPixel = isSeparable ? Math.min(...steps) : Math.hypot(...steps);
  return { isSeparable, y: ofY, x: ofX, cellsPerPixel };
}

/** Samples a grid of latitudes and longitudes: a row of pixels shows a row of cells, a column one column. */
export function sampleDegrees(
  { y, x }: Extract<MapGrid, { kind: "degrees" }>,
  frame: MapFrame,
  isLinear: boolean,
): GridSample {
  const { latitudes, longitudes } = placesOf(frame);
  // The outermost cells reach beyond the poles, where no pixel is.
  const rows = positionsOf(y, latitudes).map((each, at) =>
    Math.abs(latitudes[at]!) > 90 ? Number.NaN : each,
  );
  return sampleAxes(
    { positions: rows, length: y.centres.length, isCyclic: false },
    { positions: positionsOf(x, longitudes), length: x.centres.length, isCyclic: x.isCyclic },
    true,
    isLinear,
  );
}

/**
 * Returns the cells from one pixel to the next: the median, since pixels across the seam of longitudes are neighbours and cells are not. 0
 * if one pixel is on the grid, infinite if none is.
 * @param at Negative for pixels beside the grid.
 */
function medianStep(positions: Float64Array, at: Int32Array): number {
  const steps = new Float64Array(at.length);
  let count = 0;
  for (let pixel = 1; pixel < at.length; pixel++)
    if (at[pixel]! >= 0 && at[pixel - 1]! >= 0)
      steps[count++] = Math.abs(positions[pixel]! - positions[pixel - 1]!);
  if (count === 0) return at.some((cell) => cell >= 0) ? 0 : Number.POSITIVE_INFINITY;
  return steps.subarray(0, count).sort()[count >> 1]!;
}
