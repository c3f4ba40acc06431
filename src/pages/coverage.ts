import { isLatitude, isLongitude } from "../cf/axis-roles.js";
import { cfTimeOf, cfTimeScale, isoText } from "../cf/cf-time.js";
import { type DecodedCoordinate, decodeCoordinate } from "../codec/items/decode-coordinate.js";
import type { DatasetSnapshot, ServedArray } from "../dataset/dataset.js";
import { ZpublishError } from "../errors.js";
import { type JsonObject, type JsonValue, toNumber } from "../json/json-value.js";
import { elementCount, type Group, type Variable } from "../model/data-tree.js";
import { NOT_A_TIME } from "../model/fill-value.js";
import type { Values } from "../values/values.js";

/** Where and when the data of a dataset is. Plain data. */
export interface Coverage {
  /** First and last time as ISO texts, without fractions of seconds. Undefined if the dataset has no time. */
  readonly period?: readonly [from: string, to: string] | undefined;
  /** Calendar of the period, as CF names it. Undefined if it is the usual one. */
  readonly calendar?: string | undefined;
  /** Degrees of the outermost cell centres. Undefined if the dataset has no latitudes and longitudes. */
  readonly extent?: GeographicExtent | undefined;
}

/** Degrees north, and degrees east from -180 to 180; `west` is greater than `east` if the 180th meridian is inside. */
export interface GeographicExtent {
  readonly west: number;
  readonly east: number;
  readonly south: number;
  readonly north: number;
}

/** What reads coordinates. */
type ReadsValues = Pick<Values, "read">;

/** Maximum of groups that are searched for coordinates. */
const MAX_GROUPS = 200;

/**
 * Reads period and extent from the coordinates of the first groups that have some, else from the attributes of the dataset
 * (`time_coverage_start`, `geospatial_lat_min` and others of the Attribute Convention for Data Discovery).
 * @throws ZpublishError if a coordinate cannot be read
 */
export async function readCoverage(
  snapshot: DatasetSnapshot,
  values: ReadsValues,
  groups: Iterable<Group> = snapshot.tree.groups.values(),
): Promise<Coverage> {
  let period: Coverage["period"];
  let calendar: string | undefined;
  let extent: Coverage["extent"];
  let searched = 0;
  for (const group of groups) {
    if (++searched > MAX_GROUPS) break;
    const time = period === undefined ? timeOf(snapshot, group) : undefined;
    if (time !== undefined) {
      period = await readPeriod(time, values);
      calendar = period && unusualCalendar(time.variable.attrs);
    }
    const places = extent === undefined ? placesOf(snapshot, group) : undefined;
    if (places !== undefined) extent = await readExtent(places, values);
  }
  const { attrs } = snapshot.tree.root;
  return { period: period ?? statedPeriod(attrs), calendar, extent: extent ?? statedExtent(attrs) };
}

/** Finds the time of a group: the coordinate of a dimension, else another one of few dimensions. */
function timeOf({ arrays }: DatasetSnapshot, { variables, coordinateNames }: Group): ServedArray | undefined {
  const times = [...variables.values()]
    .filter(
      (variable) => isTime(variable) && (coordinateNames.has(variable.name) || variable.dims.length === 0),
    )
    .sort((a, b) => rankOf(a) - rankOf(b));
  return times[0] && arrays.get(times[0].path);
}

function unusualCalendar({ calendar }: JsonObject): string | undefined {
  const isUsual =
    typeof calendar !== "string" || /^(?:standard|gregorian|proleptic_gregorian)$/i.test(calendar);
  return isUsual ? undefined : calendar;
}

function isTime({ attrs, dims, dataType }: Variable): boolean {
  return dims.length <= 1 && (dataType.kind === "M" || cfTimeScale(attrs) !== undefined);
}

/** Returns 0 for the coordinate of a dimension, 1 for other coordinates along one, 2 for scalars, 3 for grids. */
function rankOf({ name, dims }: Variable): number {
  if (dims.length === 1) return dims[0] === name ? 0 : 1;
  return dims.length === 0 ? 2 : 3;
}

/** Maximum of numbers that are read of a coordinate: few have more. */
const MAX_NUMBERS = 262_144;

/**
 * Reads the values of a coordinate: of the last two axes, at the first index of others. Undefined if they are too many, or cannot be
 * decoded.
 * @param isOrdered Whether the first and last value are enough of too many.
 */
