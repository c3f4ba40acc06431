import { messageOf, ZpublishError } from "../../errors.js";
import type { JsonObject } from "../../json/json-value.js";
import { pythonFloat, pythonFloatText } from "../../json/stringify-json.js";
import { comparePaths, type Refusal } from "../../zarr/stored-tree.js";
import type { FileBlocks, FileFormat } from "../file-format.js";
import type { FileArray, FileGroup, FileIndex } from "../file-index.js";
import { crsAttributes, GEO_KEY, readGeoKeys } from "./crs.js";
import {
  numberOf,
  readDirectories,
  TAG,
  type TiffDirectory,
  type TiffImages,
  unsupportedTiff,
} from "./directories.js";
import { imageOf, readImageChunks } from "./image.js";
import { bandAttributes, nodataOf } from "./metadata.js";

/** The convention by which a group says which arrays show the same at other resolutions. */
const MULTISCALES_CONVENTION: JsonObject = {
  name: "multiscales",
  uuid: "d35379db-88df-4056-af3a-620245f8e347",
  schema_url: "https://raw.githubusercontent.com/zarr-conventions/multiscales/refs/tags/v0.1/schema.json",
  spec_url: "https://github.com/zarr-conventions/multiscales/blob/v0.1/README.md",
  description: "Multiscale layout of zarr datasets",
};

/** GeoTIFF, COG and other TIFF, BigTIFF included: images of 8 to 64 bits as rioxarray reads them. */
export const tiffFormat: FileFormat = {
  id: "tiff",
  revision: 3,
  recognizes(head) {
    const [a, b, c, d] = head;
    if (head.length < 8) return false;
    const isVersion = (low: number | undefined, high: number | undefined) =>
      high === 0 && (low === 42 || low === 43);
    return (a === 0x49 && b === 0x49 && isVersion(c, d)) || (a === 0x4d && b === 0x4d && isVersion(d, c));
  },
  readIndex,
  makeChunk: async (_file, recipe, chunkCoords) => makeCoordinates(recipe, chunkCoords),
};

/** Most bands of all images together: each has a number, and may have a name and a unit. */
const MAX_ALL_BANDS = 2 ** 20;

/** Groups that are being made, and what is to be said about them. */
interface Making {
  readonly groups: FileGroup[];
  readonly refused: Refusal[];
  readonly warnings: string[];
}

async function readIndex(file: FileBlocks): Promise<FileIndex> {
  const images = await readDirectories(file);
  const bands = images.directories.reduce(
    (sum, directory) => sum + numberOf(directory, TAG.samplesPerPixel, 1),
    0,
  );
  if (bands > MAX_ALL_BANDS) {
    throw unsupportedTiff(`expected at most ${MAX_ALL_BANDS} bands, received ${bands}`);
  }
  const pages = pagesOf(images);
  const making: Making = { groups: [], refused: [], warnings: [...images.warnings] };
  for (const page of pages) await addPage(file, page, making);
  const { groups, refused, warnings } = making;
  if (groups.every(({ arrays }) => arrays.length === 0)) {
    throw unsupportedTiff(refused[0]?.reason ?? "it has no image");
  }
  groups.sort((a, b) => comparePaths(a.path, b.path));
  const isGeo = pages.some(({ image }) => image.numbers.has(TAG.geoKeyDirectory));
  const format = `${isGeo ? "GeoTIFF" : "TIFF"}${images.layout.isBig ? " (BigTIFF)" : ""}`;
  return { format, groups, refused, warnings };
}

/** Adds the group of a page, and those of its overviews. */
async function addPage(file: FileBlocks, page: TiffPage, making: Making): Promise<void> {
  const { path, image, overviews, masks } = page;
  const metadata = await pageMetadata(page, making);
  const main = await arraysOf(file, image, metadata, path, making);
  const served: { path: string; arrays: ImageArrays }[] = [];
  for (const [index, overview] of overviews.entries()) {
    const name = childPath(path, `overview_${index + 1}`);
    const arrays = await arraysOf(file, overview, metadata, name, making);
    if (arrays === undefined) continue;
    served.push({ path: name, arrays });
    making.groups.push({ path: name, attrs: {}, arrays: arrays.arrays });
  }
  if (masks.length > 0) {
    making.refused.push({
      path: childPath(path, "mask").slice(1),
      reason: "masks of images are not served; values below them are",
    });
  }
  making.groups.push({
    path,
    attrs: main === undefined ? {} : multiscales(path, main, served),
    arrays: main?.arrays ?? [],
  });
}

/** Makes the arrays of an image; undefined, with the reason noted, if it is not served. */
async function arraysOf(
  file: FileBlocks,
  directory: TiffDirectory,
  metadata: PageMetadata,
  path: string,
  { refused, warnings }: Making,
): Promise<ImageArrays | undefined> {
  const array = childPath(path, VARIABLE).slice(1);
  try {
    const arrays = await imageArrays(file, directory, metadata);
    for (const warning of arrays.warnings) warnings.push(`'${array}': ${warning}`);
    return arrays;
  } catch (error) {
    if (!(error instanceof ZpublishError) || error.code !== "unsupported") throw error;
    refused.push({ path: array, reason: messageOf(error) });
    return undefined;
  }
}

