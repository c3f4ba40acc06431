import { unpacked } from "../../../cf/packing.js";
import { type Axis, centreOf, indexAt } from "../../axis.js";
import { ABOVE, BELOW, FIRST, MISSING } from "../../protocol.js";
import type { Numbers } from "../array-reader.js";
import { type ByteScale, missingTest, SLACK, STEPS } from "./byte-scale.js";

/** Loops over the pixels of one row, which take most of the time of a picture: they call nothing, and read each field once. */

/** Writes the bytes of one row of a chunk. Returns how many cells are missing. */
export function paintRow(
  pixels: Uint8Array,
  begin: number,
  numbers: Numbers,
  from: number,
  run: ChunkRun,
  scale: ByteScale,
): number {
  const { pixels: xs, offsets, isFirst } = run;
  const table = scale.tableOf(numbers);
  const mask = (table?.length ?? 1) - 1;
  const { isLinear, begin: low, width } = scale;
  const { scale: factor, offset } = scale.packing;
  const { first, second, least, greatest } = missingTest(scale.packing);
  let missing = 0;
  for (let index = 0; index < xs.length; index++) {
    const stored = numbers[from + offsets[index]!]!;
    let byte = MISSING;
    if (table !== undefined) byte = table[stored & mask]!;
    else if (!isLinear) byte = scale.storedByte(stored);
    else if (stored >= least && stored <= greatest && stored !== first && stored !== second) {
      const place = ((stored * factor + offset - low) / width) * STEPS;
      // Adding a half and cutting off is rounding, since the place is not negative there.
      byte = place < -SLACK ? BELOW : place > STEPS + SLACK ? ABOVE : (place + (FIRST + 0.5)) | 0;
    }
    if (byte === MISSING) missing += isFirst[index]!;
    pixels[begin + xs[index]!] = byte;
  }
  return missing;
}

/** Adds the stored numbers of one row of a chunk to sums and counts by pixel. Returns how many cells are missing. */
export function addRow(
  sums: Float64Array,
  counts: Uint32Array,
  begin: number,
  numbers: Numbers,
  from: number,
  run: ChunkRun,
  scale: ByteScale,
): number {
  const { pixels: xs, offsets, isFirst } = run;
  const { first, second, least, greatest, isWhole } = missingTest(scale.packing);
  let missing = 0;
  for (let index = 0; index < xs.length; index++) {
    const stored = numbers[from + offsets[index]!]!;
    const isInside = stored >= least && stored <= greatest && stored !== first && stored !== second;
    if (isInside && (isWhole || !Number.isNaN(unpacked(stored, scale.packing)))) {
      sums[begin + xs[index]!]! += stored;
      counts[begin + xs[index]!]! += 1;
    } else missing += isFirst[index]!;
  }
  return missing;
}

/** Pixels along one axis that show cells of one chunk, and the place of the cell in the chunk. A pixel may be there several times. */
export interface ChunkRun {
  readonly pixels: Int32Array;
  /** Cell in the chunk, times the axis' stride. */
  readonly offsets: Int32Array;
  /** 1 at the first pixel of each cell. */
  readonly isFirst: Uint8Array;
  readonly cells: number;
}

/** Cuts the table of an axis into runs, by the index of the chunk. `factor` is cells of the table per cell of the level. */
export function runsByChunk(
  { from, to }: Pick<ScreenTable, "from" | "to">,
  factor: number,
  chunkLength: number,
  stride: number,
): ReadonlyMap<number, ChunkRun> {
  const lists = new Map<number, RunList>();
  let before = -1;
  for (let pixel = 0; pixel < from.length; pixel++) {
    const begin = from[pixel]!;
    if (begin === -1) continue;
    const last = Math.floor((to[pixel]! - 1) / factor);
    for (let cell = Math.floor(begin / factor); cell <= last; cell++) {
      const chunk = Math.floor(cell / chunkLength);
      const list = listOf(lists, chunk);
      list.pixels.push(pixel);
      list.offsets.push((cell - chunk * chunkLength) * stride);
      list.first.push(cell === before ? 0 : 1);
      before = cell;
    }
  }
  return new Map(Array.from(lists, ([chunk, list]) => [chunk, runOf(list)]));
}

/** Pixels of a run while they are collected. */
export interface RunList {
  readonly pixels: number[];
  readonly offsets: number[];
  readonly first: number[];
}

/** Returns the list of a chunk, empty at first. */
export function listOf(lists: Map<number, RunList>, chunk: number): RunList {
  let list = lists.get(chunk);
  if (list === undefined) {
    list = { pixels: [], offsets: [], first: [] };
    lists.set(chunk, list);
  }
  return list;
}

/** Returns the run of a list. */
export function runOf({ pixels, offsets, first }: RunList): ChunkRun {
  return {
    pixels: Int32Array.from(pixels),
    offsets: Int32Array.from(offsets),
    isFirst: Uint8Array.from(first),
    cells: first.reduce((sum, one) => sum + one, 0),
  };
}

/** Cells of an axis under a row or column of pixels: pixel `p` shows the cells `from[p]` to `to[p] - 1`; -1 in both outside of the data. */
export interface ScreenTable {
  readonly from: Int32Array;
  readonly to: Int32Array;
  /** Cells per pixel within the data, for the choice of a level. */
  readonly density: number;
}

/** Returns the cell under the middle of each pixel, -1 outside of the data. `begin` and `end` are its outer edges. */
export function middleCells(axis: Axis, begin: number, end: number, pixels: number): Int32Array {
  const cells = new Int32Array(pixels);
  const width = (end - begin) / pixels;
  for (let pixel = 0; pixel < pixels; pixel++) cells[pixel] = indexAt(axis, begin + (pixel + 0.5) * width);
  return cells;
}

/** Creates the table of an axis. With `isMean`, a pixel over several cells shows all of them. */
export function screenTable(
  axis: Axis,
  begin: number,
  end: number,
  pixels: number,
  isMean: boolean,
): ScreenTable {
  const from = middleCells(axis, begin, end, pixels);
  const to = from.map((cell) => (cell === -1 ? -1 : cell + 1));
  const density = densityOf(axis, begin, end, pixels, from);
  if (isMean && density > 1) spreadCells(axis, begin, end, from, to, density);
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
      if (place < low || middle === undefined || middle === -1 || Math.abs(cell - middle) > beyond) continue;
      from[pixel] = isEmpty[pixel] === 1 ? cell : Math.min(from[pixel]!, cell);
      to[pixel] = isEmpty[pixel] === 1 ? cell + 1 : Math.max(to[pixel]!, cell + 1);
      isEmpty[pixel] = 0;
    }
  }
}

/** Returns how many cells of the axis one pixel covers, on average over the pixels with data. */
function densityOf(axis: Axis, begin: number, end: number, pixels: number, cells: Int32Array): number {
  if (axis.step !== undefined) return Math.abs((end - begin) / pixels / axis.step);
  const first = cells.findIndex((cell) => cell !== -1);
  const last = cells.findLastIndex((cell) => cell !== -1);
  if (first === -1) return 0;
  return (Math.abs(cells[last]! - cells[first]!) + 1) / (last - first + 1);
}