async function readCoordinate(
  array: ServedArray,
  values: ReadsValues,
  isOrdered = false,
): Promise<DecodedCoordinate | undefined> {
  const { shape, attrs, fill } = array.stored;
  const box = shape.map((length, axis) => ({
    begin: 0,
    count: axis < shape.length - 2 ? 1 : length,
    step: 1,
  }));
  const count = elementCount(box.map((axis) => axis.count));
  const isLong = count > MAX_NUMBERS;
  if (count === 0 || (isLong && !isOrdered)) return undefined;
  const ends = shape.map((length) => ({ begin: 0, count: 2, step: length - 1 }));
  try {
    return decodeCoordinate(await values.read(undefined, array, isLong ? ends : box), attrs, fill.served);
  } catch (error) {
    if (error instanceof ZpublishError && error.code === "unsupported") return undefined;
    throw error;
  }
}

async function readPeriod(time: ServedArray, values: ReadsValues): Promise<Coverage["period"]> {
  const found = await readCoordinate(time, values, true);
  const scale = found && cfTimeScale({ units: found.units ?? null, calendar: found.calendar ?? null });
  if (scale === undefined || found?.values === undefined || Array.isArray(found.values)) return undefined;
  const range = rangeOf<number | bigint>(found.values as Float64Array | BigInt64Array);
  const [from, to] = range?.map((value) => isoText(cfTimeOf(value, scale), scale.calendar)) ?? [];
  return from === undefined || to === undefined ? undefined : [wholeSeconds(from), wholeSeconds(to)];
}

const ISO_TIME = /^\d{4}(?:-\d\d(?:-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z?)?)?)?$/;

function wholeSeconds(text: string): string {
  return text.replace(/(?:\.\d+)?Z?$/, "");
}

/** Latitudes and longitudes of the same points or grid. */
interface Places {
  readonly latitudes: ServedArray;
  readonly longitudes: ServedArray;
}

/** Finds latitudes and longitudes in a group: those of dimensions if there are some, else those of points or of a grid. */
function placesOf({ arrays }: DatasetSnapshot, { variables, coordinateNames }: Group): Places | undefined {
  const coordinates = [...variables.values()]
    .filter(({ name, dataType }) => "iuf".includes(dataType.kind) && isPlace(name, coordinateNames))
    .sort((a, b) => rankOf(a) - rankOf(b));
  for (const latitude of coordinates) {
    if (!isLatitude(latitude.attrs)) continue;
    const longitude = coordinates.find(
      (other) =>
        isLongitude(other.attrs) &&
        rankOf(other) === rankOf(latitude) &&
        (rankOf(other) === 0 || other.dims.join("\n") === latitude.dims.join("\n")),
    );
    const latitudes = arrays.get(latitude.path);
    const longitudes = longitude && arrays.get(longitude.path);
    if (latitudes !== undefined && longitudes !== undefined) return { latitudes, longitudes };
  }
  return undefined;
}

/** Tells whether a variable may say where data is: a coordinate, or one by its usual name, as WRF and swaths have it. */
function isPlace(name: string, coordinateNames: ReadonlySet<string>): boolean {
  return coordinateNames.has(name) || /^(?:x?lat|x?lon|nav_lat|nav_lon|latitudes?|longitudes?)$/i.test(name);
}

async function readExtent(
  { latitudes, longitudes }: Places,
  values: ReadsValues,
): Promise<GeographicExtent | undefined> {
  const [y, x] = await Promise.all([latitudes, longitudes].map((array) => readCoordinate(array, values)));
  if (!(y?.values instanceof Float64Array && x?.values instanceof Float64Array)) return undefined;
  const [norths, easts] = [rangeOf(y.values), rangeOfLongitudes(x.values)];
  if (norths === undefined || easts === undefined || norths[0] < -90.01 || norths[1] > 90.01)
    return undefined;
  return { south: norths[0], north: norths[1], west: easts[0], east: easts[1] };
}

/** Returns the least and the greatest value; undefined if all are missing. */
function rangeOf<T extends number | bigint>(values: Iterable<T>): readonly [T, T] | undefined {
  let [low, high]: (T | undefined)[] = [];
  for (const value of values) {
    if (value === NOT_A_TIME || !Number.isFinite(Number(value))) continue;
    if (low === undefined || value < low) low = value;
    if (high === undefined || value > high) high = value;
  }
  return low === undefined || high === undefined ? undefined : [low, high];
}