type PageMetadata = Awaited<ReturnType<typeof pageMetadata>>;

/** Reads what an image and its overviews have in common. If it has control points, there are no coordinates, as in rioxarray. */
async function pageMetadata({ path, image }: TiffPage, { warnings }: Making) {
  const keys = readGeoKeys(image);
  const rasterType = keys.get(GEO_KEY.rasterType);
  const isPoint = rasterType === 2;
  const transform = readGeoTransform(image, isPoint);
  const points = transform === undefined ? readControlPoints(image, isPoint) : [];
  const name = childPath(path, VARIABLE).slice(1);
  if (points.length > 0) {
    warnings.push(`'${name}': control points stand for a transform, so there are no coordinates`);
  }
  const raster = rasterType === undefined ? undefined : isPoint ? "Point" : "Area";
  return {
    attrs: await bandAttributes(image, numberOf(image, TAG.samplesPerPixel, 1), raster),
    nodata: image.texts.get(TAG.gdalNodata),
    transform: transform ?? IDENTITY,
    points,
    crs: crsAttributes(keys, (warning) => warnings.push(`'${name}': ${warning}`)),
    width: numberOf(image, TAG.imageWidth, 0),
    height: numberOf(image, TAG.imageLength, 0),
  };
}

/**
 * Describes an image and its overviews (zarr-conventions, multiscales 0.1). The image stays in the group itself, so that clients that
 * open the store get what they get from the file.
 */
function multiscales(
  group: string,
  main: ImageArrays,
  overviews: readonly { readonly path: string; readonly arrays: ImageArrays }[],
): JsonObject {
  if (overviews.length === 0) return {};
  const scaleOf = (y: number, x: number) => ({ scale: [pythonFloat(y), pythonFloat(x)] });
  const layout = overviews.map(({ path, arrays: { height, width } }) => ({
    asset: `${path.slice(group === "/" ? 1 : group.length + 1)}/${VARIABLE}`,
    derived_from: VARIABLE,
    transform: scaleOf(main.height / height, main.width / width),
  }));
  return {
    zarr_conventions: [MULTISCALES_CONVENTION],
    multiscales: { layout: [{ asset: VARIABLE, transform: scaleOf(1, 1) }, ...layout] },
  };
}

function childPath(group: string, name: string): string {
  return group === "/" ? `/${name}` : `${group}/${name}`;
}

/** An image of a file with its overviews. */
interface TiffPage {
  /** `/` for the first, `/page_2`, … for the others. */
  readonly path: string;
  readonly image: TiffDirectory;
  /** Those of fewer pixels, largest first. */
  readonly overviews: readonly TiffDirectory[];
  /** Masks of the image and its overviews, which are not served. */
  readonly masks: readonly TiffDirectory[];
}

/** Bits of NewSubfileType (TIFF 6.0, section 8). */
const REDUCED = 1;
const MASK = 4;

/**
 * Sorts the directories of a file into pages. As GDAL does, a directory of reduced resolution is an overview of the image before it,
 * and every other one a page of its own.
 */
function pagesOf({ directories }: TiffImages): TiffPage[] {
  const pages: (TiffPage & { overviews: TiffDirectory[]; masks: TiffDirectory[] })[] = [];
  for (const directory of directories) {
    const type = numberOf(directory, TAG.newSubfileType, 0);
    const page = pages.at(-1);
    if (page !== undefined && (type & MASK) !== 0) page.masks.push(directory);
    else if (page !== undefined && (type & REDUCED) !== 0) page.overviews.push(directory);
    else {
      const path = pages.length === 0 ? "/" : `/page_${pages.length + 1}`;
      pages.push({ path, image: directory, overviews: [], masks: [] });
    }
  }
  for (const { overviews } of pages) overviews.sort((a, b) => pixelsOf(b) - pixelsOf(a));
  return pages;
}

function pixelsOf(directory: TiffDirectory): number {
  return numberOf(directory, TAG.imageWidth, 0) * numberOf(directory, TAG.imageLength, 0);
}

/** Name that xarray's engine `rasterio` gives to the values of an image. */
const VARIABLE = "band_data";

type ImageArrays = Awaited<ReturnType<typeof imageArrays>>;

