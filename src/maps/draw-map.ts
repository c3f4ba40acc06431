import { encodeValues, type ValueColours } from "../codec/compute/picture.js";
import type { NumericArray } from "../codec/items/item-values.js";
import type { GridSample } from "./sample-grid.js";

/** Values of the cells that a map shows. */
export interface SampledValues {
  readonly sample: GridSample;
  /** Cells of the sample's rows and columns. */
  readonly cells: NumericArray;
  /** Cells from one row to the next, and from one column to the next. */
  readonly rowStride: number;
  readonly columnStride: number;
  readonly width: number;
  readonly height: number;
}

/** A map, and how its values become colours. */
export interface MapTask extends SampledValues {
  readonly colours: ValueColours;
}

/** Draws a map as a PNG whose missing values are transparent. Runs in the pool. */
export default function drawMap({ colours, ...values }: MapTask): Uint8Array {
  return encodeValues(pixelValues(values), values.width, values.height, colours);
}

/** Returns the value of each pixel, row by row from the north; NaN if it is missing, or if the pixel is beside the grid. */
export function pixelValues({
  sample,
  cells,
  rowStride,
  columnStride,
  width,
  height,
}: SampledValues): Float64Array {
  const { y, x, isSeparable } = sample;
  const values = new Float64Array(width * height);
  for (let pixel = 0, row = 0; row < height; row++) {
    for (let column = 0; column < width; column++, pixel++) {
      const [ofY, ofX] = isSeparable ? [row, column] : [pixel, pixel];
      const top = y.at[ofY]! * rowStride;
      const left = x.at[ofX]! * columnStride;
      if (y.at[ofY]! < 0 || x.at[ofX]! < 0) values[pixel] = Number.NaN;
      else if (y.next === undefined || x.next === undefined) values[pixel] = Number(cells[top + left]);
      else {
        const bottom = y.next[ofY]! * rowStride;
        const right = x.next[ofX]! * columnStride;
        const corners = [top + left, top + right, bottom + left, bottom + right];
        values[pixel] = interpolated(cells, corners, y.share![ofY]!, x.share![ofX]!);
      }
    }
  }
  return values;
}

/** Interpolates between four cells. Missing ones have no weight, and a pixel is missing if the nearest of them is. */
function interpolated(cells: NumericArray, corners: readonly number[], down: number, across: number): number {
  const weights = [(1 - down) * (1 - across), (1 - down) * across, down * (1 - across), down * across];
  let [sum, weight] = [0, 0];
  for (let corner = 0; corner < 4; corner++) {
    const value = Number(cells[corners[corner]!]);
    if (Number.isNaN(value)) {
      if (weights[corner]! >= Math.max(...weights)) return Number.NaN;
      continue;
    }
    sum += value * weights[corner]!;
    weight += weights[corner]!;
  }
  return sum / weight;
}
