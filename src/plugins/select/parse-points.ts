import { wrongParameter, ZpublishError } from "../../plugin-api.js";

/** Points of a request's body: a table of texts. */
export interface PointTable {
  readonly names: readonly string[];
  /** One text per name. */
  readonly rows: readonly (readonly string[])[];
}

/** Most columns of points. */
const MAX_COLUMNS = 1_000;
/** Most fields of points: all rows times all columns, of which GeoJSON says few and means many. */
const MAX_FIELDS = 2_000_000;

/**
 * Parses the points of a body: CSV with a line of names, or GeoJSON of points, whose properties become columns.
 * @throws ZpublishError `invalid-body`; `too-large` if there are too many columns or fields
 */
export function parsePoints(body: Uint8Array, contentType: string | undefined): PointTable {
  const [type = ""] = (contentType ?? "").toLowerCase().split(";", 1);
  const isCsv = type.trim() === "text/csv";
  if (!isCsv && !/^application\/(?:geo\+)?json$/.test(type.trim()))
    throw new ZpublishError(
      "unsupported-media-type",
      `Expected Content-Type text/csv or application/geo+json, received '${contentType ?? ""}'`,
    );
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(body);
  } catch {
    throw wrongBody("string_unicode", "UTF-8", "other bytes");
  }
  const table = isCsv ? parseCsv(text) : parseGeoJson(text);
  if (table.rows.length === 0) throw wrongBody("missing", "at least one point", "none");
  const seen = new Set<string>();
  const repeated = table.names.find((name) => name === "" || seen.size === seen.add(name).size);
  if (repeated !== undefined) throw wrongBody("repeated_column", "columns with different names", repeated);
  return table;
}

/** Creates the error of a body that is not as expected. */
export function wrongBody(type: string, expected: string, received: string): ZpublishError {
  return wrongParameter("points", type, expected, received, "body");
}

function assertSize(columnCount: number, fieldCount: number): void {
  if (columnCount <= MAX_COLUMNS && fieldCount <= MAX_FIELDS) return;
  const [limit, received, what] =
    columnCount > MAX_COLUMNS ? [MAX_COLUMNS, columnCount, "columns"] : [MAX_FIELDS, fieldCount, "fields"];
  throw new ZpublishError(
    "too-large",
    `Expected points of at most ${limit} ${what}, received at least ${received}`,
  );
}

/** Parses CSV (RFC 4180): quotes are doubled within quotes, and stand nowhere else. Empty lines are left out. */
function parseCsv(text: string): PointTable {
  const plain = /[^",\r\n]*/y;
  const separator = /,|\r\n|\n|\r|$/y;
  const rows: string[][] = [];
  let row: string[] = [];
  let fieldCount = 0;
  for (let at = 0; at < text.length || row.length > 0; ) {
    plain.lastIndex = at;
    const quoted = text[at] === '"' ? quotedEnd(text, at) : undefined;
    separator.lastIndex = quoted ?? at + plain.exec(text)![0].length;
    const value = text.slice(at, separator.lastIndex);
    const end = separator.exec(text)?.[0];
    if (quoted === -1 || end === undefined)
      throw wrongBody("csv_parsing", `a field of CSV in line ${rows.length + 1}`, text.slice(at, at + 40));
    row.push(quoted === undefined ? value.trim() : value.slice(1, -1).replaceAll('""', '"'));
    fieldCount += 1;
    assertSize(row.length, fieldCount);
    at += value.length + end.length;
    if (end === ",") continue;
    if (row.length > 1 || row[0] !== "") rows.push(row);
    row = [];
  }
  const [names = [], ...others] = rows;
  const wrong = others.findIndex((each) => each.length !== names.length);
  if (wrong >= 0)
    throw wrongBody("csv_parsing", `${names.length} fields in row ${wrong + 1}`, `${others[wrong]!.length}`);
  return { names, rows: others };
}

/** Returns the place behind the quote that ends a field; -1 if there is none. */
function quotedEnd(text: string, begin: number): number {
  for (let at = begin + 1; ; at += 2) {
    at = text.indexOf('"', at);
    if (at < 0) return -1;
    if (text[at + 1] !== '"') return at + 1;
  }
}

/** An object of GeoJSON whose members are not checked. */
type GeoObject = {
  readonly [key in "type" | "features" | "geometry" | "properties" | "coordinates"]?: unknown;
};

/** Reads positions as columns `lon`, `lat` and `z`, and properties as further ones. */
function parseGeoJson(text: string): PointTable {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw wrongBody("json_parsing", "JSON", text.slice(0, 40));
  }
  const records: Map<string, unknown>[] = [];
  const names = new Set<string>();
  let fieldCount = 0;
  const add = (record: Map<string, unknown>) => {
    for (const name of record.keys()) names.add(name);
    fieldCount += record.size;
    records.push(record);
    assertSize(names.size, Math.max(fieldCount, names.size * records.length));
  };
  try {
    addFeatures(value as GeoObject, {}, add);
    const all = [...names];
    return { names: all, rows: records.map((record) => all.map((name) => textOf(record.get(name)))) };
  } catch (error) {
    // The stack is as deep as the objects are nested.
    throw error instanceof RangeError ? wrongBody("geojson", "GeoJSON that nests less", "more") : error;
  }
}

function addFeatures(
  object: GeoObject | null,
  properties: object,
  add: (record: Map<string, unknown>) => void,
): void {
  const { type, features, geometry, coordinates } = object ?? {};
  if (type === "FeatureCollection" && Array.isArray(features)) {
    for (const feature of features) addFeatures(feature, properties, add);
  } else if (type === "Feature") {
    addFeatures(geometry as GeoObject, object?.properties ?? {}, add);
  } else if ((type === "Point" || type === "MultiPoint") && Array.isArray(coordinates)) {
    for (const position of type === "Point" ? [coordinates] : coordinates) {
      const isPosition = Array.isArray(position) && position.length >= 2 && position.every(Number.isFinite);
      if (!isPosition) throw wrongBody("geojson", "a position [longitude, latitude]", textOf(position));
      const place = ["lon", "lat", "z"]
        .slice(0, position.length)
        .map((name, at) => [name, position[at]] as const);
      // A property of such a name neither moves nor replaces it.
      add(new Map([...place, ...Object.entries(properties), ...place]));
    }
  } else throw wrongBody("geojson", "a FeatureCollection, Feature, Point or MultiPoint", textOf(type));
}

function textOf(value: unknown): string {
  if (value === null || value === undefined) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
