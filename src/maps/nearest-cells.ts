import {
  BALL,
  type CellTree,
  cellTreeSteps,
  createTreeSearch,
  squareOf,
  type TreeSearch,
  writePoint,
} from "../cf/cell-search.js";
import { createBoundedMap } from "../collections/bounded-map.js";
import { runNow } from "../event-loop/cooperative-task.js";
import type { MapGrid } from "./sample-grid.js";

/** Latitudes and longitudes of all cells. */
type Cells = Extract<MapGrid, { kind: "cells" }>;

const trees = createBoundedMap<CellTree>({
  maxBytes: 256 * 2 ** 20,
  byteLengthOf: ({ points }) => (4 / 3) * points.byteLength,
});

function treeOf(cells: Cells): CellTree {
  const tree = trees.get(cells.key) ?? runNow(cellTreeSteps(cells));
  trees.set(cells.key, tree);
  return tree;
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
function createEdgeTest({ rows, columns }: Cells, { points }: CellTree, search: TreeSearch) {
  const known = new Map<number, readonly Float64Array[]>();
  const cellAt = (row: number, column: number): number => {
    const isInside = row >= 0 && row < rows && column >= 0 && column < columns;
    const cell = row * columns + column;
    return isInside && !Number.isNaN(points[BALL * cell]) ? cell : -1;
  };

  /** Lists the neighbours that are thought of. */
  function neighboursOf(cell: number): Float64Array[] {
    const [row, column] = [Math.floor(cell / columns), cell % columns];
    return SIDES.flatMap(([down, across]) => {
      const other = cellAt(row - down, column - across);
      if (other === -1 || cellAt(row + down, column + across) !== -1) return [];
      const [own, opposite] = [BALL * cell, BALL * other];
      const point = Float64Array.from(
        [0, 1, 2],
        (axis) => 2 * points[own + axis]! - points[opposite + axis]!,
      );
      const square = squareOf(points, BALL * search(point, cell), point, 0);
      return square < squareOf(points, own, points, opposite) / 4 ? [] : [point];
    });
  }

  return (cell: number, point: Float64Array): boolean => {
    const neighbours = known.get(cell) ?? neighboursOf(cell);
    known.set(cell, neighbours);
    const own = squareOf(points, BALL * cell, point, 0);
    return neighbours.some((other) => squareOf(other, 0, point, 0) < own);
  };
}

/**
 * Finds the cell of each place by great-circle distance, of equally near ones the first; -1 if the place is beside the grid.
 * @param latitudes One per row of pixels. @param longitudes One per column.
 */
export function findCells(cells: Cells, latitudes: Float64Array, longitudes: Float64Array): Int32Array {
  const tree = treeOf(cells);
  const search = createTreeSearch(tree);
  const isBeyond = createEdgeTest(cells, tree, search);
  const found = new Int32Array(latitudes.length * longitudes.length).fill(-1);
  const point = new Float64Array(BALL);
  for (let row = 0, pixel = 0; row < latitudes.length; row++) {
    // The pixel above, then the one to the left is near.
    let near = row === 0 ? -1 : found[pixel - longitudes.length]!;
    for (let column = 0; column < longitudes.length; column++, pixel++) {
      writePoint(point, 0, latitudes[row]!, longitudes[column]!);
      if (Number.isNaN(point[0])) continue;
      near = search(point, near < 0 ? undefined : near);
      if (near !== -1 && !isBeyond(near, point)) found[pixel] = near;
    }
  }
  return found;
}
