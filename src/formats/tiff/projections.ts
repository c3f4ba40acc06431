/** A projection method. */
export interface Projection {
  /** Name in WKT 1. */
  readonly wkt: string;
  /** Name in CF; undefined if pyproj has none for it. */
  readonly cf: string | undefined;
  /** `keys` are the GeoKeys that may have it: writers differ in which they use. */
  readonly parameters: readonly {
    readonly wkt: string;
    readonly keys: readonly number[];
    readonly cf?: string;
  }[];
}

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

const LATITUDE_KEYS = [3081, 3085, 3089];
const LONGITUDE_KEYS = [3095, 3080, 3084, 3088];

/** GeoKeys of parameters by their name in WKT 1: of the pole, the natural origin, the false one, and the centre. */
const PARAMETER_KEYS: Readonly<Record<string, readonly number[]>> = {
  latitude_of_origin: LATITUDE_KEYS,
  latitude_of_center: LATITUDE_KEYS,
  central_meridian: LONGITUDE_KEYS,
  longitude_of_center: LONGITUDE_KEYS,
  scale_factor: [3092, 3093],
  standard_parallel_1: [3078],
  standard_parallel_2: [3079],
  false_easting: [3082, 3086, 3090],
  false_northing: [3083, 3087, 3091],
};

/** Names of parameters in CF, as the table has them. */
const CF_NAMES: Readonly<Record<string, string>> = {
  latitude: "latitude_of_projection_origin",
  longitude: "longitude_of_projection_origin",
  meridian: "longitude_of_central_meridian",
  pole: "straight_vertical_longitude_from_pole",
  parallel: "standard_parallel",
  scale: "scale_factor_at_projection_origin",
  meridian_scale: "scale_factor_at_central_meridian",
  easting: "false_easting",
  northing: "false_northing",
};

const CENTRE = "latitude_of_center=latitude longitude_of_center=longitude";
const ORIGIN = "latitude_of_origin=latitude central_meridian=longitude";
const PARALLELS = "standard_parallel_1=parallel standard_parallel_2=parallel";

/**
 * Projections by code of ProjMethodGeoKey (OGC 19-008r4, annex C), with a letter if a key chooses: names in WKT 1 and in CF,
 * parameters in GDAL's order with their names in CF. A false origin follows.
 */
const PROJECTIONS: Readonly<Record<string, readonly [wkt: string, cf: string, parameters: string]>> = {
  1: [
    "Transverse_Mercator",
    "transverse_mercator",
    "latitude_of_origin=latitude central_meridian=meridian scale_factor=meridian_scale",
  ],
  "7a": ["Mercator_1SP", "mercator", "central_meridian=longitude scale_factor=scale"],
  "7b": ["Mercator_2SP", "mercator", "standard_parallel_1=parallel central_meridian=longitude"],
  8: [
    "Lambert_Conformal_Conic_2SP",
    "lambert_conformal_conic",
    `latitude_of_origin=latitude central_meridian=meridian ${PARALLELS}`,
  ],
  9: [
    "Lambert_Conformal_Conic_1SP",
    "lambert_conformal_conic",
    "latitude_of_origin=parallel central_meridian=meridian scale_factor",
  ],
  10: ["Lambert_Azimuthal_Equal_Area", "lambert_azimuthal_equal_area", CENTRE],
  11: [
    "Albers_Conic_Equal_Area",
    "albers_conical_equal_area",
    `latitude_of_center=latitude longitude_of_center=meridian ${PARALLELS}`,
  ],
  12: ["Azimuthal_Equidistant", "azimuthal_equidistant", CENTRE],
  14: ["Stereographic", "stereographic", `${ORIGIN} scale_factor=scale`],
  // With the scale at the pole, and with the parallel of true scale.
  "15a": [
    "Polar_Stereographic",
    "polar_stereographic",
    "latitude_of_origin=latitude central_meridian=pole scale_factor=scale",
  ],
  "15b": ["Polar_Stereographic", "polar_stereographic", "latitude_of_origin=parallel central_meridian=pole"],
  16: ["Oblique_Stereographic", "", "latitude_of_origin central_meridian scale_factor"],
  17: ["Equirectangular", "", "standard_parallel_1=parallel central_meridian"],
  21: ["Orthographic", "orthographic", ORIGIN],
  23: ["Robinson", "", "longitude_of_center"],
  24: ["Sinusoidal", "sinusoidal", "longitude_of_center=longitude"],
  28: [
    "Cylindrical_Equal_Area",
    "lambert_cylindrical_equal_area",
    "standard_parallel_1=parallel central_meridian=meridian",
  ],
};

/** Returns the projection of a row of the table; undefined if there is none. */
export function projectionOf(key: string): Projection | undefined {
  const row = PROJECTIONS[key];
  if (row === undefined) return undefined;
  const [wkt, cf, parameters] = row;
  const all = `${parameters} false_easting=easting false_northing=northing`.split(" ");
  return {
    wkt,
    cf: cf === "" ? undefined : cf,
    parameters: all.map((parameter) => {
      const [name = "", short = ""] = parameter.split("=");
      const known = CF_NAMES[short];
      return { wkt: name, keys: PARAMETER_KEYS[name]!, ...(known !== undefined && { cf: known }) };
    }),
  };
}

