import { type CooperativeTask, runCooperatively } from "../../event-loop/cooperative-task.js";
import { type JsonValue, setEntry } from "../../json/json-value.js";
import { pythonFloat } from "../../json/stringify-json.js";
import { numberOf, TAG, type TiffDirectory } from "./directories.js";
import type { TiffImage } from "./image.js";

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
  addColours(attrs, directory, bands);
  return attrs;
}

/** Photometric interpretations (TIFF 6.0, sections 6 and 21). JPEG's YCbCr is served as RGB. */
const RGB = 2;
const PALETTE = 3;
const YCBCR = 6;
/** Bands that are more than an image of any kind has names for. */
const MAX_NAMED_BANDS = 16;

/**
 * Adds what the samples of an image mean, which rioxarray does not say: the colours of a palette as CF's flags with `flag_colors`, and
 * GDAL's names of colours as `color_interpretation` if there are three bands or more.
 */
function addColours(attrs: Record<string, JsonValue>, directory: TiffDirectory, bands: number): void {
  const photometric = numberOf(directory, TAG.photometric, 1);
  const map = directory.numbers.get(TAG.colorMap) ?? [];
  const count = map.length / 3;
  if (photometric === PALETTE && bands === 1 && count === 2 ** numberOf(directory, TAG.bitsPerSample, 1)) {
    if (count > 256) return;
    // All of red come first, then green, then blue, each of 16 bits.
    // Some writers have colours of 8 bits.
    const unit = map.every((value) => value < 256) ? 1 : 257;
    const channelOf = (value: number) =>
      Math.floor(value / unit)
        .toString(16)
        .padStart(2, "0");
    attrs.flag_values = Array.from({ length: count }, (_, index) => index);
    attrs.flag_colors = Array.from(
      { length: count },
      (_, index) => `#${[0, 1, 2].map((part) => channelOf(map[part * count + index]!)).join("")}`,
    ).join(" ");
    return;
  }
  if (bands < 3 || bands > MAX_NAMED_BANDS) return;
  const isRgb = photometric === RGB || photometric === YCBCR;
  const extra = directory.numbers.get(TAG.extraSamples) ?? [];
  // 1 and 2 are opacity, with and without which colours are multiplied.
  const isAlpha = (band: number) => [1, 2].includes(extra[band - 3] ?? 0);
  attrs.color_interpretation = Array.from({ length: bands }, (_, band) => {
    if (!isRgb) return band === 0 ? "gray" : "undefined";
    return band < 3 ? ["red", "green", "blue"][band]! : isAlpha(band) ? "alpha" : "undefined";
  });
}

function addScales(attrs: Record<string, JsonValue>, { roles }: GdalMetadata, bands: number): void {
  const scales = valuesOf(roles.get("scale"), bands, 1);
  const offsets = valuesOf(roles.get("offset"), bands, 0);
  if (scales.every((scale) => scale === 1) && offsets.every((offset) => offset === 0)) return;
  if (new Set(scales).size > 1) attrs.scales = floatsOf(scales);
  else attrs.scale_factor = pythonFloat(scales[0]!);
  if (new Set(offsets).size > 1) attrs.offsets = floatsOf(offsets);
  else attrs.add_offset = pythonFloat(offsets[0]!);
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

/** GDAL's metadata of a file, as its own tag has them. Values are texts. */
interface GdalMetadata {
  /** Those of the whole image, by name. */
  readonly image: ReadonlyMap<string, string>;
  /** Those of bands: by band from 0, then by name. */
  readonly bands: ReadonlyMap<number, ReadonlyMap<string, string>>;
  /** By role (`scale`, `offset`, `unittype`, `description`), then by band from 0. */
  readonly roles: ReadonlyMap<string, ReadonlyMap<number, string>>;
}

/** Lengths are bounded where a pattern would otherwise try all of a long text from each of its places. */
const ITEM = /<Item\s([^<>]{0,1000})>([^<]*)<\/Item>/g;
const ATTRIBUTE = /(\w+)\s*=\s*"([^"]*)"/g;
/** Longest text that may be a number. */
const MAX_NUMBER_LENGTH = 400;
const ROLES: ReadonlySet<string> = new Set(["scale", "offset", "unittype", "description"]);

/** Parses the tag GDAL_METADATA (GDAL, GTiff driver): items of XML, of which those of the default domain are kept. */
export function* parseGdalMetadata(xml: string): CooperativeTask<GdalMetadata> {
  const image = new Map<string, string>();
  const bands = new Map<number, Map<string, string>>();
  const roles = new Map<string, Map<number, string>>();
  for (const [, attributes = "", text = ""] of xml.matchAll(ITEM)) {
    yield;
    const found = new Map(
      [...attributes.matchAll(ATTRIBUTE)].map(([, key, value]) => [key, unescaped(value ?? "")]),
    );
    const name = found.get("name");
    if (name === undefined || (found.get("domain") ?? "") !== "") continue;
    const role = found.get("role") ?? "";
    const band = Number(found.get("sample") ?? Number.NaN);
    const value = unescaped(text);
    if (Number.isNaN(band)) image.set(name, value);
    else if (ROLES.has(role)) entryOf(roles, role).set(band, value);
    else if (role === "") entryOf(bands, band).set(name, value);
  }
  return { image, bands, roles };
}

