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

/** Mean radius of the Earth in metres. */
const EARTH_RADIUS = 6_371_008.8;

/** The nearest cell to a place, of equally near ones the first. */
export interface NearestCell {
  /** Position in C order; -1 if no cell has a place. */
  readonly cell: number;
  /** Metres along the great circle. */
  readonly distance: number;
}

/** Finds the nearest cells to places in degrees. @throws ZpublishError `invalid-query` if one is none */
export function* nearestCellSteps(
  tree: CellTree,
  places: Iterable<readonly [latitude: number, longitude: number]>,
): CooperativeTask<readonly NearestCell[]> {
  const search = createTreeSearch(tree);
  const point = new Float64Array(BALL);
  const found: NearestCell[] = [];
  for (const [latitude, longitude] of places) {
    if (!(Math.abs(latitude) <= 90) || !Number.isFinite(longitude))
      throw refusal("latitude", "a latitude from -90 to 90 and a longitude", `${latitude} and ${longitude}`);
    writePoint(point, 0, latitude, longitude);
    const cell = search(point);
    const chord =
      cell < 0 ? Number.POSITIVE_INFINITY : Math.sqrt(squareOf(tree.points, BALL * cell, point, 0));
    found.push({ cell, distance: 2 * EARTH_RADIUS * Math.asin(Math.min(1, chord / 2)) });
    yield;
  }
  return found;
}

function refusal(parameter: string, expected: string, input: string): ZpublishError {
  const details = { parameter, type: "label", input };
  return new ZpublishError("invalid-query", `Expected ${expected}, received ${input}`, { details });
}

/** Numbers of a ball: x, y and z of its centre, and its radius. All are NaN if no cell of it has a place. */
export const BALL = 4;
/** Balls along the side of a block that is one ball of the level above. */
const SIDE = 2;

/** Balls around blocks of cells, in a grid of blocks. */
interface BallGrid {
  readonly rows: number;
  readonly columns: number;
  readonly balls: Float64Array;
}

/** Cells as points on a unit sphere, and balls around ever larger blocks of them, up to one. */
export interface CellTree {
  /** Balls without a radius. */
  readonly points: Float64Array;
  /** Cells first. */
  readonly levels: readonly BallGrid[];
}

/** Makes the tree of a grid's cells. */
export function* cellTreeSteps({
  rows,
  columns,
  latitudes,
  longitudes,
}: CellPlaces): CooperativeTask<CellTree> {
  const points = new Float64Array(BALL * rows * columns);
  for (let cell = 0; cell < rows * columns; cell++) {
    writePoint(points, BALL * cell, latitudes[cell]!, longitudes[cell]!);
    if (cell % columns === 0) yield;
  }
  const levels: BallGrid[] = [{ rows, columns, balls: points }];
  for (let below = levels[0]!; below.rows * below.columns > 1; below = levels.at(-1)!)
    levels.push(yield* parentSteps(below));
  return { points, levels };
}

const RADIANS = Math.PI / 180;

/** Writes the point of a place in degrees as a ball without a radius. */
export function writePoint(points: Float64Array, at: number, latitude: number, longitude: number): void {
  // Fill values that no attribute names are no places.
  const isPlace = Math.abs(latitude) <= 90 && Math.abs(longitude) <= 1e6;
  const cosine = isPlace ? Math.cos(latitude * RADIANS) : Number.NaN;
  points[at] = cosine * Math.cos(longitude * RADIANS);
  points[at + 1] = cosine * Math.sin(longitude * RADIANS);
  points[at + 2] = Math.sin(latitude * RADIANS);
}

function* parentSteps(below: BallGrid): CooperativeTask<BallGrid> {
  const rows = Math.ceil(below.rows / SIDE);
  const columns = Math.ceil(below.columns / SIDE);
  const balls = new Float64Array(BALL * rows * columns);
  for (let ball = 0; ball < balls.length; ball += BALL) {
    const children = childrenOf(below, columns, ball / BALL);
    for (let axis = 0; axis < 3; axis++) {
      let sum = 0;
      for (const child of children) sum += below.balls[child + axis]!;
      balls[ball + axis] = sum / children.length;
    }
    for (const child of children) {
      const radius = Math.sqrt(squareOf(below.balls, child, balls, ball)) + below.balls[child + 3]!;
      // With the rounding of the sums.
      balls[ball + 3] = Math.max(balls[ball + 3]!, radius + 1e-12);
    }
    if (ball % (BALL * columns) === 0) yield;
  }
  return { rows, columns, balls };
}

/** Lists where those balls of a block are that have cells. @param across Blocks beside each other. */
function childrenOf({ rows, columns, balls }: BallGrid, across: number, block: number): number[] {
  const children: number[] = [];
  const [top, left] = [Math.floor(block / across) * SIDE, (block % across) * SIDE];
  for (let y = top; y < Math.min(rows, top + SIDE); y++) {
    for (let x = left; x < Math.min(columns, left + SIDE); x++) {
      const at = BALL * (y * columns + x);
      if (!Number.isNaN(balls[at])) children.push(at);
    }
  }
  return children;
}

/** Returns the square of the distance of two points. */
export function squareOf(one: Float64Array, at: number, other: Float64Array, from: number): number {
  const [x, y, z] = [
    one[at]! - other[from]!,
    one[at + 1]! - other[from + 1]!,
    one[at + 2]! - other[from + 2]!,
  ];
  return x * x + y * y + z * z;
}

/** Finds the nearest cell to a point, of equally near ones the first; -1 if no cell has a place. @param near A cell with a place that may be near. */
export type TreeSearch = (point: Float64Array, near?: number) => number;

/** Creates what searches a tree: balls that can have no nearer cell are left out. */
export function createTreeSearch({ points, levels }: CellTree): TreeSearch {
  let [best, least] = [-1, Number.POSITIVE_INFINITY];

  function look(level: number, row: number, column: number, point: Float64Array): void {
    const { balls, columns } = levels[level]!;
    const index = row * columns + column;
    const square = squareOf(balls, BALL * index, point, 0);
    if (level === 0) {
      if (square < least || (square === least && index < best)) [best, least] = [index, square];
      return;
    }
    const distance = Math.sqrt(square) - balls[BALL * index + 3]!;
    // False for NaN.
    if (!(distance <= 0 || distance * distance <= least)) return;
    const below = levels[level - 1]!;
    const bottom = Math.min(below.rows, (row + 1) * SIDE);
    const right = Math.min(below.columns, (column + 1) * SIDE);
    for (let y = row * SIDE; y < bottom; y++)
      for (let x = column * SIDE; x < right; x++) look(level - 1, y, x, point);
  }

  /** Follows the nearest balls down to a cell. */
  function nearCell(point: Float64Array): number {
    let index = 0;
    for (let level = levels.length - 1; level > 0; level--) {
      const below = levels[level - 1]!;
      let least = Number.POSITIVE_INFINITY;
      for (const at of childrenOf(below, levels[level]!.columns, index)) {
        const square = squareOf(below.balls, at, point, 0);
        if (square < least) [index, least] = [at / BALL, square];
      }
    }
    return index;
  }

  return (point, near = nearCell(point)) => {
    [best, least] = [near, squareOf(points, BALL * near, point, 0)];
    if (Number.isNaN(least)) return -1;
    look(levels.length - 1, 0, 0, point);
    return best;
  };
}