/** Ellipsoids by EPSG's code: name, semi-major axis, inverse flattening. */
const ELLIPSOIDS: Readonly<Record<number, readonly [string, number, number]>> = {
  7001: ["Airy 1830", 6377563.396, 299.3249646],
  7004: ["Bessel 1841", 6377397.155, 299.1528128],
  7008: ["Clarke 1866", 6378206.4, 294.978698213898],
  7019: ["GRS 1980", 6378137, 298.257222101],
  7022: ["International 1924", 6378388, 297],
  7024: ["Krassowsky 1940", 6378245, 298.3],
  7030: ["WGS 84", 6378137, 298.257223563],
  7043: ["WGS 72", 6378135, 298.26],
};

/** Geographic systems by EPSG's code: name, datum, its code, code of the ellipsoid. */
const KNOWN_GEOGRAPHIC: Readonly<Record<number, readonly [string, string, number, number]>> = {
  4258: ["ETRS89", "European_Terrestrial_Reference_System_1989", 6258, 7019],
  4267: ["NAD27", "North_American_Datum_1927", 6267, 7008],
  4269: ["NAD83", "North_American_Datum_1983", 6269, 7019],
  4322: ["WGS 72", "World_Geodetic_System_1972", 6322, 7043],
  4326: ["WGS 84", "WGS_1984", 6326, 7030],
};

/** Systems of UTM zones: code of zone 0, code of the geographic system, first and last zone, hemisphere. */
const UTM: readonly (readonly [number, number, number, number, "N" | "S"])[] = [
  [25_800, 4258, 28, 37, "N"],
  [26_700, 4267, 1, 22, "N"],
  [26_900, 4269, 1, 23, "N"],
  [32_200, 4322, 1, 60, "N"],
  [32_600, 4326, 1, 60, "N"],
  [32_700, 4326, 1, 60, "S"],
];

const METRE = { name: "metre", metres: 1, code: 9001 };
const SOUTHWARDS = 'AXIS["Easting",SOUTH],AXIS["Northing",SOUTH]';
const NORTHWARDS = 'AXIS["Easting",NORTH],AXIS["Northing",NORTH]';

const NORTH_EAST = 'AXIS["Northing",NORTH],AXIS["Easting",EAST]';
const WEB_MERCATOR =
  'EXTENSION["PROJ4","+proj=merc +a=6378137 +b=6378137 +lat_ts=0 +lon_0=0 +x_0=0 +y_0=0 +k=1 +units=m +nadgrids=@null +wktext +no_defs"]';

/** What a projected system has besides name, geographic system, projection and values. */
type More = Pick<ProjectedCrs, "axes" | "extension">;

/** Projected systems that many images have, by EPSG's code: name, geographic system, row of the projection and its values. */
const KNOWN_PROJECTED: Readonly<Record<number, readonly [string, number, string, readonly number[], More?]>> =
  {
    3031: ["WGS 84 / Antarctic Polar Stereographic", 4326, "15b", [-71, 0, 0, 0], { axes: NORTHWARDS }],
    3035: ["ETRS89-extended / LAEA Europe", 4258, "10", [52, 10, 4321000, 3210000], { axes: NORTH_EAST }],
    3395: ["WGS 84 / World Mercator", 4326, "7a", [0, 1, 0, 0]],
    3413: [
      "WGS 84 / NSIDC Sea Ice Polar Stereographic North",
      4326,
      "15b",
      [70, -45, 0, 0],
      { axes: SOUTHWARDS },
    ],
    3857: ["WGS 84 / Pseudo-Mercator", 4326, "7a", [0, 1, 0, 0], { extension: WEB_MERCATOR }],
    5070: ["NAD83 / Conus Albers", 4269, "11", [23, -96, 29.5, 45.5, 0, 0]],
    6933: ["WGS 84 / NSIDC EASE-Grid 2.0 Global", 4326, "28", [30, 0, 0, 0]],
  };

/** Returns an ellipsoid by EPSG's code; undefined if it is not known here. */
export function knownEllipsoid(code: number): Ellipsoid | undefined {
  const found = ELLIPSOIDS[code];
  if (found === undefined) return undefined;
  const [name, semiMajorAxis, inverseFlattening] = found;
  return { name, semiMajorAxis, inverseFlattening, code };
}

/** Returns a geographic system by EPSG's code; undefined if it is not known here. */
export function knownGeographic(code: number): GeographicCrs | undefined {
  const found = KNOWN_GEOGRAPHIC[code];
  if (found === undefined) return undefined;
  const [name, datum, datumCode, figure] = found;
  const ellipsoid = knownEllipsoid(figure) as Ellipsoid;
  return { kind: "geographic", name, datum, datumCode, ellipsoid, code };
}

/** Returns a system by EPSG's code, if it is one of the few hundred that most images have. */
export function knownCrs(code: number): Crs | undefined {
  const row = KNOWN_PROJECTED[code];
  return row === undefined ? (knownGeographic(code) ?? utmZone(code)) : projected(code, ...row);
}

function utmZone(code: number): ProjectedCrs | undefined {
  for (const [zero, geographic, first, last, hemisphere] of UTM) {
    const zone = code - zero;
    if (zone < first || zone > last) continue;
    const name = `${KNOWN_GEOGRAPHIC[geographic]![0]} / UTM zone ${zone}${hemisphere}`;
    const values = [0, 6 * zone - 183, 0.9996, 500_000, hemisphere === "N" ? 0 : 10_000_000];
    return projected(code, name, geographic, "1", values);
  }
  return undefined;
}

function projected(
  code: number,
  name: string,
  geographic: number,
  row: string,
  values: readonly number[],
  more: More = {},
): ProjectedCrs {
  const base = knownGeographic(geographic) as GeographicCrs;
  const projection = projectionOf(row) as Projection;
  return { kind: "projected", name, base, projection, values, unit: METRE, ...more, code };
}
