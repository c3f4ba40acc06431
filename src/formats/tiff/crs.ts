import type { JsonValue } from "../../json/json-value.js";
import { pythonFloat } from "../../json/stringify-json.js";
import { TAG, type TiffDirectory } from "./directories.js";
import {
  type Crs,
  type Ellipsoid,
  type GeographicCrs,
  knownCrs,
  knownEllipsoid,
  knownGeographic,
  type ProjectedCrs,
  projectionOf,
} from "./projections.js";

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
  const projection = projectionOf(`${method}${choiceOf(keys, method)}`);
  if (projection === undefined) return `projection method ${method ?? "undefined"}`;
  const unit = unitOf(keys);
  if (unit === undefined) return `linear unit ${numberKey(keys, GEO_KEY.linearUnits)}`;
  const values = projection.parameters.map(({ wkt, keys: ids }) => {
    const found = ids.map((id) => numberKey(keys, id)).find((value) => value !== undefined);
    return found ?? (wkt === "scale_factor" ? 1 : 0);
  });
  const isPolar = projection.wkt === "Polar_Stereographic";
  const direction = values[0]! < 0 ? "NORTH" : "SOUTH";
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

/** Returns the letter of the row of a projection that has two: of Mercator's, and of polar stereographic ones. */
function choiceOf(keys: GeoKeys, method: number | undefined): string {
  if (method === 7) return numberKey(keys, 3078) === undefined ? "a" : "b";
  if (method === 15) return Math.abs(numberKey(keys, 3081) ?? 90) === 90 ? "a" : "b";
  return "";
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

/** GeoKeys by id: a short, a double, or a text without the bar at its end. */
type GeoKeys = ReadonlyMap<number, number | string>;

/** Ids of GeoKeys (OGC 19-008r4, annex B) that the reader uses. */
export const GEO_KEY = {
  modelType: 1024,
  rasterType: 1025,
  citation: 1026,
  geodeticCrs: 2048,
  geodeticCitation: 2049,
  datum: 2050,
  primeMeridian: 2051,
  angularUnits: 2054,
  ellipsoid: 2056,
  semiMajorAxis: 2057,
  semiMinorAxis: 2058,
  inverseFlattening: 2059,
  primeMeridianLongitude: 2061,
  projectedCrs: 3072,
  projectedCitation: 3073,
  method: 3075,
  linearUnits: 3076,
  linearUnitSize: 3077,
  verticalCrs: 4096,
} as const;

/** "User-defined" as the value of a key: the keys around it say what is meant. */
const USER_DEFINED = 32_767;

/** Most keys, and longest text of a key: the specification has fewer than 60 keys. */
const MAX_KEYS = 1000;
const MAX_TEXT_LENGTH = 16_384;

/** Reads the key directory (OGC 19-008r4, section 7.1). Keys whose values are not there are left out. */
export function readGeoKeys({ numbers, texts }: TiffDirectory): GeoKeys {
  const keys = new Map<number, number | string>();
  const directory = (numbers.get(TAG.geoKeyDirectory) ?? []).slice(0, 4 * (MAX_KEYS + 1));
  const doubles = numbers.get(TAG.geoDoubleParams) ?? [];
  const text = texts.get(TAG.geoAsciiParams) ?? "";
  for (let at = 4; at + 3 < directory.length; at += 4) {
    const [id, place, count, value] = directory.slice(at, at + 4) as [number, number, number, number];
    if (place === 0) keys.set(id, value);
    else if (place === TAG.geoAsciiParams) {
      const part = text.slice(value, value + Math.min(count, MAX_TEXT_LENGTH));
      keys.set(id, part.replace(/\|$/, "").trim());
    } else if (place === TAG.geoDoubleParams && doubles[value] !== undefined) keys.set(id, doubles[value]);
  }
  return keys;
}

/** Returns the value of a key that is a number. */
function numberKey(keys: GeoKeys, id: number): number | undefined {
  const value = keys.get(id);
  return typeof value === "number" ? value : undefined;
}

/** Returns the value of a key that is a text; undefined if it is empty. */
function textKey(keys: GeoKeys, id: number): string | undefined {
  const value = keys.get(id);
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** Directions of the axes of most projections. */
const EAST_NORTH = 'AXIS["Easting",EAST],AXIS["Northing",NORTH]';
const LATITUDE_LONGITUDE = 'AXIS["Latitude",NORTH],AXIS["Longitude",EAST]';

/** Writes a system as GDAL writes it: WKT 1 (OGC 01-009, section 7). */
function crsWkt(crs: Crs): string {
  if (crs.kind === "geographic") return geographicWkt(crs, `,${LATITUDE_LONGITUDE}`);
  const { name, base, projection, values, unit, axes = EAST_NORTH, extension, code } = crs;
  const parameters = projection.parameters.map(
    ({ wkt }, index) => `PARAMETER["${wkt}",${digits(values[index])}]`,
  );
  const parts = [
    geographicWkt(base, ""),
    `PROJECTION["${projection.wkt}"]`,
    ...parameters,
    `UNIT["${unit.name}",${digits(unit.metres)}${authority(unit.code)}]`,
    axes,
    ...(extension === undefined ? [] : [extension]),
  ];
  return `PROJCS[${quoted(name)},${parts.join(",")}${authority(code)}]`;
}

function geographicWkt(crs: GeographicCrs, axes: string): string {
  const { name, datum, datumCode, ellipsoid, code } = crs;
  const { semiMajorAxis, inverseFlattening } = ellipsoid;
  const figure = `${quoted(ellipsoid.name)},${digits(semiMajorAxis)},${digits(inverseFlattening)}`;
  const spheroid = `SPHEROID[${figure}${authority(ellipsoid.code)}]`;
  const unit = 'UNIT["degree",0.0174532925199433,AUTHORITY["EPSG","9122"]]';
  const greenwich = 'PRIMEM["Greenwich",0,AUTHORITY["EPSG","8901"]]';
  const frame = `DATUM[${quoted(datum)},${spheroid}${authority(datumCode)}]`;
  return `GEOGCS[${quoted(name)},${frame},${greenwich},${unit}${axes}${authority(code)}]`;
}

/** Makes the attributes of a CF grid mapping (CF conventions 1.10, appendix F) as pyproj makes them; none for projections CF lacks. */
function gridMapping(crs: Crs): Record<string, JsonValue> {
  const base = crs.kind === "geographic" ? crs : crs.base;
  const { semiMajorAxis, inverseFlattening, name } = base.ellipsoid;
  const flattening = inverseFlattening === 0 ? 0 : 1 / inverseFlattening;
  const shared = {
    semi_major_axis: pythonFloat(semiMajorAxis),
    semi_minor_axis: pythonFloat(semiMajorAxis * (1 - flattening)),
    inverse_flattening: pythonFloat(inverseFlattening),
    reference_ellipsoid_name: name,
    longitude_of_prime_meridian: pythonFloat(0),
    prime_meridian_name: "Greenwich",
    geographic_crs_name: base.name,
  };
  if (crs.kind === "geographic") return { ...shared, grid_mapping_name: "latitude_longitude" };
  const { projection, values } = crs;
  if (projection.cf === undefined || crs.extension !== undefined) return {};
  // CF wants this of a projection that has it by its name.
  const lists: Record<string, number[]> = projection.wkt === "Mercator_1SP" ? { standard_parallel: [0] } : {};
  for (const [index, { cf }] of projection.parameters.entries()) {
    if (cf !== undefined) lists[cf] = [...(lists[cf] ?? []), values[index]!];
  }
  const parameters = Object.entries(lists).map(([key, list]): [string, JsonValue] => [
    key,
    list.length === 1 ? pythonFloat(list[0]!) : list.map(pythonFloat),
  ]);
  return {
    ...shared,
    horizontal_datum_name: longDatumName(base.datum),
    projected_crs_name: crs.name,
    grid_mapping_name: projection.cf,
    ...Object.fromEntries(parameters),
  };
}

/** PROJ's name of a datum for the one that WKT 1 has. */
function longDatumName(datum: string): string {
  return datum === "WGS_1984" ? "World Geodetic System 1984" : datum.replaceAll("_", " ");
}

/** A number with the 15 digits that GDAL writes. */
function digits(value = 0): string {
  return String(Number(value.toPrecision(15)));
}

function authority(code: number | undefined): string {
  return code === undefined ? "" : `,AUTHORITY["EPSG","${code}"]`;
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', "'")}"`;
}
