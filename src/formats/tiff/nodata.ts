import type { JsonValue } from "../../json/json-value.js";
import { pythonFloat } from "../../json/stringify-json.js";
import { parseFloatText } from "./gdal-metadata.js";
import type { TiffImage } from "./tiff-image.js";

/** A missing-value mark, in the type of an image. */
export interface Nodata {
  /** As a `fill_value` of `.zarray`. */
  readonly json: JsonValue;
  /** One item. */
  readonly item: Uint8Array;
}

/** Converts the text of GDAL_NODATA; undefined if it is no number, or none that the image's type has. */
export function nodataOf(text: string, { kind, itemSize, isBigEndian }: TiffImage): Nodata | undefined {
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
  const value = integerOf(text);
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
function integerOf(text: string): bigint | undefined {
  const trimmed = text.trim();
  if (/^[+-]?\d{1,40}$/.test(trimmed)) return BigInt(trimmed.replace(/^\+/, ""));
  const value = parseFloatText(text);
  return value !== undefined && Number.isInteger(value) ? BigInt(value) : undefined;
}
