import type { ItemReader } from "./item-reader.js";

/** Positions per axis that a pixel takes values from, at most: nine values are close to a mean of all, and soon read. */
const MAX_POSITIONS = 3;

/** One axis of a plane as it is drawn. */
export interface SampledAxis {
  /** Cells of the plane. */
  readonly length: number;
  /** Bytes between neighbouring cells. */
  readonly byteStride: number;
  readonly pixels: number;
  /** Whether the first pixel shows the last cell. */
  readonly isFlipped: boolean;
}

/**
 * Samples a plane to pixels. A pixel that covers several cells gets the mean of at most 3 × 3 of them, missing ones left out.
 * @param isNearest Whether a pixel gets the value of one cell, in its middle, as categories do.
 * @returns Values row by row, NaN for missing ones.
 */
export function samplePlane(
  read: ItemReader,
  y: SampledAxis,
  x: SampledAxis,
  isNearest: boolean,
): Float64Array {
  const rows = offsetsOf(y, isNearest);
  const columns = offsetsOf(x, isNearest);
  const values = new Float64Array(y.pixels * x.pixels);
  let pixel = 0;
  for (const row of rows) {
    for (const column of columns) {
      let sum = 0;
      let count = 0;
      for (const rowOffset of row) {
        for (const columnOffset of column) {
          const value = read(rowOffset + columnOffset);
          if (Number.isNaN(value)) continue;
          sum += value;
          count += 1;
        }
      }
      values[pixel++] = count === 0 ? Number.NaN : sum / count;
    }
  }
  return values;
}

/** Returns the offsets of the cells that each pixel takes values from: the same cells in whatever order they are stored. */
function offsetsOf({ length, byteStride, pixels, isFlipped }: SampledAxis, isNearest: boolean): number[][] {
  const offsetOf = (cell: number) => (isFlipped ? length - 1 - cell : cell) * byteStride;
  return Array.from({ length: pixels }, (_, pixel) => {
    if (length <= pixels) return [offsetOf(Math.floor(((pixel + 0.5) * length) / pixels))];
    const begin = Math.floor((pixel * length) / pixels);
    const end = Math.floor(((pixel + 1) * length) / pixels);
    const count = isNearest ? 1 : Math.min(MAX_POSITIONS, end - begin);
    return Array.from({ length: count }, (_, index) =>
      offsetOf(begin + Math.floor(((index + 0.5) * (end - begin)) / count)),
    );
  });
}
