import proj4 from "proj4";
import { findCells } from "./nearest-cells.js";
import {
  type GridAxis,
  type GridSample,
  type MapFrame,
  type MapGrid,
  outerEdges,
  placesOf,
  positionsOf,
  sampleAxes,
} from "./sample-grid.js";

/** A grid whose cells are found pixel by pixel. */
type PixelGrid = Exclude<MapGrid, { kind: "degrees" }>;

/** What the pool is asked for: which cells the pixels of a map show, or how far a grid reaches. */
export type GridTask =
  | { readonly kind: "sample"; readonly frame: MapFrame; readonly isLinear: boolean }
  | { readonly kind: "extent" };

/** Degrees; east is greater than 180 if the grid crosses the date line. */
export type MapExtent = readonly [west: number, south: number, east: number, north: number];

/** Samples a grid, or finds its extent. Runs in the pool. @returns A sample, or an extent; undefined if no cell has a place. */
export default function runGridTask({
  grid,
  ...task
}: GridTask & { readonly grid: PixelGrid }): GridSample | MapExtent | undefined {
  return task.kind === "sample" ? sampleGrid(grid, task.frame, task.isLinear) : extentOf(grid);
}

function sampleGrid(grid: PixelGrid, frame: MapFrame, isLinear: boolean): GridSample {
  const { latitudes, longitudes } = placesOf(frame);
  const axis = (positions: Float64Array, length: number) => ({ positions, length, isCyclic: false });
  if (grid.kind === "projected") {
    const { ys, xs } = projectedPlaces(grid, latitudes, longitudes);
    const y = axis(positionsOf(grid.y, ys), grid.y.centres.length);
    return sampleAxes(y, axis(positionsOf(grid.x, xs), grid.x.centres.length), false, isLinear);
  }
  const { rows, columns } = grid;
  const cells = findCells(grid, latitudes, longitudes);
  const centre = (cell: number, position: number) => (cell < 0 ? Number.NaN : position + 0.5);
  const y = Float64Array.from(cells, (cell) => centre(cell, Math.floor(cell / columns)));
  const x = Float64Array.from(cells, (cell) => centre(cell, cell % columns));
  return sampleAxes(axis(y, rows), axis(x, columns), false, isLinear);
}

/** Degrees by which a place may differ after both ways: farther away, it is on the other side of the Earth. */
const ROUND_TRIP = 1e-4;

/** Returns the coordinates of pixels in a projection, NaN for those beside the grid. */
function projectedPlaces(
  { y, x, projection }: Extract<MapGrid, { kind: "projected" }>,
  latitudes: Float64Array,
  longitudes: Float64Array,
) {
  const converter = proj4(projection.definition);
  const count = latitudes.length * longitudes.length;
  const [ys, xs] = [new Float64Array(count).fill(Number.NaN), new Float64Array(count).fill(Number.NaN)];
  const [isOnY, isOnX] = [rangeTest(y), rangeTest(x)];
  for (let pixel = 0; pixel < count; pixel++) {
    const latitude = latitudes[Math.floor(pixel / longitudes.length)]!;
    const longitude = longitudes[pixel % longitudes.length]!;
    if (Math.abs(latitude) > 90) continue;
    const [east, north] = converted(converter, "forward", longitude, latitude);
    const [px, py] = [east / projection.scale, north / projection.scale];
    if (!isOnX(px) || !isOnY(py)) continue;
    const [backX, backY] = converted(converter, "inverse", east, north);
    const turn = (backX - longitude) / 360;
    const across = Math.abs(turn - Math.round(turn)) * 360 * Math.cos(latitude * RADIANS);
    if (Math.abs(backY - latitude) < ROUND_TRIP && across < ROUND_TRIP) [ys[pixel], xs[pixel]] = [py, px];
  }
  return { ys, xs };
}

const RADIANS = Math.PI / 180;

type Converter = Record<"forward" | "inverse", (place: [number, number]) => number[]>;

/** Converts a place; NaN if the projection does not have it, for which proj4 throws. */
function converted(
  converter: Converter,
  way: "forward" | "inverse",
  x: number,
  y: number,
): readonly [number, number] {
  try {
    const [first = Number.NaN, second = Number.NaN] = converter[way]([x, y]);
    return [first, second];
  } catch {
    return [Number.NaN, Number.NaN];
  }
}

/** Returns a test for places on the cells of an axis, and half a cell around them. */
function rangeTest({ centres }: GridAxis): (place: number) => boolean {
  const [first, last] = [2 * centres[0]! - centres[1]!, 2 * centres.at(-1)! - centres.at(-2)!];
  return (place) => (place - first) * (place - last) <= 0;
}

/** Places along each side at which the extent of a projected grid is looked up. */
const SAMPLES = 33;

function extentOf(grid: PixelGrid): MapExtent | undefined {
  const bounds = { south: 90, north: -90 };
  const longitudes: number[] = [];
  const add = (longitude: number, latitude: number) => {
    if (!(Math.abs(latitude) <= 90) || !(Math.abs(longitude) <= 1e6)) return;
    bounds.south = Math.min(bounds.south, latitude);
    bounds.north = Math.max(bounds.north, latitude);
    longitudes.push(longitude - 360 * Math.floor((longitude + 180) / 360));
  };
  if (grid.kind === "cells")
    for (const [cell, latitude] of grid.latitudes.entries()) add(grid.longitudes[cell]!, latitude);
  else {
    const { y, x, projection } = grid;
    const converter = proj4(projection.definition);
    const edge = (axis: GridAxis, at: number) => {
      const [first, end] = outerEdges(axis);
      return (first + ((end - first) * at) / (SAMPLES - 1)) * projection.scale;
    };
    for (let row = 0; row < SAMPLES; row++)
      for (let column = 0; column < SAMPLES; column++)
        add(...converted(converter, "inverse", edge(x, column), edge(y, row)));
    for (const pole of [90, -90]) {
      const [east, north] = converted(converter, "forward", 0, pole);
      if (!rangeTest(x)(east / projection.scale) || !rangeTest(y)(north / projection.scale)) continue;
      // All meridians meet there.
      for (let longitude = -180; longitude < 180; longitude += 10) add(longitude, pole);
    }
  }
  if (longitudes.length === 0) return undefined;
  const [west, east] = westToEast(Float64Array.from(longitudes).sort());
  return [west, bounds.south, east, bounds.north];
}

/** Degrees between neighbouring places of a grid that goes round the Earth, at most. */
const GAP = 30;

/** Returns where sorted longitudes begin and end: the widest gap between them is what they leave out. */
function westToEast(longitudes: Float64Array): readonly [west: number, east: number] {
  let [west, east] = [longitudes[0]!, longitudes.at(-1)!];
  let gap = west + 360 - east;
  for (let index = 1; index < longitudes.length; index++) {
    const width = longitudes[index]! - longitudes[index - 1]!;
    if (width > gap) [west, east, gap] = [longitudes[index]!, longitudes[index - 1]! + 360, width];
  }
  return gap < GAP ? [-180, 180] : [west, east];
}
