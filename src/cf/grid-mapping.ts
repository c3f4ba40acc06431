import { type JsonObject, type JsonValue, toNumbers } from "../json/json-value.js";

/**
 * How the coordinates x and y of a grid lie on the Earth: rows and columns of an image without a place, degrees of longitude and
 * latitude, or metres of a projection.
 */
export type GridReference = "pixels" | "degrees" | GridProjection;

/** A projection, and its units. */
export interface GridProjection {
  /** Definition for proj4: `+proj=…`, or WKT. */
  readonly definition: string;
  /** Units of the definition per unit of the coordinates: 1000 for kilometres, the height of a satellite for radians. */
  readonly scale: number;
}

const ORIGIN = "lat_0=latitude_of_projection_origin lon_0=longitude_of_projection_origin";
const CONIC = "lat_0=latitude_of_projection_origin lon_0=longitude_of_central_meridian";
const POLE_SCALE = "k_0=scale_factor_at_projection_origin";
const MERIDIAN = "lon_0=longitude_of_projection_origin lon_0=longitude_of_central_meridian";

/** Names of projections in proj4 and of their parameters, by CF's names (CF conventions 1.11, appendix F). */
const PROJECTIONS: Readonly<Record<string, string>> = {
  albers_conical_equal_area: `aea ${CONIC}`,
  azimuthal_equidistant: `aeqd ${ORIGIN}`,
  geostationary: `geos ${MERIDIAN} h=perspective_point_height`,
  lambert_azimuthal_equal_area: `laea ${ORIGIN}`,
  lambert_conformal_conic: `lcc ${CONIC}`,
  lambert_cylindrical_equal_area: `cea ${MERIDIAN} lat_ts=standard_parallel`,
  mercator: `merc ${MERIDIAN} lat_ts=standard_parallel ${POLE_SCALE}`,
  oblique_mercator: `omerc lat_0=latitude_of_projection_origin lonc=longitude_of_projection_origin alpha=azimuth_of_central_line ${POLE_SCALE}`,
  orthographic: `ortho ${ORIGIN}`,
  polar_stereographic: `stere ${ORIGIN} lon_0=straight_vertical_longitude_from_pole lat_ts=standard_parallel ${POLE_SCALE}`,
  sinusoidal: `sinu ${MERIDIAN}`,
  stereographic: `stere ${ORIGIN} ${POLE_SCALE}`,
  transverse_mercator: `tmerc ${CONIC} k_0=scale_factor_at_central_meridian`,
  vertical_perspective: `tpers ${ORIGIN} h=perspective_point_height tilt=tilt azi=azimuth`,
};

/** Metres per unit of length, by UDUNITS names. */
const METRES: readonly (readonly [RegExp, number])[] = [
  [/^(?:m|met(?:re|er)s?)$/i, 1],
  [/^(?:km|kilomet(?:re|er)s?)$/i, 1000],
  [/^(?:ft|feet|foot)$/i, 0.3048],
  [/^(?:us[-_ ]?(?:survey[-_ ])?(?:ft|feet|foot))$/i, 1200 / 3937],
];
const RADIANS = /^(?:rad|radians?)$/i;
const DEGREES = /^deg(?:rees?)?(?:_[a-z]+)?$/i;

/**
 * Returns how a grid lies on the Earth, by the attributes of its CF grid mapping, a `crs_wkt`, a text for proj4 or a code of EPSG.
 * Undefined if they do not say it, or say it in a way that is not known here.
 * @param units Units of the coordinate x; those of the system are taken if it has none.
 */
