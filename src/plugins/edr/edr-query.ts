import {
  type AxisSelection,
  type CoordinateAxis,
  indexOf,
  indexRange,
  parseQuery,
  type QueryParameter,
  type RouteRequest,
  type Steps,
  type Values,
  wrongParameter,
  ZpublishError,
} from "../../plugin-api.js";
import parseWkt, { type WktGeometry } from "./well-known-text.js";

/**
 * Formats of values by their names. The first type is that of answers, unless a client prefers another one; names are values of `f`, in
 * lower case.
 */
export const EDR_FORMATS = {
  CoverageJSON: {
    types: ["application/prs.coverage+json", "application/vnd.cov+json"],
    names: ["coveragejson", "covjson", "json"],
  },
  GeoJSON: { types: ["application/geo+json"], names: ["geojson"] },
  CSV: { types: ["text/csv"], names: ["csv"] },
  NetCDF: { types: ["application/x-netcdf"], names: ["netcdf", "nc"] },
};
/** Name of a format. */
export type FormatName = keyof typeof EDR_FORMATS;

/** Coordinate reference systems; all have longitudes before latitudes. */
export const CRS = ["CRS84", "EPSG:4326"];

/** The first of them as a URI. */
export const CRS84 = "http://www.opengis.net/def/crs/OGC/1.3/CRS84";

function parameter(description: string, more: Partial<QueryParameter> = {}): QueryParameter {
  return { description, style: "form", explode: false, schema: { type: "string" }, ...more };
}

/** Parameters of all queries. The others are `coords` or `bbox`, and dimensions of the collection. */
const COMMON = {
  "parameter-name": parameter("Names of parameters, with commas between them. Default: all"),
  datetime: parameter(
    "`2020-01-01T00:00Z`, several with commas, or a period: `a/b`, `../b`, `a/..`. A date is the whole day. Default: all",
  ),
  z: parameter("Level `850`, several `850,500`, a range `100/850`, `../850`, or `R3/100/50`. Default: all"),
  crs: parameter(`Coordinate reference system, of longitudes before latitudes: ${CRS.join(", ")}`),
  f: parameter(
    `Format: ${Object.keys(EDR_FORMATS).join(", ")}. GeoJSON is for positions. Default: by \`Accept\`, else CoverageJSON`,
  ),
};

/** @param types Of geometries. */
function queryOf(types: readonly WktGeometry["type"][], summary: string, coords: string) {
  const parameters: Readonly<Record<string, QueryParameter>> = {
    coords: parameter(coords, { required: true }),
    ...COMMON,
  };
  return { types, summary, parameters };
}

const [BOX, LEVELS] = [4, 6].map((length) => ({
  ...{ type: "array", items: { type: "number" } },
  ...{ minItems: length, maxItems: length },
}));
const BBOX = parameter("`west,south,east,north`, or with levels `west,south,z,east,north,z`", {
  ...{ required: true, schema: { oneOf: [BOX, LEVELS] } },
});

/** Queries of collections by name, with their parameters. */
export const COLLECTION_QUERIES = {
  position: queryOf(
    ["POINT", "MULTIPOINT"],
    "Values of the cells nearest to points",
    "`POINT(8.6 50.1)`, `MULTIPOINT(…)`; with `Z` at the nearest level. Points outside are left out",
  ),
  area: queryOf(
    ["POLYGON", "MULTIPOLYGON"],
    "Values of the cells whose centres are in polygons",
    "`POLYGON((5 45,15 45,15 55,5 55,5 45))`, `MULTIPOLYGON(…)`",
  ),
  cube: { types: [], summary: "Values of the cells in a box", parameters: { bbox: BBOX, ...COMMON } },
  trajectory: queryOf(
    ["LINESTRING", "MULTILINESTRING"],
    "Values of the cells along a path",
    "`LINESTRING(5 45,15 55)`, `MULTILINESTRING(…)`; `Z`: levels; `M`: seconds since 1970-01-01",
  ),
};
/** Name of a query. */
export type QueryType = keyof typeof COLLECTION_QUERIES;

/** What a query asks for. */
export interface EdrQuery {
  readonly type: QueryType;
  /** Texts as they came, by name. The levels of a box are `z`. */
  readonly parameters: ReadonlyMap<string, string>;
}

const CRS_TEXT =
  /^(?:(?:crs|ogc)?:?(?:crs)?:?84|epsg:4326|https?:\/\/www\.opengis\.net\/def\/crs\/(?:OGC\/[\d.]+\/CRS84|EPSG\/\d+\/4326))$/i;

/** Most characters of a parameter besides `coords`: some thousand times. */
const MAX_TEXT = 2 ** 16;

/**
 * Reads the query of a request: of its URL, and of its body in JSON.
 * @throws ZpublishError `invalid-query`, `invalid-body`, `unsupported-media-type`
 */
