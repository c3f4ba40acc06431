import type { JsonValue } from "../../json/json-value.js";
import {
  type Crs,
  crsWkt,
  type Ellipsoid,
  type GeographicCrs,
  gridMapping,
  type ProjectedCrs,
} from "./crs.js";
import { GEO_KEY, type GeoKeys, numberKey, textKey, USER_DEFINED } from "./geo-keys.js";
import { knownCrs, knownEllipsoid, knownGeographic } from "./known-crs.js";
import { METHODS, PROJECTIONS, type Projection } from "./projections.js";

/** Values of GTModelTypeGeoKey. */
const PROJECTED = 1;
const GEOGRAPHIC = 2;

/** Codes of EPSG are below those that the specification keeps for other uses. */
const FIRST_EPSG = 1024;

/** Text before the WKT that GDAL and ArcGIS write into a citation. */
const WKT_CITATION = "ESRI PE String = ";

/** Linear units by EPSG's code. */
const UNITS: ReadonlyMap<number, ProjectedCrs["unit"]> = new Map([
  [9001, { name: "metre", metres: 1, code: 9001 }],
  [9002, { name: "foot", metres: 0.3048, code: 9002 }],
  [9003, { name: "US survey foot", metres: 0.304800609601219, code: 9003 }],
]);

/**
 * Makes the attributes of `spatial_ref` that say the coordinate reference system: WKT and those of CF if the system is known here or
 * its keys define it; else EPSG's code as text, for which clients have a database.
 * @param warn Called with the reason if a system is left out.
 * @returns No attributes if the file has no system, or one that cannot be written.
 */
export function crsAttributes(keys: GeoKeys, warn: (reason: string) => void): Record<string, JsonValue> {
  const model = numberKey(keys, GEO_KEY.modelType);
  const code = epsgCode(keys, model === PROJECTED ? GEO_KEY.projectedCrs : GEO_KEY.geodeticCrs);
  const written = wktCitation(keys);
  if (numberKey(keys, GEO_KEY.verticalCrs) !== undefined) warn("its vertical reference system is left out");
  if (model === undefined && written === undefined) return {};
  if (code !== undefined && (model === PROJECTED || model === GEOGRAPHIC)) {
    const known = knownCrs(code);
    return known === undefined ? asText(`EPSG:${code}`) : asCrs(known);
  }
  if (written !== undefined) return asText(written);
  const made = model === PROJECTED ? projectedOf(keys) : model === GEOGRAPHIC ? geographicOf(keys) : "";
  if (typeof made !== "string") return asCrs(made);
  const list = [...keys].map(([key, value]) => `${key}=${String(value).slice(0, 80)}`);
  const reason = made === "" ? `a model of type ${model}` : made;
  warn(
    `its coordinate reference system is left out, for ${reason}; GeoKeys: ${list.slice(0, 60).join(", ")}`,
  );
  return {};
}

function asText(text: string): Record<string, JsonValue> {
  return { crs_wkt: text, spatial_ref: text };
}

function asCrs(crs: Crs): Record<string, JsonValue> {
  return { ...asText(crsWkt(crs)), ...gridMapping(crs) };
}

/** Returns the value of a key if it is a code of EPSG. */
function epsgCode(keys: GeoKeys, id: number): number | undefined {
  const code = numberKey(keys, id);
  return code !== undefined && code >= FIRST_EPSG && code < USER_DEFINED ? code : undefined;
}

function wktCitation(keys: GeoKeys): string | undefined {
  for (const id of [GEO_KEY.projectedCitation, GEO_KEY.citation]) {
    const text = textKey(keys, id);
    if (text?.startsWith(WKT_CITATION)) return text.slice(WKT_CITATION.length).trim();
  }
  return undefined;
}

