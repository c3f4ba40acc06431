import { isJsonArray, isJsonObject, type JsonObject, type JsonValue, toNumber } from "../json/json-value.js";

/** Type of values: numpy's kind character, and bytes. */
type ItemType = Readonly<{ kind: string; itemSize: number }>;

/** A variable as far as it may be an image. */
interface ImageTraits {
  readonly dims: readonly string[];
  readonly shape: readonly number[];
  readonly dataType: ItemType;
  readonly attrs: JsonObject;
}

/** The axis of an image along which red, green and blue lie, in this order, and perhaps opacity. */
export interface ColourBands {
  readonly axis: number;
  /** 3, or 4 with opacity. */
  readonly count: 3 | 4;
}

/** Names of axes along which colours lie. */
const BAND_NAMES = /^(?:bands?|rgba?|colou?rs?|channels?|samples?|c|s)$/i;
/** Names that stand for none. */
const UNNAMED = /^(?:phony_)?dim_\d+$/;
/** Attributes of measured values, which no colour has. */
const MEASURED = ["standard_name", "units", "flag_values", "flag_masks"];

/**
 * Returns the bands of an image in colour: of unsigned integers of 8 or 16 bits, as its `color_interpretation` says (a list of `red`,
 * `green`, `blue`, `alpha` and others), else three or four along an axis with a name of bands. Undefined if it has none.
 */
export function colourBandsOf({ dims, shape, dataType, attrs }: ImageTraits): ColourBands | undefined {
  if (!isSmallUnsigned(dataType) || dims.length < 3 || MEASURED.some((name) => Object.hasOwn(attrs, name)))
    return undefined;
  const isUnnamed = dims.length === 3 && dataType.itemSize === 1 && dims.every((dim) => UNNAMED.test(dim));
  const axis = isUnnamed ? 2 : dims.findIndex((dim) => BAND_NAMES.test(dim));
  const length = shape[axis] ?? 0;
  const named = attrs.color_interpretation;
  if (isJsonArray(named)) {
    const isColour = length >= 3 && named.slice(0, 3).join() === "red,green,blue";
    return isColour ? { axis, count: named[3] === "alpha" && length > 3 ? 4 : 3 } : undefined;
  }
  // Of 16 bits, a fourth band is more often infrared than opacity.
  const isFour = length === 4 && (dataType.itemSize === 1 || /^rgba$/i.test(dims[axis]!));
  return length === 3 || isFour ? { axis, count: isFour ? 4 : 3 } : undefined;
}

/** Attributes by which a variable is more than the pixels of an image. */
const CF_ATTRIBUTES = [
  ...MEASURED,
  "_FillValue",
  "missing_value",
  "scale_factor",
  "add_offset",
  "valid_min",
  "valid_max",
  "valid_range",
  "grid_mapping",
  "coordinates",
];

/**
 * Returns the `fill_value` of an array as far as it marks missing values, which xarray takes every one for. The 0 of an image is black
 * instead: of unsigned integers of 8 or 16 bits without attributes of CF.
 */
export function missingMarkOf(
  { dataType, attrs }: Pick<ImageTraits, "dataType" | "attrs">,
  fillValue: JsonValue | undefined,
): JsonValue | undefined {
  const isImage = isSmallUnsigned(dataType) && !CF_ATTRIBUTES.some((name) => Object.hasOwn(attrs, name));
  return isImage && toNumber(fillValue) === 0 ? null : fillValue;
}

function isSmallUnsigned({ kind, itemSize }: ItemType): boolean {
  return kind === "u" && itemSize <= 2;
}

/**
 * Lists the arrays that show the same as another one in fewer cells, finest first, as the groups above it say: by the conventions
 * `multiscales` of GeoZarr and of OME-Zarr. Empty if there are none, or if the array is not the finest itself.
 * @param path Path of the array: `image/0`.
 * @param attrsOf Returns the attributes of a group by its path: ``, `image`.
 */
export function levelPathsOf(
  path: string,
  attrsOf: (group: string) => JsonObject | undefined,
): readonly string[] {
  for (let end = path.lastIndexOf("/"); ; end = path.lastIndexOf("/", end - 1)) {
    const group = path.slice(0, Math.max(0, end));
    const within = path.slice(end + 1);
    for (const [finest = "", ...coarser] of multiscalesOf(attrsOf(group) ?? {})) {
      // The levels are arrays, or groups of arrays of the same names.
      const rest = within === finest ? "" : within.slice(finest.length);
      if (within !== finest && !within.startsWith(`${finest}/`)) continue;
      return coarser.map((each) => `${group === "" ? "" : `${group}/`}${each}${rest}`);
    }
    if (end <= 0) return [];
  }
}

/** Reads lists of paths, finest first: GeoZarr's `layout` of assets, OME-Zarr's `datasets`. */
function multiscalesOf({ multiscales, ome }: JsonObject): readonly (readonly string[])[] {
  const found = isJsonObject(ome) ? ome.multiscales : multiscales;
  const each = isJsonArray(found) ? found : [found];
  return each.filter(isJsonObject).map(({ layout, datasets }) => {
    const items = isJsonArray(layout) ? layout : isJsonArray(datasets) ? datasets : [];
    const paths = items.map((item) => (isJsonObject(item) ? (item.asset ?? item.path) : undefined));
    return paths.filter((path) => typeof path === "string");
  });
}
