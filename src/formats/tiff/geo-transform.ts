import { TAG, type TiffDirectory } from "./tiff-directory.js";

/** An affine transform from pixels to coordinates as GDAL has it: origin, two steps of x, origin, two steps of y. */
export type GeoTransform = readonly [number, number, number, number, number, number];

/** Transform of images that have none, as in rasterio. */
export const IDENTITY: GeoTransform = [0, 1, 0, 0, 0, 1];

/**
 * Reads the transform of an image as GDAL does: from pixel scale and tie point, else from the matrix.
 * @param isPoint True if coordinates are those of pixel centres.
 * @returns Undefined if there is none.
 */
export function readGeoTransform({ numbers }: TiffDirectory, isPoint: boolean): GeoTransform | undefined {
  const scale = numbers.get(TAG.modelPixelScale) ?? [];
  const tie = numbers.get(TAG.modelTiepoint) ?? [];
  const matrix = numbers.get(TAG.modelTransformation) ?? [];
  const [scaleX = 0, scaleY = 0] = scale;
  let transform: GeoTransform | undefined;
  if (scaleX !== 0 && scaleY !== 0) {
    if (tie.length < 6) return undefined;
    const [column, row, , x, y] = tie as [number, number, number, number, number];
    const stepY = -Math.abs(scaleY);
    transform = [x - column * scaleX, scaleX, 0, y - row * stepY, 0, stepY];
  } else if (matrix.length === 16) {
    const [a, b, , c, d, e, , f] = matrix as [number, number, number, number, number, number, number, number];
    transform = [c, a, b, f, d, e];
  }
  if (transform === undefined || !transform.every(Number.isFinite)) return undefined;
  if (!isPoint) return transform;
  const [c, a, b, f, d, e] = transform;
  return [c - (a * 0.5 + b * 0.5), a, b, f - (d * 0.5 + e * 0.5), d, e];
}

/** A point of an image whose coordinates are known. */
export interface ControlPoint {
  readonly row: number;
  readonly column: number;
  /** x, y, z */
  readonly coordinates: readonly number[];
}

/** Reads the tie points of an image without transform. */
export function readControlPoints({ numbers }: TiffDirectory, isPoint: boolean): ControlPoint[] {
  const ties = numbers.get(TAG.modelTiepoint) ?? [];
  const shift = isPoint ? 0.5 : 0;
  return Array.from({ length: Math.floor(ties.length / 6) }, (_, index) => {
    const [column, row, , ...coordinates] = ties.slice(6 * index, 6 * index + 6) as [
      number,
      number,
      ...number[],
    ];
    return { row: row + shift, column: column + shift, coordinates };
  });
}

/** Returns the transform of an overview with fewer pixels. */
export function scaledTransform(
  [c, a, b, f, d, e]: GeoTransform,
  scaleX: number,
  scaleY: number,
): GeoTransform {
  return [c, a * scaleX, b * scaleY, f, d * scaleX, e * scaleY];
}

/** Steps below this count as none, as in the package `affine`. */
const EPSILON = 1e-5;

/** Whether rioxarray gives one list of x and one of y, rather than both for each pixel. */
export function isRectilinear([, a, b, , d, e]: GeoTransform): boolean {
  const isSmall = (one: number, other: number) => Math.abs(one) < EPSILON && Math.abs(other) < EPSILON;
  return (isSmall(a, e) || isSmall(b, d)) && !(b === d && b !== 0);
}

/** Returns x and y of the centre of a pixel, in the order of operations of rioxarray's, so that no bit differs. */
export function pixelCentre(
  [c, a, b, f, d, e]: GeoTransform,
  column: number,
  row: number,
): readonly [number, number] {
  const centreX = a * 0.5 + b * 0.5 + c;
  const centreY = d * 0.5 + e * 0.5 + f;
  return [column * a + row * b + centreX, column * d + row * e + centreY];
}