export async function readEdrQuery(type: QueryType, request: RouteRequest): Promise<EdrQuery> {
  const parameters = new Map<string, string>();
  // OWSLib has another name of `parameter-name`.
  for (const [name, values] of parseQuery(request.query, { once: ["{name}"], repeated: ["parameter_names"] }))
    parameters.set(name === "parameter_names" ? "parameter-name" : name, values.join());
  const contentType = request.header("content-type") ?? "";
  if (request.method === "POST")
    for (const [name, value] of parseBody(await request.body(), contentType)) parameters.set(name, value);
  for (const [name, text] of parameters)
    if (name !== "coords" && text.length > MAX_TEXT)
      throw wrongParameter(name, "string_too_long", `at most ${MAX_TEXT} characters`, text);
  const crs = parameters.get("crs");
  if (crs !== undefined && !CRS_TEXT.test(crs))
    throw wrongParameter("crs", "enum", `one of ${CRS.join(", ")}`, crs);
  const box = parameters.get("bbox")?.split(",") ?? [];
  if (box.length === 6 && !parameters.has("z")) parameters.set("z", `${box[2]}/${box[5]}`);
  return { type, parameters };
}

function parseBody(body: Uint8Array, contentType: string): [name: string, value: string][] {
  if (!/^application\/json\s*(?:;|$)/i.test(contentType))
    throw new ZpublishError(
      "unsupported-media-type",
      `Expected Content-Type application/json, received '${contentType}'`,
    );
  const text = Buffer.from(body).toString("utf8");
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value))
      return Object.entries(value).map(([name, each]) => [name, String(each)]);
  } catch {
    // No JSON, or lists that are nested too deep.
  }
  throw wrongParameter("body", "object", "an object of JSON with the parameters of the query", text, "body");
}

/** A text of so many characters is parsed in the pool. */
const LONG_TEXT = 20_000;

/**
 * Parses the place of a query. A box is a polygon.
 * @throws ZpublishError `invalid-query`, `too-large`
 */
export async function readGeometry(
  { type, parameters }: EdrQuery,
  values: Pick<Values, "run">,
  signal: AbortSignal,
): Promise<WktGeometry> {
  const { types } = COLLECTION_QUERIES[type];
  if (type === "cube") return readBox(parameters.get("bbox") ?? "");
  const task = { text: parameters.get("coords") ?? "", types };
  if (task.text.length < LONG_TEXT) return parseWkt(task);
  return values.run<WktGeometry>(new URL("./well-known-text.js", import.meta.url), task, { signal });
}

/** Reads west, south, east and north. */
function readBox(text: string): WktGeometry {
  const numbers = text.split(",").map((each) => (each.trim() === "" ? Number.NaN : Number(each)));
  const corners = numbers.length === 6 ? numbers.toSpliced(2, 1) : numbers;
  const [west = 0, south = 0, east = 0, north = 0] = corners;
  const isBox = [4, 6].includes(numbers.length) && numbers.every(Number.isFinite);
  const isOnEarth =
    Math.abs(west) <= 360 && Math.abs(east) <= 360 && south >= -90 && south <= north && north <= 90;
  if (!isBox || !isOnEarth) throw wrongParameter("bbox", "bbox", "west,south,east,north in degrees", text);
  // West of its eastern end if it crosses the 180th meridian.
  const end = east < west ? east + 360 : east;
  const ring = Float64Array.of(west, south, end, south, end, north, west, north, west, south);
  return { type: "POLYGON", stride: 2, z: -1, m: -1, parts: [[ring]] };
}

const REPEATED = /^R(\d{1,4})\/([^/]+)\/([^/]+)$/;

/**
 * Finds the steps of an axis that a text names: `a`, `a,b`, `a/b`, `../b`, `a/..` or, of numbers, `R3/a/step`. None may be there. A date
 * such as `2020-01` is the whole month.
 * @throws ZpublishError `invalid-query` if it has another form, or labels of another kind than the axis
 */
export function findSteps(axis: CoordinateAxis, parameter: string, text: string): Steps {
  const isTime = axis.calendar !== undefined;
  const isNumber = !isTime && typeof axis.values?.[0] !== "string";
  const [, count, first, step] = (isNumber && REPEATED.exec(text)) || [];
  const range = count === undefined ? text.split("/") : [];
  if (range.length > 2) throw wrongParameter(parameter, "range", "a, a/b, a,b or R3/a/step", text);
  if (range.length === 2) {
    const isTurned = isNumber && Number(range[0]) > Number(range[1]);
    const [from, to] = (isTurned ? range.reverse() : range).map((end) => (end === ".." ? undefined : end));
    return indexRange(axis, from, to);
  }
  const repeated = Array.from({ length: Number(count) }, (_, at) => Number(first) + at * Number(step));
  const indexes = (count === undefined ? text.split(",") : repeated).flatMap((label): readonly number[] => {
    if (isTime) return stepIndexes(indexRange(axis, `${label}`, `${label}`));
    return [isNumber ? indexOf(axis, label, "nearest", 0) : indexOf(axis, label, "exact")];
  });
  return { indexes: [...new Set(indexes)].filter((index) => index >= 0).sort((a, b) => a - b) };
}

/** Returns all steps of an axis. */
export function allSteps({ length }: CoordinateAxis): Steps {
  return { begin: 0, count: length, step: 1 };
}

/** Lists steps. */
export function stepIndexes(steps: AxisSelection): readonly number[] {
  return "indexes" in steps
    ? Array.from(steps.indexes)
    : Array.from({ length: steps.count }, (_, index) => steps.begin + index * steps.step);
}