/** Converts the text of a tag as rioxarray does: integers, floats, lists of floats in braces, other texts as they are. */
export function tagValue(text: string): JsonValue {
  if (!text.startsWith("{") || !text.endsWith("}")) return numberOrText(text);
  const items = text.slice(1, -1).split(",").map(parseFloatText);
  return items.every((item) => item !== undefined) ? items.map(pythonFloat) : text;
}

/** Parses a float as Python's `float` does; undefined if the text is none. */
export function parseFloatText(text: string): number | undefined {
  if (text.length > MAX_NUMBER_LENGTH) return undefined;
  const trimmed = text.trim().toLowerCase();
  const special = /^([+-]?)(?:inf(?:inity)?|nan)$/.exec(trimmed);
  if (special !== null) {
    if (trimmed.endsWith("nan")) return Number.NaN;
    return special[1] === "-" ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  }
  return /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/.test(trimmed) ? Number(trimmed) : undefined;
}

function numberOrText(text: string): JsonValue {
  if (text.length > MAX_NUMBER_LENGTH) return text;
  const trimmed = text.trim();
  if (/^[+-]?\d+(?:_\d+)*$/.test(trimmed)) {
    const integer = BigInt(trimmed.replace(/^\+|_/g, ""));
    return Number.isSafeInteger(Number(integer)) ? Number(integer) : integer;
  }
  const float = parseFloatText(text);
  if (float === undefined) return text;
  return Number.isFinite(float) ? pythonFloat(float) : float;
}

function entryOf<K, V>(map: Map<K, Map<V, string>>, key: K): Map<V, string> {
  const found = map.get(key) ?? new Map<V, string>();
  map.set(key, found);
  return found;
}

/** Replaces entities, twice: GDAL writes `&amp;lt;` for `<`, and reads it so. */
function unescaped(text: string): string {
  return text.includes("&") ? withoutEntities(withoutEntities(text)) : text;
}

/** Replaces entities of XML, once. */
function withoutEntities(text: string): string {
  return text.replace(
    /&(?:#x([0-9a-f]{1,6})|#(\d{1,7})|(lt|gt|quot|apos|amp));/gi,
    (whole, hex, decimal, name) => {
      if (name !== undefined)
        return { lt: "<", gt: ">", quot: '"', apos: "'", amp: "&" }[name as "lt"] ?? whole;
      const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16);
      return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
    },
  );
}

/**
 * Converts the text of GDAL_NODATA to a `fill_value` of `.zarray`, and to an item in the type of an image; undefined if it is no
 * number, or none that the type has.
 */
export function nodataOf(text: string, { kind, itemSize, isBigEndian }: TiffImage) {
  if (kind === "c") return undefined;
  const item = new Uint8Array(itemSize);
  const view = new DataView(item.buffer);
  if (kind === "f") {
    const value = parseFloatText(text);
    if (value === undefined || itemSize === 2) return undefined;
    if (itemSize === 4) view.setFloat32(0, value, !isBigEndian);
    else view.setFloat64(0, value, !isBigEndian);
    const stored = itemSize === 4 ? Math.fround(value) : value;
    // A float64 that no float32 comes near, such as 1e300, would become infinite.
    if (Number.isFinite(value) !== Number.isFinite(stored)) return undefined;
    return { json: pythonFloat(stored), item };
  }
  const value = integerOfText(text);
  const bits = itemSize * 8;
  const fits = value !== undefined && (kind === "u" ? BigInt.asUintN : BigInt.asIntN)(bits, value) === value;
  if (!fits) return undefined;
  const bytes = BigInt.asUintN(bits, value);
  for (let index = 0; index < itemSize; index++) {
    const place = isBigEndian ? itemSize - 1 - index : index;
    item[place] = Number((bytes >> BigInt(8 * index)) & 0xffn);
  }
  return { json: Number.isSafeInteger(Number(value)) ? Number(value) : value, item };
}

/** Parses an integer, which may be written as a float. */
function integerOfText(text: string): bigint | undefined {
  const trimmed = text.trim();
  if (/^[+-]?\d{1,40}$/.test(trimmed)) return BigInt(trimmed.replace(/^\+/, ""));
  const value = parseFloatText(text);
  return value !== undefined && Number.isInteger(value) ? BigInt(value) : undefined;
}