/** Makes a projected system; a text says why it cannot be made. */
function projectedOf(keys: GeoKeys): ProjectedCrs | string {
  const base = geographicOf(keys);
  if (typeof base === "string") return base;
  const method = numberKey(keys, GEO_KEY.method);
  const projection = projectionOf(keys, method);
  if (projection === undefined) return `projection method ${method ?? "undefined"}`;
  const unit = unitOf(keys);
  if (unit === undefined) return `linear unit ${numberKey(keys, GEO_KEY.linearUnits)}`;
  const values = projection.parameters.map(({ keys: ids, fallback = 0 }) => {
    const id = ids.find((candidate) => numberKey(keys, candidate) !== undefined);
    return id === undefined ? fallback : (numberKey(keys, id) as number);
  });
  const isPolar = projection.wkt === "Polar_Stereographic";
  const direction = (values[0] as number) < 0 ? "NORTH" : "SOUTH";
  return {
    kind: "projected",
    name: textKey(keys, GEO_KEY.projectedCitation) ?? textKey(keys, GEO_KEY.citation) ?? "unnamed",
    base,
    projection,
    values,
    unit,
    ...(isPolar ? { axes: `AXIS["Easting",${direction}],AXIS["Northing",${direction}]` } : {}),
  };
}

function projectionOf(keys: GeoKeys, method: number | undefined): Projection | undefined {
  if (method === 7) {
    return numberKey(keys, 3078) === undefined ? PROJECTIONS.mercator1 : PROJECTIONS.mercator2;
  }
  if (method === 15) {
    const isAtPole = Math.abs(numberKey(keys, 3081) ?? 90) === 90;
    return isAtPole ? PROJECTIONS.polarStereographicA : PROJECTIONS.polarStereographicB;
  }
  return method === undefined ? undefined : METHODS.get(method);
}

function unitOf(keys: GeoKeys): ProjectedCrs["unit"] | undefined {
  const code = numberKey(keys, GEO_KEY.linearUnits) ?? 9001;
  const metres = numberKey(keys, GEO_KEY.linearUnitSize);
  return code === USER_DEFINED && metres !== undefined ? { name: "unknown", metres } : UNITS.get(code);
}

/** Makes a geographic system; a text says why it cannot be made. */
function geographicOf(keys: GeoKeys): GeographicCrs | string {
  const code = epsgCode(keys, GEO_KEY.geodeticCrs);
  if (code !== undefined)
    return knownGeographic(code) ?? `a projection of EPSG:${code}, which is not known here`;
  const meridian = numberKey(keys, GEO_KEY.primeMeridianLongitude) ?? 0;
  if (meridian !== 0 || ![undefined, 8901, USER_DEFINED].includes(numberKey(keys, GEO_KEY.primeMeridian))) {
    return "its prime meridian";
  }
  const unit = numberKey(keys, GEO_KEY.angularUnits) ?? 9102;
  if (unit !== 9102) return `angular unit ${unit}`;
  const names = citedNames(textKey(keys, GEO_KEY.geodeticCitation) ?? "");
  const ellipsoid = ellipsoidOf(keys, names.get("Ellipsoid") ?? "unknown");
  if (ellipsoid === undefined) return "its ellipsoid";
  return {
    kind: "geographic",
    name: names.get("GCS Name") ?? "unknown",
    datum: names.get("Datum") ?? "unknown",
    ellipsoid,
  };
}

function ellipsoidOf(keys: GeoKeys, name: string): Ellipsoid | undefined {
  const known = knownEllipsoid(numberKey(keys, GEO_KEY.ellipsoid) ?? 0);
  if (known !== undefined) return known;
  const semiMajorAxis = numberKey(keys, GEO_KEY.semiMajorAxis);
  if (semiMajorAxis === undefined || !(semiMajorAxis > 0)) return undefined;
  const minor = numberKey(keys, GEO_KEY.semiMinorAxis) ?? semiMajorAxis;
  const fromAxes = minor === semiMajorAxis ? 0 : semiMajorAxis / (semiMajorAxis - minor);
  const inverseFlattening = numberKey(keys, GEO_KEY.inverseFlattening) ?? fromAxes;
  return { name, semiMajorAxis, inverseFlattening };
}

/** Takes GDAL's citation apart: `GCS Name = unknown|Datum = D|`. A plain citation is a name. */
function citedNames(citation: string): ReadonlyMap<string, string> {
  if (!citation.includes(" = ")) return new Map(citation === "" ? [] : [["GCS Name", citation]]);
  return new Map(
    citation
      .split("|")
      .map((part) => part.split(" = ", 2))
      .filter((pair): pair is [string, string] => pair.length === 2),
  );
}
