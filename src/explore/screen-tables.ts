import { type Axis, indexAt } from "./axis.js";

/**
 * Cells of an axis under a row or column of pixels: pixel `p` shows the cells `from[p]` to `to[p] - 1`, and the one under its middle
 * if only one is shown. -1 in both outside of the data.
 */
export interface ScreenTable {
  readonly from: Int32Array;
  readonly to: Int32Array;
  /** Cells per pixel within the data, for the choice of a level. */
  readonly density: number;
}

/**
 * Returns the cell under the middle of each pixel, -1 outside of the data.
 * @param begin Coordinate of the first pixel's outer edge; `end` that of the last one's, less if the axis is shown reversed.
 */
export function middleCells(axis: Axis, begin: number, end: number, pixels: number): Int32Array {
  const cells = new Int32Array(pixels);
  const width = (end - begin) / pixels;
  for (let pixel = 0; pixel < pixels; pixel++) cells[pixel] = indexAt(axis, begin + (pixel + 0.5) * width);
  return cells;
}

/**
 * Creates the table of an axis.
 * @param isMean Whether a pixel over several cells shows all of them, instead of the one under its middle.
 */
export function screenTable(
  axis: Axis,
  begin: number,
  end: number,
  pixels: number,
  isMean: boolean,
): ScreenTable {
  const from = middleCells(axis, begin, end, pixels);
  const to = new Int32Array(pixels);
  const density = densityOf(axis, begin, end, pixels, from);
  if (!isMean || density <= 1) {
    for (let pixel = 0; pixel < pixels; pixel++) to[pixel] = from[pixel] === -1 ? -1 : from[pixel]! + 1;
    return { from, to, density };
  }
  const width = (end - begin) / pixels;
  let left = indexAt(axis, begin);
  for (let pixel = 0; pixel < pixels; pixel++) {
    const right = indexAt(axis, begin + (pixel + 1) * width);
    const middle = from[pixel] as number;
    to[pixel] = middle === -1 ? -1 : middle + 1;
    // At the wrap, both edges are at opposite ends of the axis: the cell in the middle is shown alone.
    if (middle !== -1 && left !== -1 && right !== -1 && Math.abs(right - left) <= 2 * density + 2) {
      from[pixel] = Math.min(left, right, middle);
      to[pixel] = Math.max(Math.max(left, right), middle + 1);
    }
    left = right;
  }
  return { from, to, density };
}

/** Returns how many cells of the axis one pixel covers, on average over the pixels with data. */
function densityOf(axis: Axis, begin: number, end: number, pixels: number, cells: Int32Array): number {
  if (axis.step !== undefined) return Math.abs((end - begin) / pixels / axis.step);
  let first = -1;
  let last = -1;
  for (let pixel = 0; pixel < pixels; pixel++) {
    if (cells[pixel] === -1) continue;
    if (first === -1) first = pixel;
    last = pixel;
  }
  if (first === -1) return 0;
  return (Math.abs(cells[last]! - cells[first]!) + 1) / (last - first + 1);
}
