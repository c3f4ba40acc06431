import type { JsonObject } from "../json/json-value.js";

/** What an axis measures: time, height or depth, the vertical and the horizontal direction of a map (CF section 4). */
export type AxisRole = "T" | "Z" | "Y" | "X";

/** Returns the attributes of a variable of the same group by name; undefined if there is none. */
type AttributesOf = (name: string) => JsonObject | undefined;

/** The two axes that a picture of a variable shows, as positions in its dimensions. */
export interface Plane {
  readonly y: number;
  readonly x: number;
}

const STANDARD_NAMES: Readonly<Record<string, AxisRole>> = Object.freeze({
  time: "T",
  forecast_reference_time: "T",
  latitude: "Y",
  grid_latitude: "Y",
  projection_y_coordinate: "Y",
  projection_y_angular_coordinate: "Y",
  longitude: "X",
  grid_longitude: "X",
  projection_x_coordinate: "X",
  projection_x_angular_coordinate: "X",
  height: "Z",
  altitude: "Z",
  depth: "Z",
  air_pressure: "Z",
  model_level_number: "Z",
  atmosphere_sigma_coordinate: "Z",
  atmosphere_hybrid_sigma_pressure_coordinate: "Z",
  ocean_sigma_coordinate: "Z",
  ocean_s_coordinate: "Z",
});

const LATITUDE_UNITS = /^degrees?_?n(?:orth)?$/i;
const LONGITUDE_UNITS = /^degrees?_?e(?:ast)?$/i;
/** Units of pressures (CF section 4.3.1). */
export const PRESSURE_UNITS = /^(?:hpa|pa|mbar|millibars?|bar|dbar|decibars?|kpa)$/i;
const TIME_UNITS = /^\s*[a-z]+\s+since\s/i;

/** Dimension names that say what they are, for axes without attributes. */
const NAMES: readonly (readonly [RegExp, AxisRole])[] = [
  [/^(?:t|time|times|date|valid_time|xtime)$/i, "T"],
  [
    /^(?:z|lev|level|levels|plev|depth|deptht|height|altitude|pressure|isobaric\w*|bottom_top(?:_stag)?|s_rho|s_w)$/i,
    "Z",
  ],
  [
    /^(?:y|y[cghq]|n?lat|latitude|nav_lat|rlat|nj|south_north(?:_stag)?|eta_(?:rho|[uv]|psi)|northing|rows?)$/i,
    "Y",
  ],
  [
    /^(?:x|x[cghq]|n?lon|long|longitude|nav_lon|rlon|ni|west_east(?:_stag)?|xi_(?:rho|[uv]|psi)|easting|cols?|columns?)$/i,
    "X",
  ],
];

/** Tells whether a coordinate holds latitudes, by its standard name or units (CF section 4.1). */
export function isLatitude(attrs: JsonObject): boolean {
  return attrs.standard_name === "latitude" || (!isRotated(attrs) && matches(attrs.units, LATITUDE_UNITS));
}

/** Tells whether a coordinate holds longitudes, by its standard name or units (CF section 4.2). */
export function isLongitude(attrs: JsonObject): boolean {
  return attrs.standard_name === "longitude" || (!isRotated(attrs) && matches(attrs.units, LONGITUDE_UNITS));
}

/** Whether degrees are those of a rotated pole, in whatever units (CF section 5.6). */
function isRotated({ standard_name }: JsonObject): boolean {
  return standard_name === "grid_latitude" || standard_name === "grid_longitude";
}

/**
 * Returns the role of an axis: by `axis`, `standard_name`, `units` and `positive` of its coordinate (CF section 4), else by the name of
 * the dimension.
 * @param attrs Attributes of the dimension's coordinate; undefined if it has none.
 */
export function axisRole(dim: string, attrs: JsonObject | undefined): AxisRole | undefined {
  const { axis, standard_name, units, positive } = attrs ?? {};
  if (typeof axis === "string" && /^[TZYX]$/i.test(axis)) return axis.toUpperCase() as AxisRole;
  if (typeof standard_name === "string" && Object.hasOwn(STANDARD_NAMES, standard_name))
    return STANDARD_NAMES[standard_name];
  if (matches(units, LATITUDE_UNITS)) return "Y";
  if (matches(units, LONGITUDE_UNITS)) return "X";
  if (matches(units, TIME_UNITS)) return "T";
  if (matches(units, PRESSURE_UNITS) || matches(positive, /^(?:up|down)$/i)) return "Z";
  return NAMES.find(([pattern]) => pattern.test(dim))?.[1];
}

/**
 * Returns the axes that a picture of a variable shows: latitude and longitude, or whatever has the roles Y and X; else a section, with
 * heights upwards and time to the right; else the last two. Axes of one cell only if there are no two others. Undefined if it has fewer
 * than two axes.
 * @param shape Default: all axes are long.
 */
export function planeOf(
  dims: readonly string[],
  attributesOf: AttributesOf,
  shape: readonly number[] = [],
): Plane | undefined {
  if (dims.length < 2) return undefined;
  const roles = dims.map((dim) => axisRole(dim, attributesOf(dim)));
  const every = [...dims.keys()];
  const long = every.filter((axis) => shape[axis] !== 1);
  const axes = long.length >= 2 ? long : every;
  const last = (role: AxisRole | undefined) => axes.findLast((axis) => roles[axis] === role);
  const [t, z, y, x] = [last("T"), last("Z"), last("Y"), last("X")];
  if (y !== undefined && x !== undefined) return { y, x };
  const others = axes.filter((axis) => roles[axis] === undefined);
  const otherThan = (axis: number) => others.at(-1) ?? axes.findLast((each) => each !== axis)!;
  if (x !== undefined) return { y: z ?? others.at(-1) ?? t ?? otherThan(x), x };
  if (y !== undefined) return z === undefined ? { y, x: others.at(-1) ?? t ?? otherThan(y) } : { y: z, x: y };
  // Fields without a name for their horizontal axes.
  if (others.length >= 2) return { y: others.at(-2)!, x: others.at(-1)! };
  if (z !== undefined) return { y: z, x: others.at(-1) ?? t ?? otherThan(z) };
  if (t !== undefined) return { y: otherThan(t), x: t };
  return { y: axes.at(-2)!, x: axes.at(-1)! };
}

/**
 * Tells whether the values of a vertical axis of a picture increase downwards: by the attribute `positive` (CF section 4.3), for
 * depths and pressures without it, and for rows of an image, which have no coordinate. Other values increase upwards.
 * @param attrs Attributes of its coordinate; undefined if it has none.
 */
export function isDownward(attrs: JsonObject | undefined, units: unknown = attrs?.units): boolean {
  if (attrs === undefined) return true;
  const positive = String(attrs.positive).toLowerCase();
  if (positive === "up" || positive === "down") return positive === "down";
  return attrs.standard_name === "depth" || matches(units, PRESSURE_UNITS);
}

function matches(value: unknown, pattern: RegExp): boolean {
  return typeof value === "string" && pattern.test(value);
}
