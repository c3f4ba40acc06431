import type { JsonValue } from "../../json/json-value.js";
import { pythonFloat } from "../../json/stringify-json.js";
import type { Projection } from "./projections.js";

/** A figure of the Earth. */
export interface Ellipsoid {
  readonly name: string;
  /** In metres. */
  readonly semiMajorAxis: number;
  /** 0 for a sphere. */
  readonly inverseFlattening: number;
  /** EPSG's code. */
  readonly code?: number | undefined;
}

/** Latitudes and longitudes in degrees, from Greenwich. */
export interface GeographicCrs {
  readonly kind: "geographic";
  readonly name: string;
  readonly datum: string;
  readonly datumCode?: number | undefined;
  readonly ellipsoid: Ellipsoid;
  readonly code?: number | undefined;
}

/** A projection of a geographic system to a plane. */
export interface ProjectedCrs {
  readonly kind: "projected";
  readonly name: string;
  readonly base: GeographicCrs;
  readonly projection: Projection;
  /** In the order of the projection's parameters: degrees, or units of the system. */
  readonly values: readonly number[];
  readonly unit: { readonly name: string; readonly metres: number; readonly code?: number };
  /** Directions of both axes; by default east and north. */
  readonly axes?: string;
  /** Further elements of its WKT. */
  readonly extension?: string;
  readonly code?: number | undefined;
}

/** A coordinate reference system, as far as GeoTIFF's keys can say it without a database. */
export type Crs = GeographicCrs | ProjectedCrs;

/** Directions of the axes of most projections. */
const EAST_NORTH = 'AXIS["Easting",EAST],AXIS["Northing",NORTH]';
const LATITUDE_LONGITUDE = 'AXIS["Latitude",NORTH],AXIS["Longitude",EAST]';

/** Writes a system as GDAL writes it: WKT 1 (OGC 01-009, section 7). */
export function crsWkt(crs: Crs): string {
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
export function gridMapping(crs: Crs): Record<string, JsonValue> {
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
  const lists: Record<string, number[]> = { ...projection.cfConstants };
  for (const [index, { cf }] of projection.parameters.entries()) {
    if (cf !== undefined) lists[cf] = [...(lists[cf] ?? []), values[index] as number];
  }
  const parameters = Object.entries(lists).map(([key, list]): [string, JsonValue] => [
    key,
    list.length === 1 ? pythonFloat(list[0] as number) : list.map(pythonFloat),
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
