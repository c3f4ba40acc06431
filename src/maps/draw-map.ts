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
        const first = top * rowStride;
        const second = y.next[ofY]! * rowStride;
        const near = left * columnStride;
        const far = x.next[ofX]! * columnStride;
        values[pixel] = interpolated(
          Number(cells[first + near]),
          Number(cells[first + far]),
          Number(cells[second + near]),
          Number(cells[second + far]),
          y.share![ofY]!,
          x.share![ofX]!,
        );
      }
    }
  }
  return values;
}

/** Interpolates between four cells. Missing ones have no weight, and a pixel is missing if the nearest of them is. */
function interpolated(
  topLeft: number,
  topRight: number,
  bottomLeft: number,
  bottomRight: number,
  down: number,
  across: number,
): number {
  const [top, bottom] = [1 - down, down];
  const [left, right] = [1 - across, across];
  const sum = top * (left * topLeft + right * topRight) + bottom * (left * bottomLeft + right * bottomRight);
  if (!Number.isNaN(sum)) return sum;
  const nearest = down < 0.5 ? (across < 0.5 ? topLeft : topRight) : across < 0.5 ? bottomLeft : bottomRight;
  if (Number.isNaN(nearest)) return Number.NaN;
  let [present, weight] = [0, 0];
  for (const [value, share] of [
    [topLeft, top * left],
    [topRight, top * right],
    [bottomLeft, bottom * left],
    [bottomRight, bottom * right],
  ] as const) {
    if (Number.isNaN(value)) continue;
    present += value * share;
    weight += share;
  }
  return present / weight;
}