export function gridReferenceOf(attrs: JsonObject, units?: unknown): GridReference | undefined {
  const texts = DEFINITIONS.flatMap((key) => {
    const value = attrs[key];
    return typeof value === "string" ? [value.trim()] : numbersOf(value).map(String);
  });
  const wkt = texts.find((text) => text.includes("["));
  const { grid_mapping_name: name } = attrs;
  if (name === "latitude_longitude") return asDegrees(units);
  if (name === "rotated_latitude_longitude") return rotatedPole(attrs, units);
  const known = typeof name === "string" ? cfDefinition(name, attrs) : undefined;
  if (known !== undefined) {
    const height = numberOf(attrs.perspective_point_height);
    const scale = metresOf(units, height) ?? (units === undefined ? metresOfWkt(wkt) : undefined);
    return scale === undefined ? undefined : { definition: known, scale };
  }
  for (const text of texts) {
    const found = referenceOfText(text, units);
    if (found !== undefined) return found;
  }
  return isPixelTransform(attrs.GeoTransform) && texts.length === 0 ? "pixels" : undefined;
}

/** Attributes that define a system by themselves, as text or as a code of EPSG. */
const DEFINITIONS = [
  "crs_wkt",
  "spatial_ref",
  "proj4",
  "proj4_string",
  "proj4text",
  "proj4_params",
  "proj4string",
  "esri_pe_string",
  "proj:wkt2",
  "proj:code",
  "proj:epsg",
  "epsg_code",
  "epsg",
  "EPSG",
  "EPSG_code",
  "spatial_epsg",
  "srid",
  "crs",
];

/** Writes the definition of a projection that has a name in CF; undefined if that is not known here. */
function cfDefinition(name: string, attrs: JsonObject): string | undefined {
  const row = Object.hasOwn(PROJECTIONS, name) ? PROJECTIONS[name] : undefined;
  if (row === undefined) return undefined;
  const [proj = "", ...parameters] = row.split(" ");
  const values = new Map<string, number>([["lon_0", 0]]);
  for (const parameter of parameters) {
    const [key = "", attribute = ""] = parameter.split("=");
    const value = numberOf(attrs[attribute]);
    if (value !== undefined) values.set(key, value);
  }
  const parallels = numbersOf(attrs.standard_parallel);
  if (proj === "lcc" || proj === "aea") {
    const [first = 0, second = first] = parallels;
    values.set("lat_1", first).set("lat_2", second);
    // A cone that touches the Earth along one parallel has its origin there.
    if (!values.has("lat_0")) values.set("lat_0", first);
  }
  if (name === "polar_stereographic") {
    const side = values.get("lat_0") ?? parallels[0] ?? 90;
    values.set("lat_0", side < 0 ? -90 : 90);
    if (values.has("lat_ts")) values.delete("k_0");
  }
  if (parameters.includes("h=perspective_point_height") && !values.has("h")) return undefined;
  const sweep = proj === "geos" ? ` +sweep=${sweepAxis(attrs)}` : "";
  if (proj === "omerc") values.delete("lon_0");
  const sphere = / \+a=(\S+) \+b=\1$/;
  // proj4 turns places south of the origin over in a transverse Mercator of a sphere: an ellipsoid has no such fault.
  const figure = figureOf(attrs).replace(sphere, proj === "tmerc" ? " +a=$1 +rf=1e9" : "$&");
  const written = Array.from(values, ([key, value]) => ` +${key}=${value}`).join("");
  return `+proj=${proj}${written}${sweep}${falseOrigin(attrs)}${figure} +no_defs`;
}

function sweepAxis({ sweep_angle_axis: sweep, fixed_angle_axis: fixed }: JsonObject): "x" | "y" {
  if (sweep === "x" || sweep === "y") return sweep;
  return fixed === "y" ? "x" : "y";
}

function falseOrigin({ false_easting, false_northing }: JsonObject): string {
  return ` +x_0=${numberOf(false_easting) ?? 0} +y_0=${numberOf(false_northing) ?? 0}`;
}

/** Writes the figure of the Earth; WGS 84 if the mapping has none, as PROJ does. */
function figureOf(attrs: JsonObject): string {
  const radius = numberOf(attrs.earth_radius);
  const major = numberOf(attrs.semi_major_axis) ?? radius;
  if (major === undefined || !(major > 0)) return " +datum=WGS84";
  const minor = numberOf(attrs.semi_minor_axis);
  const inverse = numberOf(attrs.inverse_flattening);
  if (inverse !== undefined && inverse > 0) return ` +a=${major} +rf=${inverse}`;
  return ` +a=${major} +b=${minor !== undefined && minor > 0 ? minor : major}`;
}

