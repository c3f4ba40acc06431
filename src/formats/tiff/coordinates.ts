import { ZpublishError } from "../../errors.js";
import type { StoredFill } from "../../zarr/stored-array.js";
import type { FileArray } from "../file-index.js";
import { type GeoTransform, isRectilinear, pixelCentre } from "./geo-transform.js";

/** Elements of a chunk of coordinates along each axis. */
const AXIS_CHUNK = 65_536;
const PLANE_CHUNK = 512;

/** Fill of arrays without absent chunks and without missing values. */
export const NO_FILL: StoredFill = { served: null, item: null, absentIsServed: true };

/** What a chunk of coordinates is computed from, since images may have more pixels along an axis than fit into an index. */
interface CoordinateRecipe {
  readonly kind: "x" | "y" | "xc" | "yc";
  readonly transform: GeoTransform;
  readonly chunkShape: readonly number[];
}

/**
 * Makes the coordinates of an image as rioxarray has them: `x` and `y`; `xc` and `yc` of each pixel if the image is rotated.
 */
export function coordinateArrays(width: number, height: number, transform: GeoTransform): FileArray[] {
  const make = (kind: CoordinateRecipe["kind"], shape: number[], dimNames: string[]): FileArray => {
    const longest = shape.length === 1 ? AXIS_CHUNK : PLANE_CHUNK;
    const chunkShape = shape.map((length) => Math.min(length, longest));
    const recipe: CoordinateRecipe = { kind, transform, chunkShape };
    return {
      name: kind,
      shape,
      chunkShape,
      dtype: "<f8",
      codecs: [],
      compressorCount: 0,
      fill: NO_FILL,
      dimNames,
      attrs: {},
      chunks: { kind: "made", recipe },
    };
  };
  return isRectilinear(transform)
    ? [make("x", [width], ["x"]), make("y", [height], ["y"])]
    : [make("xc", [height, width], ["y", "x"]), make("yc", [height, width], ["y", "x"])];
}

/**
 * Computes a chunk of coordinates: little-endian float64. It has values behind the end of the axis, too.
 * @throws ZpublishError `internal` if the recipe is of something else.
 */
export function makeCoordinates(recipe: unknown, chunkCoords: readonly number[]): Uint8Array<ArrayBuffer> {
  const { kind, transform, chunkShape } = recipe as CoordinateRecipe;
  if (!["x", "y", "xc", "yc"].includes(kind)) {
    throw new ZpublishError("internal", `expected a recipe of coordinates, received ${String(kind)}`);
  }
  const [height, width] = kind === "x" ? [1, chunkShape[0]] : kind === "y" ? [chunkShape[0], 1] : chunkShape;
  const [top = 0, left = 0] =
    kind === "x" ? [0, chunkCoords[0]] : kind === "y" ? [chunkCoords[0], 0] : chunkCoords;
  const rows = height as number;
  const columns = width as number;
  const bytes = new Uint8Array(rows * columns * 8);
  const view = new DataView(bytes.buffer);
  const part = kind.startsWith("x") ? 0 : 1;
  for (let row = 0, at = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++, at += 8) {
      const centre = pixelCentre(transform, left * columns + column, top * rows + row);
      view.setFloat64(at, centre[part], true);
    }
  }
  return bytes;
}
