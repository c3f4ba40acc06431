import type { JsonValue } from "../../json/json-value.js";
import { pythonFloatText } from "../../json/python-text.js";
import type { FileArray } from "../formats/file-index.js";
import { NO_FILL } from "./coordinates.js";
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
