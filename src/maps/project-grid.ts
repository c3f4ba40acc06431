import { type MapProjection, mapProjectionOf, visibleDegrees, westToEast } from "../cf/projection.js";
import { ZpublishError } from "../errors.js";
import { findCells } from "./nearest-cells.js";
import {
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

/** Returns the coordinates of pixels in a projection, NaN for those beside the grid. @throws ZpublishError `unsupported` */
function projectedPlaces(
  grid: Extract<MapGrid, { kind: "projected" }>,
  latitudes: Float64Array,
  longitudes: Float64Array,
) {
  const { toPlane } = projectionOf(grid);
  // Places at the edges are rounded later.
  const box = boxOf(grid, 0.01);
  const count = latitudes.length * longitudes.length;
  const [ys, xs] = [new Float64Array(count).fill(Number.NaN), new Float64Array(count).fill(Number.NaN)];
  for (let pixel = 0; pixel < count; pixel++) {
    const latitude = latitudes[Math.floor(pixel / longitudes.length)]!;
    const place =
      Math.abs(latitude) > 90 ? undefined : toPlane(longitudes[pixel % longitudes.length]!, latitude, box);
    if (place !== undefined) [ys[pixel], xs[pixel]] = [place.y, place.x];
  }
  return { ys, xs };
}

function projectionOf({ projection }: Extract<MapGrid, { kind: "projected" }>): MapProjection {
  const found = mapProjectionOf(projection);
  if (found !== undefined) return found;
  throw new ZpublishError(
    "unsupported",
    `Expected a projection that is known, received '${projection.definition}'`,
  );
}

/** @param margin Parts of a side by which the box is wider than the grid. */
function boxOf({ x, y }: Extract<MapGrid, { kind: "projected" }>, margin: number) {
  const [[left, right], [bottom, top]] = [outerEdges(x), outerEdges(y)];
  const [across, up] = [margin * (right - left), margin * (top - bottom)];
  return { left: left - across, right: right + across, bottom: bottom - up, top: top + up };
}

function extentOf(grid: PixelGrid): MapExtent | undefined {
  if (grid.kind === "projected") {
    const found = visibleDegrees(projectionOf(grid), boxOf(grid, 0));
    return found && [found.west, found.south, found.east, found.north];
  }
  const bounds = { south: 90, north: -90 };
  const longitudes = grid.longitudes.filter((longitude, cell) => {
    const latitude = grid.latitudes[cell]!;
    if (!(Math.abs(latitude) <= 90) || !(Math.abs(longitude) <= 1e6)) return false;
    bounds.south = Math.min(bounds.south, latitude);
    bounds.north = Math.max(bounds.north, latitude);
    return true;
  });
  if (longitudes.length === 0) return undefined;
  const [west, east] = westToEast(
    longitudes.map((each) => each - 360 * Math.floor((each + 180) / 360)),
    30,
  );
  return [west, bounds.south, east, bounds.north];
}
