import { ZpublishError } from "../errors.js";
import type { CooperativeTask } from "../event-loop/cooperative-task.js";

/** Latitudes and longitudes of the cells of a grid in degrees, in C order; NaN for cells without a place. */
export interface CellPlaces<Degrees extends ArrayLike<number> = ArrayLike<number>> {
  readonly rows: number;
  readonly columns: number;
  readonly latitudes: Degrees;
  readonly longitudes: Degrees;
}

/** Steps along rows and columns. */
export interface CellBox {
  readonly y: { readonly begin: number; readonly count: number; readonly step: 1 };
  readonly x: { readonly begin: number; readonly count: number; readonly step: 1 };
}

/** Degrees, both ends included; undefined ends are open. */
export type DegreeBounds = readonly [from: number | undefined, to: number | undefined];

/**
 * Finds the smallest box of rows and columns that holds all cells of a region. Longitudes are equal modulo 360 and go eastward from the
 * first bound; latitudes may come in either order. The box is empty if no cell lies in the region.
 * @throws ZpublishError `invalid-query` if one bound of longitudes is open: a circle has no end
 */
export function* cellBoxSteps(
  { rows, columns, latitudes, longitudes }: CellPlaces,
  [south = -90, north = 90]: DegreeBounds,
  [west, east]: DegreeBounds,
): CooperativeTask<CellBox> {
  if ((west === undefined) !== (east === undefined))
    throw refusal("longitude", "both bounds of longitudes, or none", `${west ?? ".."}/${east ?? ".."}`);
  const [least, greatest] = south < north ? [south, north] : [north, south];
  const [first, last] = [west ?? -180, east ?? 180];
  const width = last - first;
  const span = (width < 0 ? modulo(width) : width) + 2 * ROUNDING;
  const box = { top: rows, bottom: -1, left: columns, right: -1 };
  for (let row = 0, cell = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++, cell++) {
      const latitude = latitudes[cell]!;
      const east = modulo(longitudes[cell]! - first + ROUNDING);
      if (!(latitude >= least && latitude <= greatest && east <= span)) continue;
      if (row < box.top) box.top = row;
      box.bottom = row;
      if (column < box.left) box.left = column;
      if (column > box.right) box.right = column;
    }
    yield;
  }
  const range = (begin: number, end: number) =>
    ({ begin: Math.min(begin, end), count: end - begin, step: 1 }) as const;
  if (box.bottom === -1) return { y: range(0, 0), x: range(0, 0) };
  return { y: range(box.top, box.bottom + 1), x: range(box.left, box.right + 1) };
}

/** Degrees that a turn may add to the rounding of a bound. */
const ROUNDING = 1e-9;

function modulo(degrees: number): number {
  return degrees - Math.floor(degrees / 360) * 360;
}

/** Rows and columns of a block of cells, which are near to each other. */
const BLOCK = 32;

/** Mean radius of the Earth in metres. */
const EARTH_RADIUS = 6_371_008.8;

/** The nearest cell to a place. */
export interface NearestCell {
  /** Position in C order; -1 if no cell has a place. */
  readonly cell: number;
  /** Metres along the great circle. */
  readonly distance: number;
}

/** Finds the nearest cell to a place in degrees. @throws ZpublishError `invalid-query` if the place is none */
export type CellSearch = (latitude: number, longitude: number) => NearestCell;

/**
 * Makes a function that finds the nearest cell by great-circle distance. Cells are points on a unit sphere. Blocks of them are searched
 * from the nearest one on, until no other block can have a nearer cell.
 */