/** A grid whose pole is moved: its coordinates are degrees, as those of proj4's `ob_tran`. */
function rotatedPole(attrs: JsonObject, units: unknown): GridReference | undefined {
  const latitude = numberOf(attrs.grid_north_pole_latitude);
  const longitude = numberOf(attrs.grid_north_pole_longitude);
  if (asDegrees(units) === undefined || latitude === undefined || longitude === undefined) return undefined;
  const turn = numberOf(attrs.north_pole_grid_longitude) ?? 0;
  const definition = `+proj=ob_tran +o_proj=longlat +o_lon_p=${turn} +o_lat_p=${latitude} +lon_0=${180 + longitude} +a=6371229 +b=6371229 +no_defs`;
  return { definition, scale: 1 };
}

function asDegrees(units: unknown): "degrees" | undefined {
  return units === undefined || (typeof units === "string" && DEGREES.test(units)) ? "degrees" : undefined;
}

/** Reads a definition as text: WKT, one for proj4, or a code of EPSG such as `EPSG:32633`. */
function referenceOfText(text: string, units: unknown): GridReference | undefined {
  if (text.includes("[")) {
    if (!/\b(?:PROJCS|PROJCRS|PROJECTEDCRS)\s*\[/i.test(text))
      return /^\s*(?:GEOG|GEOD|COMP|BOUND)/i.test(text) && !/DERIVINGCONVERSION/i.test(text)
        ? asDegrees(units)
        : undefined;
    const scale = units === undefined ? 1 : (metresOf(units) ?? Number.NaN) / metresOfWkt(text);
    return Number.isNaN(scale) ? undefined : { definition: text, scale };
  }
  if (/\+proj=/.test(text)) return referenceOfProj4(text, units);
  const code = /^(?:\+init=)?(?:urn:ogc:def:crs:)?(?:epsg:)?:?(\d{4,6})$/i.exec(text)?.[1];
  if (code === undefined) return undefined;
  const known = epsgDefinition(Number(code));
  if (known === undefined) return undefined;
  return known === "degrees" ? asDegrees(units) : referenceOfProj4(known, units);
}

function referenceOfProj4(text: string, units: unknown): GridReference | undefined {
  const parameter = (name: string) => new RegExp(`\\+${name}=(\\S+)`).exec(text)?.[1];
  if (/^(?:lat|lon)/.test(parameter("proj") ?? "")) return asDegrees(units);
  const height = numberOf(Number(parameter("h")));
  const own = numberOf(Number(parameter("to_meter"))) ?? metresOf(parameter("units")) ?? 1;
  const scale = units === undefined ? own : metresOf(units, height);
  const definition = text
    .replace(/\+(?:units|to_meter)=\S+\s*/g, "")
    .replace(/\+R=(\S+)/, "+a=$1 +b=$1")
    // Some projections of proj4 have no place without them.
    .replace(/^(?!.*\+x_0=)/, "+x_0=0 ")
    .replace(/^(?!.*\+y_0=)/, "+y_0=0 ")
    .trim();
  return scale === undefined ? undefined : { definition, scale };
}

/** Systems that many grids have, by EPSG's code: what proj4 calls them. WGS 84 unless a figure is named. */
const EPSG: Readonly<Record<number, string>> = {
  3031: "+proj=stere +lat_0=-90 +lat_ts=-71 +lon_0=0",
  3035: "+proj=laea +lat_0=52 +lon_0=10 +x_0=4321000 +y_0=3210000 +ellps=GRS80",
  3395: "+proj=merc +lon_0=0 +k_0=1",
  3408: "+proj=laea +lat_0=90 +lon_0=0 +a=6371228 +b=6371228",
  3409: "+proj=laea +lat_0=-90 +lon_0=0 +a=6371228 +b=6371228",
  3410: "+proj=cea +lat_ts=30 +lon_0=0 +a=6371228 +b=6371228",
  3411: "+proj=stere +lat_0=90 +lat_ts=70 +lon_0=-45 +a=6378273 +b=6356889.449",
  3412: "+proj=stere +lat_0=-90 +lat_ts=-70 +lon_0=0 +a=6378273 +b=6356889.449",
  3413: "+proj=stere +lat_0=90 +lat_ts=70 +lon_0=-45",
  3575: "+proj=laea +lat_0=90 +lon_0=10",
  3857: "+proj=merc +a=6378137 +b=6378137 +lat_ts=0 +lon_0=0 +k_0=1",
  3976: "+proj=stere +lat_0=-90 +lat_ts=-70 +lon_0=0",
  3995: "+proj=stere +lat_0=90 +lat_ts=71 +lon_0=0",
  3996: "+proj=stere +lat_0=90 +lat_ts=75 +lon_0=0",
  5041: "+proj=stere +lat_0=90 +lon_0=0 +k_0=0.994 +x_0=2000000 +y_0=2000000",
  5042: "+proj=stere +lat_0=-90 +lon_0=0 +k_0=0.994 +x_0=2000000 +y_0=2000000",
  5070: "+proj=aea +lat_0=23 +lon_0=-96 +lat_1=29.5 +lat_2=45.5 +ellps=GRS80",
  6931: "+proj=laea +lat_0=90 +lon_0=0",
  6932: "+proj=laea +lat_0=-90 +lon_0=0",
  6933: "+proj=cea +lat_ts=30 +lon_0=0",
};

/** Systems of UTM zones: code of zone 0, first and last zone, what else proj4 is told. */
const UTM: readonly (readonly [number, number, number, string])[] = [
  [25_800, 28, 38, "+ellps=GRS80"],
  [26_900, 1, 23, "+ellps=GRS80"],
  [32_600, 1, 60, "+datum=WGS84"],
  [32_700, 1, 60, "+south +datum=WGS84"],
];

function epsgDefinition(code: number): string | undefined {
  if ([4326, 4258, 4267, 4269, 4322].includes(code)) return "degrees";
  const known = EPSG[code === 900_913 ? 3857 : code];
  if (known !== undefined) return `${known}${/\+(?:a|ellps)=/.test(known) ? "" : " +datum=WGS84"} +no_defs`;
  for (const [zero, first, last, more] of UTM) {
    const zone = code - zero;
    if (zone >= first && zone <= last) return `+proj=utm +zone=${zone} ${more} +no_defs`;
  }
  return undefined;
}

/** Returns metres per unit: 1 for `m`, 100 000 for `100 km`, the height for radians of a satellite's view; undefined for others. */
function metresOf(units: unknown, height?: number): number | undefined {
  if (typeof units !== "string") return undefined;
  const [, count = "1", name = ""] = /^\s*([\d.]+(?:e[+-]?\d+)?)?\s*(.*?)\s*$/i.exec(units) ?? [];
  const metres = RADIANS.test(name) ? height : METRES.find(([pattern]) => pattern.test(name))?.[1];
  return metres === undefined ? undefined : Number(count) * metres;
}

/** Returns metres per unit of a projected system: the last unit that its WKT has is the unit of its axes. */
function metresOfWkt(wkt: string | undefined): number {
  const last = [...(wkt ?? "").matchAll(/\b(?:LENGTH)?UNIT\s*\[\s*"[^"]*"\s*,\s*([\d.eE+-]+)/g)].at(-1);
  return numberOf(Number(last?.[1])) ?? 1;
}

/** Tells if a GDAL transform is the one of an image without a place: columns and rows are counted from its upper left corner. */
function isPixelTransform(value: unknown): boolean {
  const [left, column, slantX, top, slantY, row] =
    typeof value === "string" ? value.split(/\s+/).map(Number) : [];
  return left === 0 && top === 0 && slantX === 0 && slantY === 0 && column! > 0 && row! > 0;
}

function numberOf(value: JsonValue | undefined): number | undefined {
  return numbersOf(value)[0];
}

function numbersOf(value: JsonValue | undefined): number[] {
  return toNumbers(value).filter(Number.isFinite);
}
