import { createBoundedMap } from "../collections/bounded-map.js";
import type { MapGrid } from "./sample-grid.js";

/** Latitudes and longitudes of all cells. */
type Cells = Extract<MapGrid, { kind: "cells" }>;

/** Cells along the side of the smallest blocks. */
const LEAF = 4;
const RADIANS = Math.PI / 180;

/** Balls around blocks of cells, in a grid of blocks: x, y, z of the centre and the radius, NaN if no cell has a place. */
interface BallGrid {
  readonly rows: number;
  readonly columns: number;
  readonly balls: Float64Array;
}

/** Cells as points on a unit sphere, and balls around ever larger blocks of them: 4 × 4 cells, then 2 × 2 blocks, up to one. */
interface CellTree {
  readonly rows: number;
  readonly columns: number;
  readonly points: Float64Array;
  readonly levels: readonly BallGrid[];
}

const trees = createBoundedMap<CellTree>({
  maxBytes: 256 * 2 ** 20,
  byteLengthOf: ({ points }) => 2 * points.byteLength,
});

function treeOf(cells: Cells): CellTree {
  const known = trees.get(cells.key);
  if (known !== undefined) return known;
  const { rows, columns, latitudes, longitudes } = cells;
  const points = new Float64Array(3 * rows * columns);
  for (let cell = 0; cell < rows * columns; cell++)
    writePoint(points, 3 * cell, latitudes[cell]!, longitudes[cell]!);
  const single: BallGrid = { rows, columns, balls: new Float64Array(0) };
  const levels = [parentBalls(single, LEAF, (cell) => [3 * cell, points, 0] as const)];
  for (;;) {
    const below = levels.at(-1)!;
    if (below.rows * below.columns === 1) break;
    levels.push(
      parentBalls(below, 2, (block) => [4 * block, below.balls, below.balls[4 * block + 3]!] as const),
    );
  }
  const tree = { rows, columns, points, levels };
  trees.set(cells.key, tree);
  return tree;
}

function writePoint(points: Float64Array, at: number, latitude: number, longitude: number): void {
  // Fill values that no attribute names are no places.
  const isPlace = Math.abs(latitude) <= 90 && Math.abs(longitude) <= 1e6;
  const cosine = Math.cos(latitude * RADIANS);
  points[at] = isPlace ? cosine * Math.cos(longitude * RADIANS) : Number.NaN;
  points[at + 1] = cosine * Math.sin(longitude * RADIANS);
  points[at + 2] = Math.sin(latitude * RADIANS);
}

/** Makes the balls around blocks of cells or balls. @param childAt Where the centre of a child is, and its radius. */
function parentBalls(
  { rows, columns }: Pick<BallGrid, "rows" | "columns">,
  side: number,
  childAt: (child: number) => readonly [at: number, centres: Float64Array, radius: number],
): BallGrid {
  const parents = { rows: Math.ceil(rows / side), columns: Math.ceil(columns / side) };
  const balls = new Float64Array(4 * parents.rows * parents.columns);
  for (let row = 0; row < parents.rows; row++) {
    for (let column = 0; column < parents.columns; column++) {
      const children = blockOf(row, column, side, rows, columns)
        .map(childAt)
        .filter(([at, centres]) => !Number.isNaN(centres[at]));
      const ball = 4 * (row * parents.columns + column);
      for (let axis = 0; axis < 3; axis++) {
        let sum = 0;
        for (const [at, centres] of children) sum += centres[at + axis]!;
        balls[ball + axis] = sum / children.length;
      }
      let radius = 0;
      for (const [at, centres, own] of children)
        radius = Math.max(radius, Math.sqrt(squareOf(centres, at, balls, ball)) + own);
      // With the rounding of the sums.
      balls[ball + 3] = radius + 1e-12;
    }
  }
  return { ...parents, balls };
}

/** Lists the children of a block. */
function blockOf(row: number, column: number, side: number, rows: number, columns: number): number[] {
  const children: number[] = [];
  for (let y = row * side; y < Math.min(rows, (row + 1) * side); y++)
    for (let x = column * side; x < Math.min(columns, (column + 1) * side); x++)
      children.push(y * columns + x);
  return children;
}

/** Returns the square of the distance of two points. */
function squareOf(one: Float64Array, at: number, other: Float64Array, from: number): number {
  const [x, y, z] = [
    one[at]! - other[from]!,
    one[at + 1]! - other[from + 1]!,
    one[at + 2]! - other[from + 2]!,
  ];
  return x * x + y * y + z * z;
}

