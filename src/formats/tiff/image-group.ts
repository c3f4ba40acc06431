import type { JsonObject, JsonValue } from "../../json/json-value.js";
import type { FileBlocks } from "../file-format.js";
import type { FileArray } from "../file-index.js";
import { coordinateArrays, NO_FILL } from "./coordinates.js";
import { type ControlPoint, type GeoTransform, isRectilinear, scaledTransform } from "./geo-transform.js";
import { readImageChunks } from "./image-chunks.js";
import { nodataOf } from "./nodata.js";
import { spatialReference } from "./spatial-reference.js";
import type { TiffDirectory } from "./tiff-directory.js";
import { imageOf } from "./tiff-image.js";

/** Name that xarray's engine `rasterio` gives to the values of an image. */
export const VARIABLE = "band_data";

/** What an image and its overviews have in common. */
export interface PageMetadata {
  readonly attrs: Readonly<Record<string, JsonValue>>;
  /** Text of GDAL_NODATA. */
  readonly nodata: string | undefined;
  readonly transform: GeoTransform;
  /** Control points in place of a transform. If there are any, there are no coordinates, as in rioxarray. */
  readonly points: readonly ControlPoint[];
  readonly crs: Readonly<Record<string, JsonValue>>;
  readonly width: number;
  readonly height: number;
}

/** Arrays of an image, sorted by name, and what is to be said about them. */
export interface ImageArrays {
  readonly arrays: readonly FileArray[];
  readonly width: number;
  readonly height: number;
  readonly warnings: readonly string[];
}

/**
 * Makes the arrays of an image or of an overview as rioxarray has them: values, bands, coordinates and `spatial_ref`.
 * @throws ZpublishError `unsupported` with the reason alone, if its values are not served; `invalid-metadata`.
 */
export async function imageArrays(
  file: FileBlocks,
  directory: TiffDirectory,
  page: PageMetadata,
): Promise<ImageArrays> {
  const image = imageOf(directory);
  const { width, height, bands } = image;
  const { fields, hasAbsent } = await readImageChunks(file, directory, image);
  const nodata = page.nodata === undefined ? undefined : nodataOf(page.nodata, image);
  const transform = scaledTransform(page.transform, page.width / width, page.height / height);
  const values: FileArray = {
    name: VARIABLE,
    ...fields,
    dtype: image.dtype,
    fill: {
      served: nodata?.json ?? null,
      item: nodata?.item ?? null,
      absentIsServed: nodata !== undefined || !hasAbsent,
    },
    dimNames: ["band", "y", "x"],
    attrs: gridAttributes(page),
  };
  const warnings =
    page.nodata !== undefined && nodata === undefined
      ? [
          `its type ${image.dtype} has no nodata value ${JSON.stringify(page.nodata.slice(0, 40))}, which is left out`,
        ]
      : [];
  return {
    arrays: [
      bandNumbers(bands),
      values,
      spatialReference(page.crs, transform, page.points),
      ...(page.points.length === 0 ? coordinateArrays(width, height, transform) : []),
    ],
    width,
    height,
    warnings,
  };
}

/** Attributes by which xarray finds `spatial_ref`, and makes it a coordinate. */
function gridAttributes({ attrs, points, transform }: PageMetadata): JsonObject {
  const isRotated = points.length === 0 && !isRectilinear(transform);
  return {
    ...attrs,
    coordinates: isRotated ? "spatial_ref xc yc" : "spatial_ref",
    grid_mapping: "spatial_ref",
  };
}

/** The coordinate `band`: 1, 2, … */
function bandNumbers(bands: number): FileArray {
  return {
    name: "band",
    shape: [bands],
    chunkShape: [bands],
    dtype: "<i8",
    codecs: [],
    compressorCount: 0,
    fill: NO_FILL,
    dimNames: ["band"],
    attrs: {},
    chunks: {
      kind: "inline",
      bytes: new Uint8Array(BigInt64Array.from({ length: bands }, (_, band) => BigInt(band + 1)).buffer),
    },
  };
}