/** Makes the arrays of an image or of an overview as rioxarray has them: values, bands, coordinates and `spatial_ref`. */
async function imageArrays(file: FileBlocks, directory: TiffDirectory, page: PageMetadata) {
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
  const coordinates = page.points.length === 0 ? coordinateArrays(width, height, transform) : [];
  const arrays = [bandNumbers(bands), values, spatialReference(page, transform), ...coordinates];
  return { arrays, width, height, warnings };
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

/** Makes an array without codecs, absent chunks and missing values. */
function plainArray(
  name: string,
  dtype: string,
  shape: readonly number[],
  dimNames: readonly string[],
  chunks: FileArray["chunks"],
  chunkShape = shape,
  attrs: JsonObject = {},
): FileArray {
  const fill = { served: null, item: null, absentIsServed: true };
  return { name, shape, chunkShape, dtype, codecs: [], compressorCount: 0, fill, dimNames, attrs, chunks };
}

/** The coordinate `band`: 1, 2, … */
function bandNumbers(bands: number): FileArray {
  const numbers = BigInt64Array.from({ length: bands }, (_, band) => BigInt(band + 1));
  const bytes = new Uint8Array(numbers.buffer);
  return plainArray("band", "<i8", [bands], ["band"], { kind: "inline", bytes });
}

/** Makes the scalar `spatial_ref`: the coordinate reference system and the transform as rioxarray writes them. */
function spatialReference({ crs, points }: PageMetadata, transform: GeoTransform): FileArray {
  const attrs = {
    ...crs,
    GeoTransform: transform.map(pythonFloatText).join(" "),
    ...(points.length > 0 && { gcps: geoJson(points) }),
  };
  return plainArray("spatial_ref", "<i8", [], [], { kind: "inline", bytes: new Uint8Array(8) }, [], attrs);
}

/** Writes control points as rasterio does. */
function geoJson(points: readonly ControlPoint[]): JsonObject {
  const features = points.map(({ row, column, coordinates }, index) => ({
    type: "Feature",
    properties: { id: String(index + 1), info: "", row: pythonFloat(row), col: pythonFloat(column) },
    geometry: { type: "Point", coordinates: coordinates.map(pythonFloat) },
  }));
  return { type: "FeatureCollection", features };
}

/** Elements of a chunk of coordinates along each axis. */
const AXIS_CHUNK = 65_536;
const PLANE_CHUNK = 512;

/** What a chunk of coordinates is computed from, since images may have more pixels along an axis than fit into an index. */
interface CoordinateRecipe {
  readonly kind: "x" | "y" | "xc" | "yc";
  readonly transform: GeoTransform;
  readonly chunkShape: readonly number[];
}

/** Makes the coordinates of an image as rioxarray has them: `x` and `y`; `xc` and `yc` of each pixel if the image is rotated. */
function coordinateArrays(width: number, height: number, transform: GeoTransform): FileArray[] {
  const make = (kind: CoordinateRecipe["kind"], shape: number[], dimNames: string[]): FileArray => {
    const longest = shape.length === 1 ? AXIS_CHUNK : PLANE_CHUNK;
    const chunkShape = shape.map((length) => Math.min(length, longest));
    const recipe: CoordinateRecipe = { kind, transform, chunkShape };
    return plainArray(kind, "<f8", shape, dimNames, { kind: "made", recipe }, chunkShape);
  };
  return isRectilinear(transform)
    ? [make("x", [width], ["x"]), make("y", [height], ["y"])]
    : [make("xc", [height, width], ["y", "x"]), make("yc", [height, width], ["y", "x"])];
}

/** Computes a chunk of coordinates: little-endian float64. It has values behind the end of the axis, too. */
function makeCoordinates(recipe: unknown, chunkCoords: readonly number[]): Uint8Array<ArrayBuffer> {
  const { kind, transform, chunkShape } = recipe as CoordinateRecipe;
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

/** An affine transform from pixels to coordinates as GDAL has it: origin, two steps of x, origin, two steps of y. */
type GeoTransform = readonly [number, number, number, number, number, number];

/** Transform of images that have none, as in rasterio. */
const IDENTITY: GeoTransform = [0, 1, 0, 0, 0, 1];

/**
 * Reads the transform of an image as GDAL does: from pixel scale and tie point, else from the matrix.
 * @param isPoint True if coordinates are those of pixel centres.
 * @returns Undefined if there is none.
 */
function readGeoTransform({ numbers }: TiffDirectory, isPoint: boolean): GeoTransform | undefined {
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
interface ControlPoint {
  readonly row: number;
  readonly column: number;
  /** x, y, z */
  readonly coordinates: readonly number[];
}

/** Reads the tie points of an image without transform. */
function readControlPoints({ numbers }: TiffDirectory, isPoint: boolean): ControlPoint[] {
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
function scaledTransform([c, a, b, f, d, e]: GeoTransform, scaleX: number, scaleY: number): GeoTransform {
  return [c, a * scaleX, b * scaleY, f, d * scaleX, e * scaleY];
}

/** Steps below this count as none, as in the package `affine`. */
const EPSILON = 1e-5;

/** Tells if rioxarray gives one list of x and one of y, rather than both for each pixel. */
function isRectilinear([, a, b, , d, e]: GeoTransform): boolean {
  const isSmall = (one: number, other: number) => Math.abs(one) < EPSILON && Math.abs(other) < EPSILON;
  return (isSmall(a, e) || isSmall(b, d)) && !(b === d && b !== 0);
}

/** Returns x and y of the centre of a pixel, in the order of operations of rioxarray's, so that no bit differs. */
function pixelCentre(
  [c, a, b, f, d, e]: GeoTransform,
  column: number,
  row: number,
): readonly [number, number] {
  const centreX = a * 0.5 + b * 0.5 + c;
  const centreY = d * 0.5 + e * 0.5 + f;
  return [column * a + row * b + centreX, column * d + row * e + centreY];
}
