import { createHash } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { wrongParameter, ZpublishError } from "../../plugin-api.js";

/** A body of points as it came. */
interface PointBody {
  readonly body: Uint8Array;
  readonly contentType: string | undefined;
}

/** Points of a request's body: a table of texts. Plain data: few objects, however many points there are. */
export interface PointTable {
  readonly names: readonly string[];
  readonly rowCount: number;
  /** All texts, and other characters between them. */
  readonly text: string;
  /** Where the texts begin and end, row by row. */
  readonly begins: Uint32Array;
  readonly ends: Uint32Array;
  /** Hash of the body. */
  readonly digest: string;
}

type Texts = Pick<PointTable, "names" | "text"> & Readonly<Record<"begins" | "ends", readonly number[]>>;

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
  const { names, begins, ends, text: all } = isCsv ? parseCsv(text) : parseGeoJson(text);
  if (ends.length === 0) throw wrongBody("missing", "at least one point", "none");
  const seen = new Set<string>();
  const repeated = names.find((name) => name === "" || seen.size === seen.add(name).size);
  if (repeated !== undefined) throw wrongBody("repeated_column", "columns with different names", repeated);
  return {
    ...{ names, text: all, rowCount: ends.length / names.length },
    ...{ begins: new Uint32Array(begins), ends: new Uint32Array(ends) },
    digest: createHash("sha256").update(body).digest("base64url"),
  };
}

/** Visits the texts of a column, and lets other requests be answered in between. */
export async function eachText(
  { names, rowCount, text, begins, ends }: PointTable,
  column: number,
  visit: (text: string, row: number) => void,
): Promise<void> {
  for (let row = 0; row < rowCount; row += 1) {
    if (row % TEXTS_PER_TURN === TEXTS_PER_TURN - 1) await setImmediate();
    const at = row * names.length + column;
    visit(text.slice(begins[at], ends[at]), row);
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
function parseCsv(text: string): Texts {
  const [begins, ends]: [number[], number[]] = [[], []];
  // Fields that are not in the text as they are meant follow it.
  let others = "";
  let names: readonly string[] | undefined;
  let rowBegin = 0;
  let fieldCount = 0;
  const endRow = () => {
    const count = ends.length - rowBegin;
    if (count === 1 && begins[rowBegin] === ends[rowBegin]) ends.length = begins.length = rowBegin;
    else if (names === undefined) {
      const all = text + others;
      names = begins.map((begin, at) => all.slice(begin, ends[at]));
      ends.length = begins.length = 0;
    } else if (count !== names.length) {
      const expected = `${names.length} fields in row ${rowBegin / names.length + 1}`;
      throw wrongBody("csv_parsing", expected, `${count}`);
    }
    rowBegin = ends.length;
  };
  for (let at = 0; at < text.length || ends.length > rowBegin; ) {
    const isQuoted = text.charCodeAt(at) === QUOTE;
    const end = isQuoted ? quotedEnd(text, at) : plainEnd(text, at);
    const next = text.charCodeAt(end);
    if (end < text.length && next !== COMMA && next !== CR && next !== LF) {
      const line = names === undefined ? 1 : rowBegin / names.length + 2;
      throw wrongBody("csv_parsing", `a field of CSV in line ${line}`, text.slice(at, at + 40));
    }
    if (isQuoted || isSpace(text, at) || isSpace(text, end - 1)) {
      const value = text.slice(at, end);
      begins.push(text.length + others.length);
      others += isQuoted ? value.slice(1, -1).replaceAll('""', '"') : value.trim();
      ends.push(text.length + others.length);
    } else {
      begins.push(at);
      ends.push(end);
    }
    fieldCount += 1;
    assertSize(ends.length - rowBegin, fieldCount);
    at = end + (next === CR && text.charCodeAt(end + 1) === LF ? 2 : 1);
    if (next !== COMMA) endRow();
  }
  return { names: names ?? [], text: text + others, begins, ends };
}

/** Tells whether there is a character that `trim` may remove. */
function isSpace(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code <= 0x20 || code >= 0xa0;
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
function parseGeoJson(text: string): Texts {
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
    const [begins, ends]: [number[], number[]] = [[], []];
    let all = "";
    for (const record of records)
      for (const name of names) {
        begins.push(all.length);
        all += textOf(record.get(name));
        ends.push(all.length);
        assertAtMost(MAX_CHARACTERS, all.length, "characters");
      }
    return { names: [...names], text: all, begins, ends };
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
