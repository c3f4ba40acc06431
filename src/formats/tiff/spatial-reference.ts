import type { JsonObject, JsonValue } from "../../json/json-value.js";
import { pythonFloat, pythonFloatText } from "../../json/stringify-json.js";
import type { FileArray } from "../file-index.js";
import { NO_FILL } from "./coordinates.js";
import type { ControlPoint, GeoTransform } from "./geo-transform.js";

/** Makes the scalar `spatial_ref`: the coordinate reference system and the transform as rioxarray writes them. */
export function spatialReference(
  crs: Readonly<Record<string, JsonValue>>,
  transform: GeoTransform,
  points: readonly ControlPoint[],
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
    attrs: {
      ...crs,
      GeoTransform: transform.map(pythonFloatText).join(" "),
      ...(points.length === 0 ? {} : { gcps: geoJson(points) }),
    },
    chunks: { kind: "inline", bytes: new Uint8Array(8) },
  };
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
