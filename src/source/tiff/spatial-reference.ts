import type { JsonValue } from "../../json/json-value.js";
import { pythonFloatText } from "../../json/python-text.js";
import type { FileArray } from "../formats/file-index.js";
import { NO_FILL } from "./coordinates.js";
import { GEO_KEY, type GeoKeys, numberKey } from "./geo-keys.js";
import type { GeoTransform } from "./geo-transform.js";

/** Makes the scalar `spatial_ref`: the coordinate reference system and the transform as rioxarray writes them. */
export function spatialReference(
  crs: Readonly<Record<string, JsonValue>>,
  transform: GeoTransform,
): FileArray {
  return {
    name: "spatial_ref",
    shape: [],
    chunkShape: [],
    dtype: "<i8",
    codecs: [],
    compressorCount: 0,
    fill: NO_FILL,
    dimNames: [],
    attrs: { ...crs, GeoTransform: transform.map(pythonFloatText).join(" ") },
    chunks: { kind: "inline", bytes: new Uint8Array(8) },
  };
}

/**
 * Makes the attributes that say the coordinate reference system. Clients have a database of EPSG's codes, so the code stands for what
 * it names.
 */
export function crsAttributes(keys: GeoKeys, _warn: (x: string) => void): Record<string, JsonValue> {
  const code = numberKey(keys, GEO_KEY.projectedCrs) ?? numberKey(keys, GEO_KEY.geodeticCrs);
  if (code === undefined) return {};
  return { crs_wkt: `EPSG:${code}`, spatial_ref: `EPSG:${code}` };
}
