import { elementCount } from "../../model/data-tree.js";

/** Blocks of a box of items, and the items that they become, both in C order. Lengths and strides are per axis, in items. */
export interface Blocks {
  readonly boxShape: readonly number[];
  readonly outShape: readonly number[];
  /** Cells of the box that lie inside of the array. */
  readonly inside: readonly number[];
  /** Items that have cells inside of the array. */
  readonly outInside: readonly number[];
  readonly strides: readonly number[];
  readonly outStrides: readonly number[];
  /** Cells per axis that become one: 1 or 2. */
  readonly factors: readonly number[];
  /** Whether some of the box lies outside of the array. */
  readonly isAtEdge: boolean;
}

/** Lays out the blocks of a box. @param chunkCoords Position of the box in the grid of boxes. */
export function blocksOf(
  shape: readonly number[],
  boxShape: readonly number[],
  factors: readonly number[],
  chunkCoords: readonly number[],
): Blocks {
  const inside = boxShape.map((length, axis) =>
    Math.max(0, Math.min(length, shape[axis]! - chunkCoords[axis]! * length)),
  );
  const outShape = boxShape.map((length, axis) => Math.ceil(length / factors[axis]!));
  return {
    boxShape,
    outShape,
    inside,
    outInside: inside.map((length, axis) => Math.ceil(length / factors[axis]!)),
    strides: stridesOf(boxShape),
    outStrides: stridesOf(outShape),
    factors,
    isAtEdge: inside.some((length, axis) => length < boxShape[axis]!),
  };
}

/** A piece of the rows that a row of blocks consists of. */
export interface BlockRow {
  /** Index of the first cell of each row. */
  readonly starts: readonly number[];
  /** Cells of each row. */
  readonly length: number;
  /** Cells from the first to the second cell of a block in a row; 0 if it has one cell of each. */
  readonly distance: number;
  /** Index of the first item that they become. */
  readonly outStart: number;
}

/** Cells of an unhalved end of rows from which on it is a row itself, and the axis before it has several. */
const LONG_CELLS = 32;

/**
 * Visits all blocks in rows as long as possible: axes at the end that are not halved belong to the cells of the axis before them.
 * @param maxLength Cells of a row at a time, at least 2 * {@link LONG_CELLS}.
 * @param visit Gets the index of the first cell of each row (a list that is valid until it returns), the cells of each row, the cells
 *   from the first to the second cell of a block in a row (0 if it has one), and the index of the first item that they become.
 */
export function forEachBlockRow(
  blocks: Blocks,
  maxLength: number,
  visit: (starts: readonly number[], length: number, distance: number, outStart: number) => void,
): void {
  const { boxShape, inside, strides, outStrides, factors } = blocks;
  /** Axes before this one have rows of their own. */
  let axis = boxShape.length;
  while (axis > 0 && factors[axis - 1] === 1 && inside[axis - 1] === boxShape[axis - 1]) axis--;
  // The axis before whole ones: its cells are runs of theirs.
  const run = elementCount(boxShape.slice(axis));
  const isRun = axis === 0 || run >= LONG_CELLS;
  const rowAxis = isRun ? axis : axis - 1;
  const isHalved = !isRun && factors[rowAxis] === 2;
  const rowLength = isRun ? run : run * inside[rowAxis]!;
  const distance = isHalved ? run : 0;
  const piece = isHalved ? Math.floor(maxLength / (2 * run)) * 2 * run : maxLength;

  /** Indexes of the rows' first cells after each axis: lists that are used again for each block. */
  const starts: number[][] = Array.from({ length: rowAxis + 1 }, () => []);
  starts[0] = [0];

  function visitRow(outStart: number): void {
    const whole = starts[rowAxis]!;
    for (let from = 0; from < rowLength; from += piece) {
      const pieces = from === 0 ? whole : whole.map((start) => start + from);
      visit(pieces, Math.min(piece, rowLength - from), distance, outStart + (isHalved ? from / 2 : from));
    }
  }

  function descend(depth: number, outStart: number): void {
    if (depth === rowAxis) {
      visitRow(outStart);
      return;
    }
    const factor = factors[depth]!;
    const stride = strides[depth]!;
    const before = starts[depth]!;
    const next = starts[depth + 1]!;
    for (let at = 0, out = outStart; at < inside[depth]!; at += factor, out += outStrides[depth]!) {
      next.length = 0;
      for (const start of before) next.push(start + at * stride);
      // The last block may have one cell only.
      const hasSecond = factor === 2 && at + 1 < inside[depth]!;
      if (hasSecond) for (const start of before) next.push(start + (at + 1) * stride);
      descend(depth + 1, out);
    }
  }

  descend(0, 0);
}

function stridesOf(shape: readonly number[]): number[] {
  const strides = new Array<number>(shape.length).fill(1);
  for (let axis = shape.length - 2; axis >= 0; axis--) strides[axis] = strides[axis + 1]! * shape[axis + 1]!;
  return strides;
}
