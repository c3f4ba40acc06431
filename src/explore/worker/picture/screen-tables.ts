import { type Axis, centreOf, indexAt } from "../../axis.js";

/**
 * Cells of an axis under a row or column of pixels: pixel `p` shows the cells `from[p]` to `to[p] - 1`; -1 in both outside of the data.
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
  from.forEach((middle, pixel) => {
    to[pixel] = middle === -1 ? -1 : middle + 1;
  });
  spreadCells(axis, begin, end, from, to, density);
  return { from, to, density };
}

/** Gives each cell to the pixel that holds its centre; a pixel that holds none keeps the cell under its middle. */
function spreadCells(
  axis: Axis,
  begin: number,
  end: number,
  from: Int32Array,
  to: Int32Array,
  density: number,
): void {
  const pixels = from.length;
  const middles = from.slice();
  const seen = middles.filter((cell) => cell !== -1);
  if (seen.length === 0) return;
  const beyond = Math.ceil(density) + 1;
  const first = Math.max(0, seen.reduce((least, cell) => Math.min(least, cell)) - beyond);
  const last = Math.min(axis.length - 1, seen.reduce((most, cell) => Math.max(most, cell)) + beyond);
  const isEmpty = new Uint8Array(pixels).fill(1);
  const width = (end - begin) / pixels;
  const [low, high] = begin < end ? [begin, end] : [end, begin];
  for (let cell = first; cell <= last; cell++) {
    const centre = centreOf(axis, cell);
    const turn = axis.period ?? Number.POSITIVE_INFINITY;
    const start = axis.period === undefined ? centre : centre + Math.ceil((low - centre) / turn) * turn;
    for (let place = start; place <= high; place += turn) {
      const pixel = Math.min(pixels - 1, Math.floor((place - begin) / width));
      const middle = middles[pixel];
      // At the seam, a pixel holds cells of both ends of the axis: those beside its middle are shown.
      if (middle === undefined || middle === -1 || Math.abs(cell - middle) > beyond) continue;
      from[pixel] = isEmpty[pixel] === 1 ? cell : Math.min(from[pixel]!, cell);
      to[pixel] = isEmpty[pixel] === 1 ? cell + 1 : Math.max(to[pixel]!, cell + 1);
      isEmpty[pixel] = 0;
    }
  }
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
