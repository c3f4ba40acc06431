import type { ItemsReader } from "./item-reader.js";

/** Positions per axis that a pixel takes values from, at most: nine values are close to a mean of all, and soon read. */
const MAX_POSITIONS = 3;

/** One axis of a plane as it is drawn. */
export interface SampledAxis {
  /** Cells of the plane. */
  readonly length: number;
  /** Items between neighbouring cells. */
  readonly stride: number;
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
  read: ItemsReader,
  y: SampledAxis,
  x: SampledAxis,
  isNearest: boolean,
): Float64Array {
  const rows = cellsOf(y, isNearest);
  const columns = cellsOf(x, isNearest);
  const values = new Float64Array(y.pixels * x.pixels);
  const counts = new Uint8Array(x.pixels);
  const cells = new Float64Array(columns.places.length);
  for (let pixelRow = 0; pixelRow < y.pixels; pixelRow++) {
    const sums = values.subarray(pixelRow * x.pixels, (pixelRow + 1) * x.pixels);
    counts.fill(0);
    for (let row = rows.begins[pixelRow]!; row < rows.begins[pixelRow + 1]!; row++) {
      read(rows.places[row]!, columns.places, cells);
      addRow(cells, columns.begins, sums, counts);
    }
    for (let pixel = 0; pixel < sums.length; pixel++) sums[pixel]! /= counts[pixel]!;
  }
  return values;
}

/** The cells that the pixels of an axis take values from. */
interface SampledCells {
  /** Places of the cells in items, pixel by pixel. */
  readonly places: Uint32Array;
  /** Index of the first cell of each pixel, and at the end the number of cells. */
  readonly begins: Uint32Array;
}

/** Adds the cells of a row to the sums of its pixels. */
function addRow(cells: Float64Array, begins: Uint32Array, sums: Float64Array, counts: Uint8Array): void {
  for (let pixel = 0; pixel < sums.length; pixel++) {
    const end = begins[pixel + 1]!;
    let sum = sums[pixel]!;
    let count = counts[pixel]!;
    for (let cell = begins[pixel]!; cell < end; cell++) {
      const value = cells[cell]!;
      if (Number.isNaN(value)) continue;
      sum += value;
      count++;
    }
    sums[pixel] = sum;
    counts[pixel] = count;
  }
}

/** Returns the cells of each pixel: the same ones in whatever order they are stored. */
function cellsOf({ length, stride, pixels, isFlipped }: SampledAxis, isNearest: boolean): SampledCells {
  const places = new Uint32Array(MAX_POSITIONS * pixels);
  const begins = new Uint32Array(pixels + 1);
  const placeOf = (cell: number) => (isFlipped ? length - 1 - cell : cell) * stride;
  let cells = 0;
  for (let pixel = 0; pixel < pixels; pixel++) {
    if (length <= pixels) places[cells++] = placeOf(Math.floor(((pixel + 0.5) * length) / pixels));
    else {
      const begin = Math.floor((pixel * length) / pixels);
      const end = Math.floor(((pixel + 1) * length) / pixels);
      const count = isNearest ? 1 : Math.min(MAX_POSITIONS, end - begin);
      for (let index = 0; index < count; index++)
        places[cells++] = placeOf(begin + Math.floor(((index + 0.5) * (end - begin)) / count));
    }
    begins[pixel + 1] = cells;
  }
  return { places: places.subarray(0, cells), begins };
}