/** Creates a function that finds the nearest cell to a point; -1 if no cell has a place. @param near A cell that may be near. */
function createSearch({ rows, columns, points, levels }: CellTree) {
  let [best, least] = [-1, Number.POSITIVE_INFINITY];

  function look(level: number, row: number, column: number, point: Float64Array): void {
    if (level === -1) {
      const cell = row * columns + column;
      const square = squareOf(points, 3 * cell, point, 0);
      if (square < least || (square === least && cell < best)) [best, least] = [cell, square];
      return;
    }
    const { balls, columns: across } = levels[level]!;
    const ball = 4 * (row * across + column);
    const distance = Math.sqrt(squareOf(balls, ball, point, 0)) - balls[ball + 3]!;
    // True for NaN, too: a block without places.
    if (!(distance <= 0 || distance * distance <= least)) return;
    const side = level === 0 ? LEAF : 2;
    const below = level === 0 ? { rows, columns } : levels[level - 1]!;
    const [bottom, right] = [
      Math.min(below.rows, (row + 1) * side),
      Math.min(below.columns, (column + 1) * side),
    ];
    for (let y = row * side; y < bottom; y++)
      for (let x = column * side; x < right; x++) look(level - 1, y, x, point);
  }

  return (point: Float64Array, near: number): number => {
    [best, least] = near < 0 ? [-1, Number.POSITIVE_INFINITY] : [near, squareOf(points, 3 * near, point, 0)];
    look(levels.length - 1, 0, 0, point);
    return best;
  };
}

/** Steps to the four neighbours of a cell. */
const SIDES = [
  [-1, 0],
  [1, 0],
  [0, -1],
  [0, 1],
] as const;

/**
 * Creates a test for points beyond the edge of the grid. Where a cell has no neighbour, one is thought of, as far away as that on the other
 * side: what lies nearer to it is beside the grid, unless there is another cell, as where a grid of the whole Earth meets itself.
 */
function createEdgeTest({ rows, columns, points }: CellTree, search: ReturnType<typeof createSearch>) {
  /** Thought neighbours by cell and side; undefined if there is none. */
  const known = new Map<number, Float64Array | undefined>();
  const cellAt = (row: number, column: number): number => {
    const isInside = row >= 0 && row < rows && column >= 0 && column < columns;
    const cell = row * columns + column;
    return isInside && !Number.isNaN(points[3 * cell]) ? cell : -1;
  };

  function beyond(cell: number, side: number): Float64Array | undefined {
    const [row, column] = [Math.floor(cell / columns), cell % columns];
    const [down, across] = SIDES[side]!;
    const other = cellAt(row - down, column - across);
    if (other === -1 || cellAt(row + down, column + across) !== -1) return undefined;
    const point = Float64Array.from(
      [0, 1, 2],
      (axis) => 2 * points[3 * cell + axis]! - points[3 * other + axis]!,
    );
    const found = search(point, cell);
    const isTaken = squareOf(points, 3 * found, point, 0) < squareOf(points, 3 * other, points, 3 * cell) / 4;
    return isTaken ? undefined : point;
  }

  return (cell: number, point: Float64Array): boolean => {
    const own = squareOf(points, 3 * cell, point, 0);
    return SIDES.some((_, side) => {
      const key = 4 * cell + side;
      if (!known.has(key)) known.set(key, beyond(cell, side));
      const other = known.get(key);
      return other !== undefined && squareOf(other, 0, point, 0) < own;
    });
  };
}

/**
 * Finds the cell of each place by great-circle distance, of equally near ones the first; -1 if the place is beside the grid.
 * @param latitudes One per row of pixels. @param longitudes One per column.
 */
export function findCells(cells: Cells, latitudes: Float64Array, longitudes: Float64Array): Int32Array {
  const tree = treeOf(cells);
  const search = createSearch(tree);
  const isBeyond = createEdgeTest(tree, search);
  const found = new Int32Array(latitudes.length * longitudes.length).fill(-1);
  const point = new Float64Array(3);
  for (let row = 0, pixel = 0; row < latitudes.length; row++) {
    // The pixel above, then the one to the left is near.
    let near = row === 0 ? -1 : found[pixel - longitudes.length]!;
    for (let column = 0; column < longitudes.length; column++, pixel++) {
      writePoint(point, 0, latitudes[row]!, longitudes[column]!);
      if (Number.isNaN(point[0])) continue;
      near = search(point, near);
      if (near !== -1 && !isBeyond(near, point)) found[pixel] = near;
    }
  }
  return found;
}
