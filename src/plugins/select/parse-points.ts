import { wrongParameter, ZpublishError } from "../../plugin-api.js";

/** Points of a request's body: a table of texts. */
export interface PointTable {
  readonly names: readonly string[];
  /** One text per name. */
  readonly rows: readonly (readonly string[])[];
}

/**
 * Parses the points of a body: CSV with a line of names, or GeoJSON of points, whose properties become columns.
 * @throws ZpublishError `invalid-query`
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
  const repeated = table.names.find((name, index) => name === "" || table.names.indexOf(name) !== index);
  if (repeated !== undefined) throw wrongBody("repeated_column", "columns with different names", repeated);
  return table;
}

/** Creates the error of a body that is not as expected. */
export function wrongBody(type: string, expected: string, received: string): ZpublishError {
  return wrongParameter("points", type, expected, received, "body");
}

/** Parses CSV (RFC 4180): quotes are doubled within quotes, and stand nowhere else. Empty lines are left out. */
function parseCsv(text: string): PointTable {
  const field = /("(?:[^"]|"")*"|[^",\r\n]*)(,|\r\n|\n|\r|$)/y;
  const rows: string[][] = [];
  let row: string[] = [];
  for (let at = 0; at < text.length || row.length > 0; ) {
    field.lastIndex = at;
    const match = field.exec(text);
    if (match === null)
      throw wrongBody("csv_parsing", `a field of CSV in line ${rows.length + 1}`, text.slice(at, at + 40));
    const [{ length }, value = "", end] = match;
    row.push(value.startsWith('"') ? value.slice(1, -1).replaceAll('""', '"') : value.trim());
    at += length;
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
  addFeatures(value as GeoObject, {}, records);
  const names = [...new Set(records.flatMap((record) => [...record.keys()]))];
  return { names, rows: records.map((record) => names.map((name) => textOf(record.get(name)))) };
}

function addFeatures(object: GeoObject | null, properties: object, records: Map<string, unknown>[]): void {
  const { type, features, geometry, coordinates } = object ?? {};
  if (type === "FeatureCollection" && Array.isArray(features)) {
    for (const feature of features) addFeatures(feature, properties, records);
  } else if (type === "Feature") {
    addFeatures(geometry as GeoObject, object?.properties ?? {}, records);
  } else if ((type === "Point" || type === "MultiPoint") && Array.isArray(coordinates)) {
    for (const position of type === "Point" ? [coordinates] : coordinates) {
      const isPosition = Array.isArray(position) && position.length >= 2 && position.every(Number.isFinite);
      if (!isPosition) throw wrongBody("geojson", "a position [longitude, latitude]", textOf(position));
      const place = ["lon", "lat", "z"]
        .slice(0, position.length)
        .map((name, at) => [name, position[at]] as const);
      // A property of such a name neither moves nor replaces it.
      records.push(new Map([...place, ...Object.entries(properties), ...place]));
    }
  } else throw wrongBody("geojson", "a FeatureCollection, Feature, Point or MultiPoint", textOf(type));
}

function textOf(value: unknown): string {
  if (value === null || value === undefined) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
