import { messageOf, ZpublishError } from "../../errors.js";
import type { JsonObject } from "../../json/json-value.js";
import { pythonFloat } from "../../json/stringify-json.js";
import { comparePaths, type Refusal } from "../../zarr/stored-tree.js";
import type { FileBlocks, FileFormat } from "../file-format.js";
import type { FileGroup, FileIndex } from "../file-index.js";
import { bandAttributes } from "./band-attributes.js";
import { makeCoordinates } from "./coordinates.js";
import { crsAttributes } from "./crs-from-keys.js";
import { GEO_KEY, readGeoKeys } from "./geo-keys.js";
import { IDENTITY, readControlPoints, readGeoTransform } from "./geo-transform.js";
import { type ImageArrays, imageArrays, type PageMetadata, VARIABLE } from "./image-group.js";
import { pagesOf, type TiffPage } from "./pages.js";
import { readDirectories } from "./read-directories.js";
import { numberOf, TAG, type TiffDirectory } from "./tiff-directory.js";

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
  revision: 2,
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
const MAX_BANDS = 2 ** 20;

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
  if (bands > MAX_BANDS) {
    throw new ZpublishError("unsupported", `expected at most ${MAX_BANDS} bands, received ${bands}`);
  }
  const pages = pagesOf(images);
  const making: Making = { groups: [], refused: [], warnings: [...images.warnings] };
  for (const page of pages) await addPage(file, page, making);
  const { groups, refused, warnings } = making;
  if (groups.every(({ arrays }) => arrays.length === 0)) {
    const reason = refused[0]?.reason ?? "it has no image";
    throw new ZpublishError("unsupported", `${reason}`);
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

async function pageMetadata({ path, image }: TiffPage, { warnings }: Making): Promise<PageMetadata> {
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