export function* cellSearchSteps(places: CellPlaces): CooperativeTask<CellSearch> {
  const points = new Float64Array(places.rows * places.columns * 3);
  const blocks: Block[] = [];
  for (let top = 0; top < places.rows; top += BLOCK) {
    for (let left = 0; left < places.columns; left += BLOCK) {
      const block = readBlock(places, points, top, left);
      // NaN if no cell has a place.
      if (block.radius >= 0) blocks.push(block);
      yield;
    }
  }
  const bounds = new Float64Array(blocks.length);
  return (latitude, longitude) => {
    if (!(Math.abs(latitude) <= 90) || !Number.isFinite(longitude))
      throw refusal("latitude", "a latitude from -90 to 90 and a longitude", `${latitude} and ${longitude}`);
    const [x, y, z] = pointOf(latitude, longitude);
    for (let index = 0; index < bounds.length; index++) {
      const { centre, radius } = blocks[index]!;
      bounds[index] = Math.max(0, Math.sqrt(squareOf(centre, 0, x, y, z)) - radius);
    }
    let [cell, least] = [-1, Number.POSITIVE_INFINITY];
    for (;;) {
      let next = 0;
      for (let index = 1; index < bounds.length; index++) if (bounds[index]! < bounds[next]!) next = index;
      // Infinite if it was searched.
      if (!(bounds[next]! ** 2 <= least && bounds[next]! < Number.POSITIVE_INFINITY)) break;
      bounds[next] = Number.POSITIVE_INFINITY;
      for (const at of blocks[next]!.cells) {
        const square = squareOf(points, 3 * at, x, y, z);
        if (square < least) [cell, least] = [at, square];
      }
    }
    return { cell, distance: 2 * EARTH_RADIUS * Math.asin(Math.min(1, Math.sqrt(least) / 2)) };
  };
}

/** Finds the nearest cells to places. @throws ZpublishError `invalid-query` if one is none */
export function* nearestCellSteps(
  search: CellSearch,
  places: Iterable<readonly [latitude: number, longitude: number]>,
): CooperativeTask<readonly NearestCell[]> {
  const found: NearestCell[] = [];
  for (const [latitude, longitude] of places) {
    found.push(search(latitude, longitude));
    yield;
  }
  return found;
}

function refusal(parameter: string, expected: string, input: string): ZpublishError {
  const details = { parameter, type: "label", input };
  return new ZpublishError("invalid-query", `Expected ${expected}, received ${input}`, { details });
}

interface Block {
  readonly cells: Int32Array;
  /** A point near the middle of its cells, and the distance of the farthest one from it. */
  readonly centre: readonly number[];
  readonly radius: number;
}

/** Writes the points of a block's cells. */
function readBlock(places: CellPlaces, points: Float64Array, top: number, left: number): Block {
  const { rows, columns, latitudes, longitudes } = places;
  const width = Math.min(BLOCK, columns - left);
  const cells = new Int32Array(Math.min(BLOCK, rows - top) * width).map(
    (_, index) => (top + Math.floor(index / width)) * columns + left + (index % width),
  );
  const centre: [number, number, number] = [0, 0, 0];
  let count = 0;
  for (const cell of cells) {
    const point = pointOf(latitudes[cell]!, longitudes[cell]!);
    points.set(point, 3 * cell);
    if (Number.isNaN(point[0])) continue;
    count++;
    for (let axis = 0; axis < 3; axis++) centre[axis]! += point[axis]!;
  }
  for (let axis = 0; axis < 3; axis++) centre[axis]! /= count;
  let square = count === 0 ? Number.NaN : 0;
  for (const cell of cells) {
    const found = squareOf(points, 3 * cell, ...centre);
    if (found > square) square = found;
  }
  // With the rounding of the sums.
  return { cells, centre, radius: Math.sqrt(square) + 1e-12 };
}

const RADIANS = Math.PI / 180;

function pointOf(latitude: number, longitude: number): readonly [number, number, number] {
  // Fill values that no attribute names are no places.
  if (!(Math.abs(latitude) <= 90) || !(Math.abs(longitude) <= 1e6))
    return [Number.NaN, Number.NaN, Number.NaN];
  const [cosine, angle] = [Math.cos(latitude * RADIANS), longitude * RADIANS];
  return [cosine * Math.cos(angle), cosine * Math.sin(angle), Math.sin(latitude * RADIANS)];
}

/** Returns the square of the distance of two points. */
function squareOf(points: ArrayLike<number>, at: number, x: number, y: number, z: number): number {
  return (points[at]! - x) ** 2 + (points[at + 1]! - y) ** 2 + (points[at + 2]! - z) ** 2;
}
