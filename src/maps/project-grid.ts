import proj4 from "proj4";
import { findCells } from "./nearest-cells.js";
import {
  axisTable,
  type GridAxis,
  type GridSample,
  type MapFrame,
  type MapGrid,
  medianStep,
  outerEdges,
  placesOf,
  positionsOf,
} from "./sample-grid.js";

/** A grid whose cells are found pixel by pixel. */
export type PixelGrid = Exclude<MapGrid, { kind: "degrees" }>;

/** What the pool is asked for: which cells the pixels of a map show, or how far a grid reaches. */
export type GridTask =
  | {
      readonly kind: "sample";
      readonly grid: PixelGrid;
      readonly frame: MapFrame;
      readonly isLinear: boolean;
    }
  | { readonly kind: "extent"; readonly grid: PixelGrid };

/** Degrees; east is greater than 180 if the grid crosses the date line. */
export type MapExtent = readonly [west: number, south: number, east: number, north: number];

/** Samples a grid, or finds its extent. Runs in the pool. @returns A sample, or an extent; undefined if no cell has a place. */
export default function runGridTask(task: GridTask): GridSample | MapExtent | undefined {
  return task.kind === "sample" ? sampleGrid(task) : extentOf(task.grid);
}

function sampleGrid({ grid, frame, isLinear }: Extract<GridTask, { kind: "sample" }>): GridSample {
  const places = placesOf(frame);
  const { rows, columns } =
    grid.kind === "cells" ? cellPositions(grid, places) : projectedPositions(grid, places);
  const [height, width] =
    grid.kind === "cells" ? [grid.rows, grid.columns] : [grid.y.centres.length, grid.x.centres.length];
  const y = axisTable(rows, height, false, isLinear);
  const x = axisTable(columns, width, false, isLinear);
  const steps = [medianStep(rows, y.at), medianStep(columns, x.at)];
  return { isSeparable: false, y, x, cellsPerPixel: Math.hypot(...steps) };
}

type Places = ReturnType<typeof placesOf>;

/** Positions of pixels along both axes of a grid; NaN for those beside it. */
interface Positions {
  readonly rows: Float64Array;
  readonly columns: Float64Array;
}

function cellPositions(
  grid: Extract<MapGrid, { kind: "cells" }>,
  { latitudes, longitudes }: Places,
): Positions {
  const cells = findCells(grid, latitudes, longitudes);
  const centre = (cell: number, position: number) => (cell < 0 ? Number.NaN : position + 0.5);
  return {
    rows: Float64Array.from(cells, (cell) => centre(cell, Math.floor(cell / grid.columns))),
    columns: Float64Array.from(cells, (cell) => centre(cell, cell % grid.columns)),
  };
}

/** Degrees by which a place may differ after both ways: farther away, it is on the other side of the Earth. */
const ROUND_TRIP = 1e-4;

function projectedPositions(
  { y, x, projection }: Extract<MapGrid, { kind: "projected" }>,
  places: Places,
): Positions {
  const { latitudes, longitudes } = places;
  const converter = proj4(projection.definition);
  const count = latitudes.length * longitudes.length;
  const [xs, ys] = [new Float64Array(count).fill(Number.NaN), new Float64Array(count).fill(Number.NaN)];
  const [isOnX, isOnY] = [rangeTest(x), rangeTest(y)];
  for (let row = 0, pixel = 0; row < latitudes.length; row++) {
    const latitude = latitudes[row]!;
    if (Math.abs(latitude) > 90) {
      pixel += longitudes.length;
      continue;
    }
    for (let column = 0; column < longitudes.length; column++, pixel++) {
      const longitude = longitudes[column]!;
      const [east, north] = converted(converter, "forward", longitude, latitude);
      const [px, py] = [east / projection.scale, north / projection.scale];
      if (!isOnX(px) || !isOnY(py)) continue;
      const [backX, backY] = converted(converter, "inverse", east, north);
      const turn = (backX - longitude) / 360;
      const isSame =
        Math.abs(backY - latitude) < ROUND_TRIP &&
        Math.abs(turn - Math.round(turn)) * 360 * Math.cos(latitude * RADIANS) < ROUND_TRIP;
      if (isSame) [xs[pixel], ys[pixel]] = [px, py];
    }
  }
  return { rows: positionsOf(y, ys), columns: positionsOf(x, xs) };
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

/** Returns a test for places within a cell of an axis. */
function rangeTest({ centres }: GridAxis): (place: number) => boolean {
  const [first, last] = [centres[0]!, centres.at(-1)!];
  const [least, greatest] = first < last ? [first, last] : [last, first];
  const margin = Math.max(Math.abs(centres[1]! - first), Math.abs(last - centres.at(-2)!));
  return (place) => place >= least - margin && place <= greatest + margin;
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
