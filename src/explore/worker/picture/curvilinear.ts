import type { Box, GridExtent, Viewport } from "../../protocol.js";

/** Rows and columns of a curvilinear grid: centres of its cells, in C order. */
export interface CurvilinearGrid {
  readonly latitudes: Float64Array;
  readonly longitudes: Float64Array;
  readonly rows: number;
  readonly columns: number;
}

/** Corners of the cells, one more than cells along both directions. */
export interface GridCorners {
  readonly x: Float64Array;
  readonly y: Float64Array;
  readonly rows: number;
  readonly columns: number;
  /** Boxes round blocks of cells: those outside of a picture are skipped. */
  readonly blocks: readonly Block[];
}

type Block = GridExtent & { readonly row: number; readonly column: number };

const BLOCK = 32;

/** Widest cell in degrees: a wider one lies across the seam of its grid or round a pole. */
const MAX_CELL_DEGREES = 90;

/**
 * Returns the corners of the cells: the means of the centres around them, as far as these are not missing. Outer corners are found by
 * going on beyond the last centres. A cell with a missing corner is not shown.
 */
export function cornersOf(grid: CurvilinearGrid): GridCorners {
  const { latitudes, longitudes, rows, columns } = grid;
  const x = new Float64Array((rows + 1) * (columns + 1));
  const y = new Float64Array(x.length);
  for (let row = 0; row <= rows; row++) {
    for (let column = 0; column <= columns; column++) {
      let [sumX, sumY, count, reference] = [0, 0, 0, Number.NaN];
      for (let corner = 0; corner < 4; corner++) {
        const r = row - 1 + (corner >> 1);
        const c = column - 1 + (corner & 1);
        const inner = clamp(r, rows) * columns + clamp(c, columns);
        let longitude = longitudes[inner]!;
        let latitude = latitudes[inner]!;
        // No place has such a latitude: files mark missing ones by it.
        if (!(Math.abs(latitude) <= 90.5) || !(Math.abs(longitude) <= 720)) continue;
        if (count === 0) reference = longitude;
        longitude = near(longitude, reference);
        // Outside of the grid: as far beyond the last centre as the one before it is on this side.
        const next =
          clamp(2 * clamp(r, rows) - r, rows) * columns + clamp(2 * clamp(c, columns) - c, columns);
        if (next !== inner && Math.abs(latitudes[next]!) <= 90.5 && Math.abs(longitudes[next]!) <= 720) {
          longitude += longitude - near(longitudes[next]!, longitude);
          latitude += latitude - latitudes[next]!;
        }
        sumX += longitude;
        sumY += latitude;
        count++;
      }
      const place = row * (columns + 1) + column;
      x[place] = sumX / count;
      y[place] = Math.max(-90, Math.min(90, sumY / count));
    }
  }
  return { x, y, rows, columns, blocks: blocksOf(x, y, rows, columns) };
}
function blocksOf(x: Float64Array, y: Float64Array, rows: number, columns: number): Block[] {
  const blocks: Block[] = [];
  for (let row = 0; row < rows; row += BLOCK) {
    for (let column = 0; column < columns; column += BLOCK) {
      let [west, east, south, north] = [Infinity, -Infinity, Infinity, -Infinity];
      let reference = Number.NaN;
      for (let r = row; r <= Math.min(row + BLOCK, rows); r++) {
        for (let c = column; c <= Math.min(column + BLOCK, columns); c++) {
          const place = r * (columns + 1) + c;
          const latitude = y[place]!;
          if (Number.isNaN(x[place]!) || Number.isNaN(latitude)) continue;
          if (Number.isNaN(reference)) reference = x[place]!;
          // Neighbours may differ by a turn from what they are nearest to: the box holds all that may be meant.
          const longitude = near(x[place]!, reference);
          west = Math.min(west, longitude);
          east = Math.max(east, longitude);
          south = Math.min(south, latitude);
          north = Math.max(north, latitude);
        }
      }
      if (west > east) continue;
      // A block round a pole, or beyond half a turn, has no box.
      const isWide = east - west > 180 - MAX_CELL_DEGREES;
      if (isWide) [west, east] = [-Infinity, Infinity];
      blocks.push({ row, column, south, north, west, east });
    }
  }
  return blocks;
}

/** Cells of a grid under the pixels of a map, in C order of the grid; -1 for none. */
export interface CellsUnderPixels {
  readonly cells: Int32Array;
  readonly columns: number;
}

/** A map and its pixels. */
export type PixelMap = Box & Pick<Viewport, "width" | "height" | "ratio">;

/**
 * Returns the cell under the middle of each pixel, -1 where there is none: a pixel is in a cell if its middle is in the quadrilateral
 * of the corners.
 */
