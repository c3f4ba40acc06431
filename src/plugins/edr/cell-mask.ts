import { ZpublishError } from "../../plugin-api.js";
import type { WktGeometry } from "./well-known-text.js";

/** Cells that are looked for in polygons. Plain data: it goes to a worker. */
export interface CellMaskTask {
  readonly polygons: Pick<WktGeometry, "parts" | "stride">;
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

/** Crossings of edges and rows that one request may have: about a second of a worker. */
const MAX_CROSSINGS = 1e7;
/** Polygons times cells of one request, each of which is looked at for each: about a second of a worker. */
const MAX_LOOKS = 2 ** 28;
/** Degrees within which a cell lies on an edge. */
const ROUNDING = 1e-9;

/**
 * Marks with 1 the cells whose centres lie in polygons or on their edges. Insides are by the even-odd rule for each polygon. Runs in the pool.
 * @throws ZpublishError `too-large` if polygons of many positions meet many rows
 */
export default function maskCells({ polygons, latitudes, longitudes, isGrid }: CellMaskTask): CellMask {
  const rows = sorted(latitudes);
  const columns = isGrid ? sorted(longitudes) : { order: [0], values: new Float64Array(1) };
  const width = columns.values.length;
  const mask = new Uint8Array(rows.values.length * width);
  const looks = polygons.parts.length * mask.length;
  if (looks > MAX_LOOKS)
    throw new ZpublishError(
      "too-large",
      `Expected polygons times cells of at most ${MAX_LOOKS}, received ${looks}`,
    );
  assertCrossings(polygons, rows.values);
  for (const rings of polygons.parts) {
    // A cell is inside if an odd number of edges is east of it: an edge marks the number of columns west of it.
    const east = new Uint8Array(rows.values.length * (width + 1));
    const touched = new Uint8Array(mask.length);
    for (const ring of rings)
      for (let at = polygons.stride; at < ring.length; at += polygons.stride) {
        const before = at - polygons.stride;
        const edge = [ring[before]!, ring[before + 1]!, ring[at]!, ring[at + 1]!] as const;
        const [low, high] = edge[1] < edge[3] ? [edge[1], edge[3]] : [edge[3], edge[1]];
        const end = firstFrom(rows.values, high, true);
        const begin = firstFrom(rows.values, low);
        for (let row = begin; row < end; row++) {
          const values = isGrid
            ? columns.values
            : longitudes.subarray(rows.order[row]!, rows.order[row]! + 1);
          cross(edge, rows.values[row]!, values, east, row * (width + 1), touched, row * width);
        }
      }
    for (let row = 0; row < rows.values.length; row++) {
      let isInside = 0;
      for (let column = width - 1; column >= 0; column--) {
        isInside ^= east[row * (width + 1) + column + 1]!;
        mask[rows.order[row]! * width + columns.order[column]!]! |= isInside | touched[row * width + column]!;
      }
    }
  }
  return { mask, count: mask.reduce((sum, each) => sum + each, 0) };
}

/** @throws ZpublishError `too-large`, before any cell is looked at */
function assertCrossings({ parts, stride }: CellMaskTask["polygons"], latitudes: Float64Array): void {
  let crossings = 0;
  for (const ring of parts.flat())
    for (let at = stride; at < ring.length; at += stride) {
      const [from, to] = [ring[at - stride + 1]!, ring[at + 1]!];
      const [low, high] = from < to ? [from, to] : [to, from];
      crossings += firstFrom(latitudes, high, true) - firstFrom(latitudes, low);
    }
  if (crossings <= MAX_CROSSINGS) return;
  const expected = `Expected polygons whose edges meet at most ${MAX_CROSSINGS} rows of cells`;
  throw new ZpublishError("too-large", `${expected}, received ${crossings}`);
}

/** Marks where an edge meets a row. @param longitudes Of the row, ascending. */
function cross(
  [x1, y1, x2, y2]: readonly [number, number, number, number],
  latitude: number,
  longitudes: Float64Array,
  east: Uint8Array,
  eastAt: number,
  touched: Uint8Array,
  touchedAt: number,
): void {
  const isLevel = y1 === y2;
  const x = isLevel ? Math.min(x1, x2) : x1 + ((latitude - y1) * (x2 - x1)) / (y2 - y1);
  const last = isLevel ? Math.max(x1, x2) : x;
  for (let at = firstFrom(longitudes, x - ROUNDING); longitudes[at]! <= last + ROUNDING; at++)
    touched[touchedAt + at] = 1;
  // The upper end of an edge belongs to the next one.
  if (!isLevel && latitude < Math.max(y1, y2)) east[eastAt + firstFrom(longitudes, x)]! ^= 1;
}

function sorted(values: Float64Array) {
  const order = Array.from(values.keys()).sort((a, b) => values[a]! - values[b]!);
  return { order, values: Float64Array.from(order, (at) => values[at]!) };
}

/** Returns the first index of ascending values that is not less, or greater if `isAfter`. */
function firstFrom(values: Float64Array, wanted: number, isAfter = false): number {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle]! < wanted || (isAfter && values[middle] === wanted)) low = middle + 1;
    else high = middle;
  }
  return low;
}
