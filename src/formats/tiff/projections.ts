/** A parameter of a projection. */
interface Parameter {
  /** Name in WKT 1. */
  readonly wkt: string;
  /** GeoKeys that may have it: writers differ in which they use. */
  readonly keys: readonly number[];
  /** Name in CF; undefined if CF has none. */
  readonly cf?: string | undefined;
  /** Default: 0. */
  readonly fallback?: number;
}

/** A projection method. */
export interface Projection {
  /** Name in WKT 1. */
  readonly wkt: string;
  /** Name in CF; undefined if pyproj has none for it. */
  readonly cf?: string;
  readonly parameters: readonly Parameter[];
  /** Attributes that CF wants besides the parameters. */
  readonly cfConstants?: Readonly<Record<string, number[]>>;
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

/** Keys of the origin, by what they are: natural, false, and of the centre. */
const LATITUDE_KEYS = [3081, 3085, 3089];
const LONGITUDE_KEYS = [3080, 3084, 3088];
const SCALE_KEYS = [3092, 3093];

const CF_LATITUDE = "latitude_of_projection_origin";
const CF_LONGITUDE = "longitude_of_projection_origin";
const CF_MERIDIAN = "longitude_of_central_meridian";
const CF_SCALE = "scale_factor_at_projection_origin";

const FALSE_ORIGIN: readonly Parameter[] = [
  { wkt: "false_easting", keys: [3082, 3086, 3090], cf: "false_easting" },
  { wkt: "false_northing", keys: [3083, 3087, 3091], cf: "false_northing" },
];
const FIRST_PARALLEL: Parameter = { wkt: "standard_parallel_1", keys: [3078], cf: "standard_parallel" };
const SECOND_PARALLEL: Parameter = { wkt: "standard_parallel_2", keys: [3079], cf: "standard_parallel" };

function latitude(wkt: string, cf?: string): Parameter {
  return { wkt, keys: LATITUDE_KEYS, cf };
}

function longitude(wkt: string, cf?: string): Parameter {
  return { wkt, keys: LONGITUDE_KEYS, cf };
}

function scale(cf?: string): Parameter {
  return { wkt: "scale_factor", keys: SCALE_KEYS, cf, fallback: 1 };
}

function projection(wkt: string, cf: string | undefined, ...parameters: readonly Parameter[]): Projection {
  return { wkt, ...(cf === undefined ? {} : { cf }), parameters: [...parameters, ...FALSE_ORIGIN] };
}

/** Projections by the name that is used here, with the parameters in GDAL's order. */
export const PROJECTIONS = {
  transverseMercator: projection(
    "Transverse_Mercator",
    "transverse_mercator",
    latitude("latitude_of_origin", CF_LATITUDE),
    longitude("central_meridian", CF_MERIDIAN),
    scale("scale_factor_at_central_meridian"),
  ),
  mercator1: {
    ...projection("Mercator_1SP", "mercator", longitude("central_meridian", CF_LONGITUDE), scale(CF_SCALE)),
    cfConstants: { standard_parallel: [0] },
  },
  mercator2: projection(
    "Mercator_2SP",
    "mercator",
    FIRST_PARALLEL,
    longitude("central_meridian", CF_LONGITUDE),
  ),
  lambertConic2: projection(
    "Lambert_Conformal_Conic_2SP",
    "lambert_conformal_conic",
    latitude("latitude_of_origin", CF_LATITUDE),
    longitude("central_meridian", CF_MERIDIAN),
    FIRST_PARALLEL,
    SECOND_PARALLEL,
  ),
  lambertConic1: projection(
    "Lambert_Conformal_Conic_1SP",
    "lambert_conformal_conic",
    latitude("latitude_of_origin", "standard_parallel"),
    longitude("central_meridian", CF_MERIDIAN),
    scale(),
  ),
  lambertAzimuthal: projection(
    "Lambert_Azimuthal_Equal_Area",
    "lambert_azimuthal_equal_area",
    latitude("latitude_of_center", CF_LATITUDE),
    longitude("longitude_of_center", CF_LONGITUDE),
  ),
  albers: projection(
    "Albers_Conic_Equal_Area",
    "albers_conical_equal_area",
    latitude("latitude_of_center", CF_LATITUDE),
    longitude("longitude_of_center", CF_MERIDIAN),
    FIRST_PARALLEL,
    SECOND_PARALLEL,
  ),
  azimuthalEquidistant: projection(
    "Azimuthal_Equidistant",
    "azimuthal_equidistant",
    latitude("latitude_of_center", CF_LATITUDE),
    longitude("longitude_of_center", CF_LONGITUDE),
  ),
  stereographic: projection(
    "Stereographic",
    "stereographic",
    latitude("latitude_of_origin", CF_LATITUDE),
    longitude("central_meridian", CF_LONGITUDE),
    scale(CF_SCALE),
  ),
  /** With its parallel of true scale. */
  polarStereographicB: projection(
    "Polar_Stereographic",
    "polar_stereographic",
    latitude("latitude_of_origin", "standard_parallel"),
    { wkt: "central_meridian", keys: [3095, ...LONGITUDE_KEYS], cf: "straight_vertical_longitude_from_pole" },
  ),
  /** With the scale at the pole. */
  polarStereographicA: projection(
    "Polar_Stereographic",
    "polar_stereographic",
    latitude("latitude_of_origin", CF_LATITUDE),
    { wkt: "central_meridian", keys: [3095, ...LONGITUDE_KEYS], cf: "straight_vertical_longitude_from_pole" },
    scale(CF_SCALE),
  ),
  obliqueStereographic: projection(
    "Oblique_Stereographic",
    undefined,
    latitude("latitude_of_origin"),
    longitude("central_meridian"),
    scale(),
  ),
  equirectangular: projection("Equirectangular", undefined, FIRST_PARALLEL, longitude("central_meridian")),
  orthographic: projection(
    "Orthographic",
    "orthographic",
    latitude("latitude_of_origin", CF_LATITUDE),
    longitude("central_meridian", CF_LONGITUDE),
  ),
  robinson: projection("Robinson", undefined, longitude("longitude_of_center")),
  sinusoidal: projection("Sinusoidal", "sinusoidal", longitude("longitude_of_center", CF_LONGITUDE)),
  cylindricalEqualArea: projection(
    "Cylindrical_Equal_Area",
    "lambert_cylindrical_equal_area",
    FIRST_PARALLEL,
    longitude("central_meridian", CF_MERIDIAN),
  ),
} as const satisfies Record<string, Projection>;

/** Projections by code of the key ProjMethodGeoKey (OGC 19-008r4, annex C); those that need a choice are made in `crs-from-keys`. */
export const METHODS: ReadonlyMap<number, Projection> = new Map<number, Projection>([
  [1, PROJECTIONS.transverseMercator],
  [8, PROJECTIONS.lambertConic2],
  [9, PROJECTIONS.lambertConic1],
  [10, PROJECTIONS.lambertAzimuthal],
  [11, PROJECTIONS.albers],
  [12, PROJECTIONS.azimuthalEquidistant],
  [14, PROJECTIONS.stereographic],
  [16, PROJECTIONS.obliqueStereographic],
  [17, PROJECTIONS.equirectangular],
  [21, PROJECTIONS.orthographic],
  [23, PROJECTIONS.robinson],
  [24, PROJECTIONS.sinusoidal],
  [28, PROJECTIONS.cylindricalEqualArea],
]);

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

type Known = readonly [
  string,
  number,
  Projection,
  readonly number[],
  { readonly axes?: string; readonly extension?: string }?,
];

/** Projected systems that many images have, by EPSG's code: name, geographic system, projection and its values. */
const KNOWN_PROJECTED: Readonly<Record<number, Known>> = {
  3031: [
    "WGS 84 / Antarctic Polar Stereographic",
    4326,
    PROJECTIONS.polarStereographicB,
    [-71, 0, 0, 0],
    { axes: NORTHWARDS },
  ],
  3035: [
    "ETRS89-extended / LAEA Europe",
    4258,
    PROJECTIONS.lambertAzimuthal,
    [52, 10, 4321000, 3210000],
    { axes: 'AXIS["Northing",NORTH],AXIS["Easting",EAST]' },
  ],
  3395: ["WGS 84 / World Mercator", 4326, PROJECTIONS.mercator1, [0, 1, 0, 0]],
  3413: [
    "WGS 84 / NSIDC Sea Ice Polar Stereographic North",
    4326,
    PROJECTIONS.polarStereographicB,
    [70, -45, 0, 0],
    { axes: SOUTHWARDS },
  ],
  3857: [
    "WGS 84 / Pseudo-Mercator",
    4326,
    PROJECTIONS.mercator1,
    [0, 1, 0, 0],
    {
      extension:
        'EXTENSION["PROJ4","+proj=merc +a=6378137 +b=6378137 +lat_ts=0 +lon_0=0 +x_0=0 +y_0=0 +k=1 +units=m +nadgrids=@null +wktext +no_defs"]',
    },
  ],
  5070: ["NAD83 / Conus Albers", 4269, PROJECTIONS.albers, [23, -96, 29.5, 45.5, 0, 0]],
  6933: ["WGS 84 / NSIDC EASE-Grid 2.0 Global", 4326, PROJECTIONS.cylindricalEqualArea, [30, 0, 0, 0]],
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
  const [name, datum, datumCode, ellipsoid] = found;
  return {
    kind: "geographic",
    name,
    datum,
    datumCode,
    ellipsoid: knownEllipsoid(ellipsoid) as Ellipsoid,
    code,
  };
}

/** Returns a system by EPSG's code, if it is one of the few hundred that most images have. */
export function knownCrs(code: number): Crs | undefined {
  return knownGeographic(code) ?? utmZone(code) ?? knownProjected(code);
}

function utmZone(code: number): ProjectedCrs | undefined {
  for (const [zero, geographic, first, last, hemisphere] of UTM) {
    const zone = code - zero;
    if (zone < first || zone > last) continue;
    const base = knownGeographic(geographic) as GeographicCrs;
    return {
      kind: "projected",
      name: `${base.name} / UTM zone ${zone}${hemisphere}`,
      base,
      projection: PROJECTIONS.transverseMercator,
      values: [0, 6 * zone - 183, 0.9996, 500_000, hemisphere === "N" ? 0 : 10_000_000],
      unit: METRE,
      code,
    };
  }
  return undefined;
}

function knownProjected(code: number): ProjectedCrs | undefined {
  const found = KNOWN_PROJECTED[code];
  if (found === undefined) return undefined;
  const [name, geographic, projection, values, rest] = found;
  const base = knownGeographic(geographic) as GeographicCrs;
  return { kind: "projected", name, base, projection, values, unit: METRE, ...rest, code };
}