export function cellsUnderPixels(corners: GridCorners, map: PixelMap): Int32Array {
  const { rows, columns } = corners;
  const { width, height, left, top } = map;
  const cells = new Int32Array(width * height).fill(-1);
  const stepX = (map.right - left) / width;
  const stepY = (map.bottom - top) / height;
  const [least, greatest] = left < map.right ? [left, map.right] : [map.right, left];
  const [low, high] = top > map.bottom ? [map.bottom, top] : [top, map.bottom];
  const quad = new Float64Array(8);
  for (const block of corners.blocks) {
    if (block.north < low || block.south > high) continue;
    if (Math.ceil((least - block.east) / 360) * 360 + block.west > greatest) continue;
    for (let row = block.row; row < Math.min(block.row + BLOCK, rows); row++) {
      for (let column = block.column; column < Math.min(block.column + BLOCK, columns); column++) {
        if (!cellCorners(corners, row, column, quad)) continue;
        const west = Math.min(quad[0]!, quad[2]!, quad[4]!, quad[6]!);
        const east = Math.max(quad[0]!, quad[2]!, quad[4]!, quad[6]!);
        const first = Math.ceil((least - east) / 360);
        if (west + first * 360 > greatest) continue;
        for (let corner = 0; corner < 8; corner += 2) {
          quad[corner] = (quad[corner]! - left) / stepX - 0.5;
          quad[corner + 1] = (quad[corner + 1]! - top) / stepY - 0.5;
        }
        for (let turn = first; west + turn * 360 <= greatest; turn++)
          fillPolygon(cells, row * columns + column, quad, 4, (turn * 360) / stepX, width);
      }
    }
  }
  return cells;
}

/** Writes the corners of a cell, in their order round it, as x and y; false if it is not shown. */
function cellCorners(
  { x, y, columns }: GridCorners,
  row: number,
  column: number,
  quad: Float64Array,
): boolean {
  const above = row * (columns + 1) + column;
  const below = above + columns + 1;
  const reference = x[above]!;
  for (let corner = 0; corner < 4; corner++) {
    const place = corner === 0 ? above : corner === 1 ? above + 1 : corner === 2 ? below + 1 : below;
    const longitude = near(x[place]!, reference);
    if (!(Math.abs(longitude - reference) <= MAX_CELL_DEGREES) || Number.isNaN(y[place]!)) return false;
    quad[2 * corner] = longitude;
    quad[2 * corner + 1] = y[place]!;
  }
  return true;
}

/**
 * Fills the pixels whose middles are in a polygon of `count` corners: row by row, between where the row crosses its sides. The middle
 * of the first pixel is at 0.
 */
export function fillPolygon(
  cells: Int32Array,
  cell: number,
  polygon: Float64Array,
  count: number,
  shift: number,
  width: number,
): void {
  const height = cells.length / width;
  const length = 2 * count;
  let [upper, lower] = [Infinity, -Infinity];
  for (let corner = 1; corner < length; corner += 2) {
    upper = Math.min(upper, polygon[corner]!);
    lower = Math.max(lower, polygon[corner]!);
  }
  const lastRow = Math.min(height - 1, Math.floor(lower));
  for (let row = Math.max(0, Math.ceil(upper)); row <= lastRow; row++) {
    let begin = Number.POSITIVE_INFINITY;
    let end = Number.NEGATIVE_INFINITY;
    const crossings: number[] = [];
    for (let corner = 0; corner < length; corner += 2) {
      const next = corner + 2 === length ? 0 : corner + 2;
      const rowA = polygon[corner + 1]!;
      const rowB = polygon[next + 1]!;
      if ((rowA < row && rowB < row) || (rowA > row && rowB > row)) continue;
      const share = rowA === rowB ? 0 : (row - rowA) / (rowB - rowA);
      const crossing = polygon[corner]! + share * (polygon[next]! - polygon[corner]!);
      begin = Math.min(begin, crossing);
      end = Math.max(end, crossing);
      if (rowA === rowB) {
        begin = Math.min(begin, polygon[next]!);
        end = Math.max(end, polygon[next]!);
      } else if (count > 4 && rowA <= row !== rowB <= row) crossings.push(crossing);
    }
    const fill = (from: number, to: number): void => {
      const last = Math.min(width - 1, Math.floor(to + shift));
      for (let column = Math.max(0, Math.ceil(from + shift)); column <= last; column++)
        cells[row * width + column] = cell;
    };
    if (crossings.length <= 2) {
      fill(begin, end);
      continue;
    }
    // A row may leave a polygon with a dent and come in again.
    crossings.sort((one, other) => one - other);
    for (let part = 0; part < crossings.length; part += 2) fill(crossings[part]!, crossings[part + 1]!);
  }
}

function clamp(index: number, length: number): number {
  return Math.max(0, Math.min(length - 1, index));
}

/** Returns the longitude that means the same and is nearest to another one. */
export function near(longitude: number, reference: number): number {
  return longitude - 360 * Math.round((longitude - reference) / 360);
}
