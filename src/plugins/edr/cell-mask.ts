import { ZpublishError } from "../../plugin-api.js";
import type { WktGeometry } from "./well-known-text.js";

/** Cells that are looked for in polygons. Plain data: it goes to a worker. */
export interface CellMaskTask {
  readonly polygons: Pick<WktGeometry, "parts" | "stride">;
  /** NaN for cells without a place. */
  readonly latitudes: Float64Array;
  /** Degrees of the columns of a grid whose rows the latitudes are, or one per latitude; east of the westernmost position of the polygons. */
  readonly longitudes: Float64Array;
  readonly isGrid: boolean;
}

/** Cells in polygons: 1 for each that is inside, in C order. */
export interface CellMask {
  readonly mask: Uint8Array;
  readonly count: number;
}

/** Polygons times cells of one request, and crossings of edges and rows, each of which costs as much as some cells: about a second of a worker. */
const MAX_WORK = 2 ** 28;
const CROSSING_WORK = 32;
/** Degrees within which a cell lies on an edge. */
const ROUNDING = 1e-9;

/**
 * Marks with 1 the cells whose centres lie in polygons or on their edges. Insides are by the even-odd rule for each polygon. Runs in the pool.
 * @throws ZpublishError `too-large` if many polygons meet many cells, or many edges many rows
 */
export default function maskCells({ polygons, latitudes, longitudes, isGrid }: CellMaskTask): CellMask {
  const rows = sorted(latitudes);
  const columns = isGrid ? sorted(longitudes) : { order: [0], values: longitudes };
  const width = isGrid ? longitudes.length : 1;
  const mask = new Uint8Array(latitudes.length * width);
  const mark = (row: number, column: number) => {
    mask[rows.order[row]! * width + columns.order[column]!] = 1;
  };
  let work = 0;
  const add = (more: number) => {
    work += more;
    if (work > MAX_WORK) throw tooLarge();
  };
  for (const rings of polygons.parts) {
    add(mask.length);
    // A cell is inside if an odd number of edges is east of it: an edge flips the number of columns west of it.
    const flips = new Uint8Array(rows.order.length * (width + 1));
    for (const [x1, y1, x2, y2] of edgesOf(rings, polygons.stride)) {
      const high = Math.max(y1, y2);
      for (let row = firstFrom(rows.values, Math.min(y1, y2)); rows.values[row]! <= high; row++) {
        add(CROSSING_WORK);
        const latitude = rows.values[row]!;
        const at = rows.order[row]!;
        const own = isGrid ? columns.values : longitudes.subarray(at, at + 1);
        const crossing = x1 + ((latitude - y1) * (x2 - x1)) / (y2 - y1);
        const [west, east] = y1 === y2 ? [Math.min(x1, x2), Math.max(x1, x2)] : [crossing, crossing];
        for (let column = firstFrom(own, west - ROUNDING); own[column]! <= east + ROUNDING; column++)
          mark(row, column);
        // The upper end of an edge belongs to the next one.
        if (latitude < high) flips[row * (width + 1) + firstFrom(own, crossing)]! ^= 1;
      }
    }
    for (let row = 0; row < rows.order.length; row++) {
      let isInside = 0;
      for (let column = width - 1; column >= 0; column--) {
        isInside ^= flips[row * (width + 1) + column + 1]!;
        if (isInside === 1) mark(row, column);
      }
    }
  }
  return { mask, count: mask.reduce((sum, each) => sum + each, 0) };
}

function tooLarge(): ZpublishError {
  const expected = `polygons times cells of at most ${MAX_WORK}, and edges that meet at most ${MAX_WORK / CROSSING_WORK} rows`;
  return new ZpublishError("too-large", `Expected ${expected}, received more`);
}

/** Lists the edges of rings. */
function* edgesOf(rings: readonly Float64Array[], stride: number) {
  for (const ring of rings)
    for (let at = stride; at < ring.length; at += stride)
      yield [ring[at - stride]!, ring[at - stride + 1]!, ring[at]!, ring[at + 1]!] as const;
}

/** Returns the numbers of a list in ascending order, and where they were. */
function sorted(list: Float64Array) {
  const order = Array.from(list.keys())
    .filter((at) => Number.isFinite(list[at]))
    .sort((a, b) => list[a]! - list[b]!);
  return { order, values: Float64Array.from(order, (at) => list[at]!) };
}

/** Returns the first index of ascending values that is not less. */
function firstFrom(values: Float64Array, wanted: number): number {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle]! < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}
