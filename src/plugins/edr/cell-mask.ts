import { firstNotLess, ZpublishError } from "../../plugin-api.js";
import { regionOf, type WktGeometry } from "./well-known-text.js";

/** Cells that are looked for in polygons. Plain data: it goes to a worker. */
export interface CellMaskTask {
  readonly polygons: Pick<WktGeometry, "parts" | "stride">;
  /** NaN for cells without a place. */
  readonly latitudes: Float64Array;
  /** Degrees of the columns of a grid whose rows the latitudes are, east of the westernmost position; or one per latitude, in any turn. */
  readonly longitudes: Float64Array;
  readonly isGrid: boolean;
}

/** Cells in polygons: 1 for each that is inside, in C order. */
export interface CellMask {
  readonly mask: Uint8Array;
  readonly count: number;
}

/** Polygons times cells of one request: about a second of a worker. */
const MAX_WORK = 2 ** 28;
/** Cells that cost as much as a crossing of an edge and a row, and as sorting one cell. */
const CROSSING_WORK = 32;
const SORTING_WORK = 128;
/** Degrees within which a cell lies on an edge. */
const ROUNDING = 1e-9;

/**
 * Marks with 1 the cells whose centres lie in polygons or on their edges. Insides are by the even-odd rule for each polygon. Runs in the pool.
 * @throws ZpublishError `too-large` if many polygons meet many cells, or many edges many rows
 */
export default function maskCells({ polygons, latitudes, longitudes, isGrid }: CellMaskTask): CellMask {
  const { west, east, south, north } = regionOf(polygons);
  const placeOf = (at: number) => (isGrid ? longitudes[at]! : eastOf(longitudes[at]!, west));
  const near: number[] = [];
  for (const [at, latitude] of latitudes.entries())
    if (latitude >= south && latitude <= north && (isGrid || placeOf(at) <= east + ROUNDING)) near.push(at);
  let work = 0;
  const add = (more: number) => {
    work += more;
    if (work > MAX_WORK) throw tooLarge();
  };
  if (!isGrid) add(SORTING_WORK * near.length);
  const rows = sorted(latitudes, near);
  const columns = isGrid ? sorted(longitudes, Array.from(longitudes.keys())) : { order: [0] };
  const places = "values" in columns ? columns.values : Float64Array.from(rows.order, placeOf);
  const width = columns.order.length;
  const mask = new Uint8Array(latitudes.length * width);
  let count = 0;
  const mark = (row: number, column: number) => {
    const at = rows.order[row]! * width + columns.order[column]!;
    if (mask[at] === 0) count++;
    mask[at] = 1;
  };
  for (const rings of polygons.parts) {
    // Again for what is further east than one turn.
    for (let turn = 0; turn === 0 || 360 * turn < east - west; turn++) {
      add(rows.order.length * width);
      // A cell is inside if an odd number of edges is east of it: an edge flips the number of columns west of it.
      const flips = new Uint8Array(rows.order.length * (width + 1));
      for (const [x1, y1, x2, y2] of edgesOf(rings, polygons.stride, 360 * turn)) {
        const high = Math.max(y1, y2);
        for (let row = firstNotLess(rows.values, Math.min(y1, y2)); rows.values[row]! <= high; row++) {
          add(CROSSING_WORK);
          const latitude = rows.values[row]!;
          const own = isGrid ? places : places.subarray(row, row + 1);
          const crossing = x1 + ((latitude - y1) * (x2 - x1)) / (y2 - y1);
          const [first, last] = y1 === y2 ? [Math.min(x1, x2), Math.max(x1, x2)] : [crossing, crossing];
          for (let column = firstNotLess(own, first - ROUNDING); own[column]! <= last + ROUNDING; column++)
            mark(row, column);
          // The upper end of an edge belongs to the next one.
          if (latitude < high) flips[row * (width + 1) + firstNotLess(own, crossing)]! ^= 1;
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
  }
  return { mask, count };
}

function tooLarge(): ZpublishError {
  const edges = `edges that meet at most ${MAX_WORK / CROSSING_WORK} rows`;
  const expected = `polygons times cells of at most ${MAX_WORK}, ${edges}, and ${MAX_WORK / SORTING_WORK} cells of a curvilinear grid`;
  return new ZpublishError("too-large", `Expected ${expected}, received more`);
}

/** Adds turns to a longitude, so that it is the first one east of another. */
export function eastOf(longitude: number, west: number): number {
  const turns = Math.ceil((west - longitude) / 360 - 1e-9);
  // 350.2 becomes -9.8.
  return turns === 0 ? longitude : Number((longitude + 360 * turns).toFixed(9));
}

/** Lists the edges of rings, moved westward by degrees. */
function* edgesOf(rings: readonly Float64Array[], stride: number, moved: number) {
  for (const ring of rings)
    for (let at = stride; at < ring.length; at += stride)
      yield [ring[at - stride]! - moved, ring[at - stride + 1]!, ring[at]! - moved, ring[at + 1]!] as const;
}

/** Sorts places of a list of numbers by these. */
function sorted(list: Float64Array, places: number[]) {
  const order = places.sort((a, b) => list[a]! - list[b]!);
  return { order, values: Float64Array.from(order, (at) => list[at]!) };
}
