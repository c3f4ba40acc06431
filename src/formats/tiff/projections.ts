/** A parameter of a projection. */
export interface Parameter {
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
