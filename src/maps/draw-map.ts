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

/** A map, or the values of its pixels, and how they become colours. */
export type MapTask = { readonly colours: ValueColours } & (
  | SampledValues
  | ({ readonly pixels: Float64Array } & Pick<SampledValues, "width" | "height">)
);

/** Draws a map as a PNG whose missing values are transparent. Runs in the pool. */
export default function drawMap(task: MapTask): Uint8Array {
  const pixels = "pixels" in task ? task.pixels : pixelValues(task);
  return encodeValues(pixels, task.width, task.height, task.colours);
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
      const ofY = isSeparable ? row : pixel;
      const ofX = isSeparable ? column : pixel;
      const top = y.at[ofY]!;
      const left = x.at[ofX]!;
      if (top < 0 || left < 0) values[pixel] = Number.NaN;
      else if (y.next === undefined || x.next === undefined)
        values[pixel] = Number(cells[top * rowStride + left * columnStride]);
      else {
        const [down, across] = [y.share![ofY]!, x.share![ofX]!];
        let [sum, known, most, nearest] = [0, 0, 0, Number.NaN];
        for (let corner = 0; corner < 4; corner++) {
          const [isBelow, isRight] = [corner > 1, corner % 2 === 1];
          const at =
            (isBelow ? y.next[ofY]! : top) * rowStride + (isRight ? x.next[ofX]! : left) * columnStride;
          const value = Number(cells[at]);
          const weight = (isBelow ? down : 1 - down) * (isRight ? across : 1 - across);
          if (weight >= most) [most, nearest] = [weight, value];
          if (Number.isNaN(value)) continue;
          sum += value * weight;
          known += weight;
        }
        // Missing cells have no weight, and a pixel is missing if the nearest of its cells is.
        values[pixel] = Number.isNaN(nearest) ? Number.NaN : sum / known;
      }
    }
  }
  return values;
}
