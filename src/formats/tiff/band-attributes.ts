import { runCooperatively } from "../../event-loop/cooperative-task.js";
import { type JsonValue, setEntry } from "../../json/json-value.js";
import { pythonFloat } from "../../json/stringify-json.js";
import { type GdalMetadata, parseFloatText, parseGdalMetadata, tagValue } from "./gdal-metadata.js";
import { TAG, type TiffDirectory } from "./tiff-directory.js";

/** Names of TIFF's own tags in GDAL's metadata. */
const TEXT_TAGS: readonly (readonly [number, string])[] = [
  [TAG.documentName, "TIFFTAG_DOCUMENTNAME"],
  [TAG.imageDescription, "TIFFTAG_IMAGEDESCRIPTION"],
  [TAG.software, "TIFFTAG_SOFTWARE"],
  [TAG.dateTime, "TIFFTAG_DATETIME"],
  [TAG.artist, "TIFFTAG_ARTIST"],
  [TAG.hostComputer, "TIFFTAG_HOSTCOMPUTER"],
  [TAG.copyright, "TIFFTAG_COPYRIGHT"],
];
const NUMBER_TAGS: readonly (readonly [number, string])[] = [
  [TAG.minSampleValue, "TIFFTAG_MINSAMPLEVALUE"],
  [TAG.maxSampleValue, "TIFFTAG_MAXSAMPLEVALUE"],
  [TAG.xResolution, "TIFFTAG_XRESOLUTION"],
  [TAG.yResolution, "TIFFTAG_YRESOLUTION"],
];
const RESOLUTION_UNITS: Readonly<Record<number, string>> = {
  1: "1 (unitless)",
  2: "2 (pixels/inch)",
  3: "3 (pixels/cm)",
};

/**
 * Makes the attributes of an image as rioxarray has them, but for `_FillValue`: TIFF's and GDAL's metadata of the image and of its
 * first band, scale, offset, names and units.
 *
 * A scale of 1 with an offset of 0, which rioxarray adds to every image, is left out: xarray would convert integers to floats.
 * @param raster `Area` or `Point`; undefined if the file does not say.
 */
export async function bandAttributes(
  directory: TiffDirectory,
  bands: number,
  raster: string | undefined,
): Promise<Record<string, JsonValue>> {
  const attrs: Record<string, JsonValue> = {};
  for (const [tag, name] of TEXT_TAGS) {
    const text = directory.texts.get(tag);
    if (text !== undefined) setEntry(attrs, name, tagValue(text));
  }
  for (const [tag, name] of NUMBER_TAGS) {
    const value = directory.numbers.get(tag)?.[0];
    // GDAL writes eight digits of a float32.
    if (value !== undefined)
      setEntry(attrs, name, tagValue(String(Number(Math.fround(value).toPrecision(8)))));
  }
  const unit = RESOLUTION_UNITS[directory.numbers.get(TAG.resolutionUnit)?.[0] ?? 0];
  if (unit !== undefined) attrs.TIFFTAG_RESOLUTIONUNIT = unit;
  const metadata = await runCooperatively(parseGdalMetadata(directory.texts.get(TAG.gdalMetadata) ?? ""));
  for (const [name, text] of metadata.image) setEntry(attrs, name, tagValue(text));
  if (raster !== undefined) attrs.AREA_OR_POINT = raster;
  for (const [name, text] of metadata.bands.get(0) ?? []) setEntry(attrs, name, tagValue(text));
  // Files that were made of netCDF have these as metadata, too; GDAL goes by its own scale, offset and missing-value mark.
  for (const name of ["scale_factor", "add_offset", "_FillValue"]) delete attrs[name];
  if (metadata.roles.size > 0) {
    addScales(attrs, metadata, bands);
    addTexts(attrs, metadata, bands);
  }
  return attrs;
}

function addScales(attrs: Record<string, JsonValue>, { roles }: GdalMetadata, bands: number): void {
  const scales = valuesOf(roles.get("scale"), bands, 1);
  const offsets = valuesOf(roles.get("offset"), bands, 0);
  if (scales.every((scale) => scale === 1) && offsets.every((offset) => offset === 0)) return;
  if (new Set(scales).size > 1) attrs.scales = floatsOf(scales);
  else attrs.scale_factor = pythonFloat(scales[0] as number);
  if (new Set(offsets).size > 1) attrs.offsets = floatsOf(offsets);
  else attrs.add_offset = pythonFloat(offsets[0] as number);
}

/** Writes floats; most bands of many have the same one. */
function floatsOf(values: readonly number[]): JsonValue[] {
  const written = new Map([...new Set(values)].map((value) => [value, pythonFloat(value)]));
  return values.map((value) => written.get(value) as JsonValue);
}

function valuesOf(texts: ReadonlyMap<number, string> | undefined, bands: number, fallback: number): number[] {
  return listOf(texts, bands, fallback, (text) => parseFloatText(text) ?? fallback);
}

/** Makes a list with an entry for each band. Few of many may have a text. */
function listOf<T>(
  texts: ReadonlyMap<number, string> | undefined,
  bands: number,
  fallback: T,
  parse: (text: string) => T,
): T[] {
  const list = new Array<T>(bands).fill(fallback);
  for (const [band, text] of texts ?? []) {
    if (Number.isInteger(band) && band >= 0 && band < bands) list[band] = parse(text);
  }
  return list;
}

function addTexts(attrs: Record<string, JsonValue>, { roles }: GdalMetadata, bands: number): void {
  const textsOf = (role: string) =>
    listOf<string | null>(roles.get(role), bands, null, (text) => text || null);
  const names = textsOf("description");
  const units = textsOf("unittype");
  if (names.some((name) => name !== null)) {
    attrs.long_name = new Set(names).size === 1 ? (names[0] as string) : names;
  }
  if (units.some((name) => name !== null)) attrs.units = bands === 1 ? (units[0] as string) : units;
}
