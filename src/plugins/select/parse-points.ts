import { createHash } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { wrongParameter, ZpublishError } from "../../plugin-api.js";

/** A body of points as it came. */
interface PointBody {
  readonly body: Uint8Array;
  readonly contentType: string | undefined;
}

/** Points of a request's body: a table of texts. Plain data. */
export interface PointTable {
  readonly names: readonly string[];
  /** One per name, all of the same length. */
  readonly columns: readonly PointColumn[];
  /** Hash of the body. */
  readonly digest: string;
}

/** Texts, one after the other: a million of them are copied between threads, and kept, as two objects. */
export interface PointColumn {
  readonly text: string;
  /** End of each of the texts. */
  readonly ends: Uint32Array;
}

/** Texts by column. */
interface TextTable {
  readonly names: readonly string[];
  readonly columns: readonly (readonly string[])[];
}

/** Most columns of points. */
const MAX_COLUMNS = 1_000;
/** Most fields of points: all rows times all columns, of which GeoJSON says few and means many. */
const MAX_FIELDS = 2_000_000;

/** Most characters of all fields: properties of GeoJSON are said once for several points. */
const MAX_CHARACTERS = 2 ** 26;
/** Texts that are visited before other requests are answered. */
const TEXTS_PER_TURN = 2_000;

/**
 * Parses the points of a body: CSV with a line of names, or GeoJSON of points, whose properties become columns. Runs in the pool.
 * @throws ZpublishError `invalid-body`; `too-large` if there are too many columns or fields
 */
export default function parsePoints({ body, contentType = "" }: PointBody): PointTable {
  const [type = ""] = contentType.toLowerCase().split(";", 1);
  const isCsv = type.trim() === "text/csv";
  if (!isCsv && !/^application\/(?:geo\+)?json$/.test(type.trim()))
    throw new ZpublishError(
      "unsupported-media-type",
      `Expected Content-Type text/csv or application/geo+json, received '${contentType}'`,
    );
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(body);
  } catch {
    throw wrongBody("string_unicode", "UTF-8", "other bytes");
  }
  const { names, columns } = isCsv ? parseCsv(text) : parseGeoJson(text);
  if (!columns[0]?.length) throw wrongBody("missing", "at least one point", "none");
  const seen = new Set<string>();
  const repeated = names.find((name) => name === "" || seen.size === seen.add(name).size);
  if (repeated !== undefined) throw wrongBody("repeated_column", "columns with different names", repeated);
  const characters = columns.flat().reduce((sum, { length }) => sum + length, 0);
  assertAtMost(MAX_CHARACTERS, characters, "characters");
  const digest = createHash("sha256").update(body).digest("base64url");
  return { names, columns: columns.map(joinTexts), digest };
}

function joinTexts(texts: readonly string[]): PointColumn {
  let end = 0;
  return {
    text: texts.join(""),
    ends: Uint32Array.from(texts, ({ length }) => {
      end += length;
      return end;
    }),
  };
}

/** Visits the texts of a column, and lets other requests be answered in between. */
export async function eachText(
  { text, ends }: PointColumn,
  visit: (text: string, row: number) => void,
): Promise<void> {
  for (let row = 0, begin = 0; row < ends.length; row += 1) {
    if (row % TEXTS_PER_TURN === TEXTS_PER_TURN - 1) await setImmediate();
    visit(text.slice(begin, ends[row]), row);
    begin = ends[row]!;
  }
}

/** Creates the error of a body that is not as expected. */
export function wrongBody(type: string, expected: string, received: string): ZpublishError {
  return wrongParameter("points", type, expected, received, "body");
}

function assertSize(columnCount: number, fieldCount: number): void {
  assertAtMost(MAX_COLUMNS, columnCount, "columns");
  assertAtMost(MAX_FIELDS, fieldCount, "fields");
}

function assertAtMost(limit: number, received: number, what: string): void {
  if (received <= limit) return;
  throw new ZpublishError(
    "too-large",
    `Expected points of at most ${limit} ${what}, received at least ${received}`,
  );
}

const [QUOTE, COMMA, CR, LF] = [0x22, 0x2c, 0x0d, 0x0a];

/** Parses CSV (RFC 4180): quotes are doubled within quotes, and stand nowhere else. Empty lines are left out. */
function parseCsv(text: string): TextTable {
  const columns: string[][] = [];
  let names: readonly string[] | undefined;
  let row: string[] = [];
  let fieldCount = 0;
  let line = 1;
  const endRow = () => {
    if (names === undefined) {
      names = row;
      columns.push(...row.map(() => []));
    } else if (row.length === names.length) for (const [at, value] of row.entries()) columns[at]!.push(value);
    else {
      const expected = `${names.length} fields in row ${columns[0]!.length + 1}`;
      throw wrongBody("csv_parsing", expected, `${row.length}`);
    }
    line += 1;
  };
  for (let at = 0; at < text.length || row.length > 0; ) {
    const isQuoted = text.charCodeAt(at) === QUOTE;
    const end = isQuoted ? quotedEnd(text, at) : plainEnd(text, at);
    const next = text.charCodeAt(end);
    if (end < text.length && next !== COMMA && next !== CR && next !== LF)
      throw wrongBody("csv_parsing", `a field of CSV in line ${line}`, text.slice(at, at + 40));
    const value = text.slice(at, end);
    row.push(isQuoted ? value.slice(1, -1).replaceAll('""', '"') : value.trim());
    fieldCount += 1;
    assertSize(row.length, fieldCount);
    at = end + (next === CR && text.charCodeAt(end + 1) === LF ? 2 : 1);
    if (next === COMMA) continue;
    if (row.length > 1 || row[0] !== "") endRow();
    row = [];
  }
  return { names: names ?? [], columns };
}

function plainEnd(text: string, begin: number): number {
  for (let at = begin; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === COMMA || code === LF || code === CR || code === QUOTE) return at;
  }
  return text.length;
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
function parseGeoJson(text: string): TextTable {
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
    const columns = all.map((name) => records.map((record) => textOf(record.get(name))));
    return { names: all, columns };
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