const CIRCLE = 360;
const ALL_LONGITUDES = [-180, 180] as const;

/** Returns the shortest range with all longitudes: the circle without its widest gap. */
function rangeOfLongitudes(values: Float64Array): readonly [west: number, east: number] | undefined {
  const hasSome = new Uint8Array(CIRCLE);
  for (const value of values) if (Number.isFinite(value)) hasSome[Math.floor(positive(value))] = 1;
  const degrees = Array.from(hasSome.keys()).filter((degree) => hasSome[degree] === 1);
  const first = degrees[0];
  if (first === undefined) return undefined;
  let start = first;
  let widest = 0;
  degrees.forEach((degree, index) => {
    const before = degrees.at(index - 1) as number;
    const gap = degrees.length === 1 ? CIRCLE : positive(degree - before);
    if (gap <= widest) return;
    widest = gap;
    start = degree;
  });
  // Around the whole earth, no gap is wider than the mean distance of neighbours.
  if (degrees.length > 2 && widest <= Math.ceil(CIRCLE / degrees.length)) return ALL_LONGITUDES;
  const range = rangeOf(values.map((value) => positive(value - start)));
  return range && [fromMinus180(start + range[0]), fromMinus180(start + range[1], 180)];
}

/** Returns an angle from 0 to 360. */
function positive(degrees: number): number {
  return ((degrees % CIRCLE) + CIRCLE) % CIRCLE;
}

/** Returns a longitude between -180 and 180. @param ofEdge What the 180th meridian is. */
function fromMinus180(degrees: number, ofEdge = -180): number {
  const longitude = positive(degrees + 180) - 180;
  return longitude === -180 ? ofEdge : longitude;
}

function statedPeriod({ time_coverage_start, time_coverage_end }: JsonObject): Coverage["period"] {
  const [from, to] = [time_coverage_start, time_coverage_end].map((text) =>
    typeof text === "string" && ISO_TIME.test(text) ? wholeSeconds(text) : undefined,
  );
  return from === undefined || to === undefined ? undefined : [from, to];
}

function statedExtent(attrs: JsonObject): GeographicExtent | undefined {
  const numbers = ["lon_min", "lon_max", "lat_min", "lat_max"].map((end) =>
    numberOf(attrs[`geospatial_${end}`]),
  );
  const [west = Number.NaN, east = Number.NaN, south = Number.NaN, north = Number.NaN] = numbers;
  const isPlausible = Math.abs(west) <= CIRCLE && Math.abs(east) <= CIRCLE && south >= -90 && north <= 90;
  if (!isPlausible || !(south <= north)) return undefined;
  if (east - west >= CIRCLE) return { west: -180, east: 180, south, north };
  return { west: fromMinus180(west), east: fromMinus180(east, 180), south, north };
}

function numberOf(value: JsonValue | undefined): number | undefined {
  return typeof value === "string" && value.trim() !== "" ? Number(value) : toNumber(value);
}

/** Formats a period: `2023-01-01 to 2023-12-31`; days alone if all times are at midnight. */
export function formatPeriod([from, to]: NonNullable<Coverage["period"]>): string {
  const isDays = [from, to].every((text) => /^[^T]+(?:T00:00(?::00)?)?$/.test(text));
  const [first, last] = [from, to].map((text) =>
    isDays ? text.replace(/T.*/, "") : text.replace("T", " ").replace(/(\d\d:\d\d):00$/, "$1"),
  ) as [string, string];
  return first === last ? first : `${first} to ${last}`;
}

/** Formats an extent: `5°E to 12°E, 45°N to 53°N`. */
export function formatExtent({ west, east, south, north }: GeographicExtent): string {
  const isAround = west === -180 && east === 180;
  const longitudes = isAround
    ? "all longitudes"
    : rangeText(degreesText(west, "E", "W"), degreesText(east, "E", "W"));
  return `${longitudes}, ${rangeText(degreesText(south, "N", "S"), degreesText(north, "N", "S"))}`;
}

function rangeText(from: string, to: string): string {
  return from === to ? from : `${from} to ${to}`;
}

function degreesText(degrees: number, positiveSide: string, negativeSide: string): string {
  const rounded = Number(Math.abs(degrees).toFixed(2));
  return `${rounded}°${rounded === 0 ? "" : degrees < 0 ? negativeSide : positiveSide}`;
}
