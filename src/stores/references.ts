import { createBoundedMap } from "../collections/bounded-map.js";
import { createSingleFlight } from "../collections/single-flight.js";
import { messageOf, ZpublishError } from "../errors.js";
import { type CooperativeTask, runCooperatively } from "../event-loop/cooperative-task.js";
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue, toNumber } from "../json/json-value.js";
import { parseJson, parseJsonAround } from "../json/parse-json.js";
import { parseChunkKey } from "../zarr/chunk-reader.js";
import { assertKnownVersion, type ByteStore, childPlace, type ObjectVersion } from "./byte-store.js";
import { createKeyIndex, type KeyIndex } from "./key-index.js";
import { type ParquetValue, readColumns } from "./parquet.js";
import {
  createReferenceStore,
  type Reference,
  type ReferenceOptions,
  type ReferenceStore,
} from "./reference-store.js";

/** The longest string that V8 makes. */
const MAX_DOCUMENT_BYTES = 2 ** 29 - 24;

const DOCUMENT = /(?:^|\/)(?:\.z(?:group|array|attrs|metadata)|zarr\.json)$/;

const CHUNK_VALUE = /^(?:"base64:|\[\s*"[^"]*"\s*(?:,\s*\d+\s*,\s*\d+\s*)?\])/;

/**
 * Opens kerchunk references in JSON, of version 0 or 1.
 * @throws ZpublishError `source-unreadable` if there is no such file; `invalid-metadata`; `unsupported` for `gen`, and for templates
 * that are not `{{name}}`.
 */
export async function openReferences(
  container: ByteStore,
  key: string,
  options: ReferenceOptions,
): Promise<ReferenceStore> {
  const { parsed, version } = await readDocument(container, key, parseReferences);
  const find = (name: string): Reference | undefined => findExpanded(parsed, name);
  return createReferenceStore(
    {
      container,
      key,
      version,
      place: childPlace(container, key),
      find,
      findNow: find,
      list: (prefix) => parsed.table.keys.list(prefix),
      urls: async () => parsed.table.urls().map(parsed.expand),
    },
    options,
  );
}

/** Reads a document of references. A function of its own, so that the store does not retain its text. */
async function readDocument<T>(
  container: ByteStore,
  key: string,
  parse: (text: string, key: string) => CooperativeTask<T>,
): Promise<{ readonly parsed: T; readonly version: ObjectVersion }> {
  const read = await container.read(key, { maxByteLength: MAX_DOCUMENT_BYTES });
  if (read === undefined)
    throw new ZpublishError("source-unreadable", `'${key}': expected references, found nothing`);
  const text = new TextDecoder().decode(read.bytes);
  return { parsed: await runCooperatively(parse(text, key)), version: read.version };
}

function findExpanded({ table, expand }: ParsedReferences, key: string): Reference | undefined {
  const found = table.find(key);
  return found === undefined || "inline" in found ? found : { ...found, url: expand(found.url) };
}

/** Tells if a file looks like kerchunk references. @param bytes The file, or its first bytes. */
export function isReferences(bytes: Uint8Array): boolean {
  const text = new TextDecoder().decode(bytes.subarray(0, 4096));
  const [, key = "", value = ""] = /^\s*\{\s*"((?:[^"\\]|\\.)*)"\s*:\s*(.*)$/s.exec(text) ?? [];
  if (key === "version") return /^1\s*(?:$|,\s*"(?:refs|templates|gen)"\s*:)/.test(value);
  if (key === "refs" || key === "templates") return value.startsWith("{");
  if (key === "gen") return value.startsWith("[");
  // Version 0: a Zarr document, or a chunk as bytes or their URL.
  return DOCUMENT.test(key) || (key !== "" && CHUNK_VALUE.test(value));
}

/** The references of a JSON document. */
interface ParsedReferences {
  readonly table: ReferenceTable;
  /** Fills in the templates of a URL. */
  readonly expand: (url: string) => string;
}

/** Parses kerchunk's JSON in steps: version 1, or version 0, which is an object of references. */
function* parseReferences(text: string): CooperativeTask<ParsedReferences> {
  const table = createReferenceTable();
  const withTemplates = new Set<string>();
  let source = text;
  function take(key: string, start: number, end: number): void {
    const reference = parseReference(key, source.slice(start, end));
    table.set(key, reference);
    if ("url" in reference && reference.url.includes("{{")) withTemplates.add(reference.url);
  }

  // Version 0 has no such key, unless it is that of an array.
  const document = /"version"\s*:/.test(text) ? yield* parseJsonAround(text, "refs", take) : {};
  const version = isJsonObject(document) && Object.hasOwn(document, "version") ? document.version : undefined;
  if (!isJsonObject(document) || version === undefined || isJsonArray(version)) {
    source = `{"refs":${text}}`;
    assertObject(yield* parseJsonAround(source, "refs", take));
    return { table, expand: expandIn(new Map()) };
  }
  if (version !== 1) throw unsupported(`expected version 0 or 1, received ${String(version)}`);
  if (document.refs !== undefined) assertObject(document);
  const { gen } = document;
  if (gen !== undefined && !(isJsonArray(gen) && gen.length === 0))
    throw unsupported("expected each reference under 'refs', received a rule for them under 'gen'");
  const expand = expandIn(templatesOf(document));
  for (const url of withTemplates) {
    expand(url);
    yield;
  }
  return { table, expand };
}

function assertObject(document: JsonValue): void {
  if (!isJsonObject(document) || !isJsonObject(document.refs)) throw invalid("expected an object");
}

/** Characters of a URL with its templates filled in. */
const MAX_FILLED = 16_384;

/** Reads the templates, which name no others. */
function templatesOf(document: JsonObject): ReadonlyMap<string, string> {
  const templates = document.templates ?? {};
  if (!isJsonObject(templates)) throw invalid("expected 'templates' to be an object");
  const found = new Map<string, string>();
  for (const [name, value] of Object.entries(templates)) {
    if (typeof value !== "string") throw invalid(`expected the template '${name}' to be a text`);
    if (/\{[{%#]/.test(value))
      throw unsupported(`expected templates that name no others, received '${value.slice(0, 200)}'`);
    found.set(name, value);
  }
  return found;
}

/**
 * Returns the function that fills in URLs. Without templates, braces are part of a URL, as in fsspec. A function of its own, so
 * that what it returns does not retain the text.
 */
function expandIn(templates: ReadonlyMap<string, string>): (url: string) => string {
  return (url) => (templates.size > 0 && url.includes("{{") ? fillIn(url, templates) : url);
}

/** Puts the texts of templates in place of `{{name}}`. @throws ZpublishError `unsupported` */
function fillIn(text: string, templates: ReadonlyMap<string, string>): string {
  const refused = (expected: string) =>
    unsupported(`expected ${expected}, received '${text.replace(/\?.*$/s, "").slice(0, 200)}'`);
  if (text.length > MAX_FILLED) throw refused(`at most ${MAX_FILLED} characters`);
  if (/\{[%#]/.test(text)) throw refused("templates of the form {{name}}");
  let filled = "";
  for (const [index, part] of text.split(/\{\{([^{}]*)\}\}/).entries()) {
    const [, name] = index % 2 === 1 ? (/^\s*([A-Za-z_]\w*)\s*$/.exec(part) ?? []) : [];
    if (name === undefined && (index % 2 === 1 || part.includes("{{")))
      throw refused("templates of the form {{name}}, without arguments and arithmetic");
    const value = name === undefined ? part : templates.get(name);
    if (value === undefined) throw refused(`'${name}' among the templates`);
    filled += value;
    if (filled.length > MAX_FILLED) throw refused(`at most ${MAX_FILLED} characters once it is filled in`);
  }
  return filled;
}

const BASE64 = "base64:";

/** Parses the value of a reference: a text, an object, or an array with a URL. */
function parseReference(key: string, text: string): Reference {
  // Objects stay as they are written.
  if (text.startsWith("{")) return { inline: Buffer.from(text) };
  const value = parseJson(text);
  return typeof value === "string" ? inlineReference(key, value) : urlReference(key, value);
}

/** Returns inline data: a text, or bytes in base64. @throws ZpublishError `invalid-metadata` */
function inlineReference(key: string, text: string): Reference {
  if (!text.startsWith(BASE64)) return { inline: Buffer.from(text) };
  const encoded = text.slice(BASE64.length);
  if (/^[A-Za-z0-9+/\s]*={0,2}\s*$/.test(encoded)) return { inline: Buffer.from(encoded, "base64") };
  throw invalid(`expected base64 for '${key}'`);
}

function urlReference(key: string, value: JsonValue): Reference {
  const [url, offset, byteLength, ...more] = isJsonArray(value) ? value : [];
  if (typeof url === "string" && url !== "" && more.length === 0) {
    if (offset === undefined) return { url, part: undefined };
    if (isLength(offset) && isLength(byteLength) && Number.isSafeInteger(offset + byteLength)) {
      return { url, part: { offset, byteLength } };
    }
  }
  throw invalid(`expected a text, [URL] or [URL, offset, length] for '${key}'`);
}

function isLength(value: JsonValue | undefined): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

/** Creates an error about the structure of references. */
function invalid(problem: string): ZpublishError {
  return new ZpublishError("invalid-metadata", `references: ${problem}`);
}

function unsupported(problem: string): ZpublishError {
  return new ZpublishError("unsupported", `references: ${problem}`);
}

const MAX_RECORD_BYTES = 2 ** 28;
/** Record files that stay in memory, of 10,000 references each. */
const MAX_RECORDS = 32;

/** The chunks of an array, and where their references are. */
interface ArrayRecords {
  readonly gridShape: readonly number[];
  readonly separator: string;
}

/**
 * Opens kerchunk references in a directory of parquet files. These are read when a chunk of theirs is, and a few are kept.
 * Chunks are not listed.
 * @throws ZpublishError `source-unreadable` if there is no `.zmetadata`; `invalid-metadata`
 */
export async function openParquetReferences(
  container: ByteStore,
  folder: string,
  options: ReferenceOptions,
): Promise<ReferenceStore> {
  const file = `${folder}.zmetadata`;
  const { parsed, version } = await readDocument(container, file, parseMetadata);
  const { table } = parsed;
  const placeOf = placesIn(folder, parsed);
  const records = createRecords(container, file, version);
  return createReferenceStore(
    {
      container,
      key: file,
      version,
      place: childPlace(container, folder),
      async find(key) {
        const found = table.find(key);
        if (found !== undefined) return found;
        const place = placeOf(key);
        return place && (await records.read(place.name))?.[place.row];
      },
      findNow(key) {
        const found = table.find(key);
        if (found !== undefined) return found;
        const place = placeOf(key);
        if (place === undefined) return undefined;
        const record = records.loaded(place.name);
        return record === undefined ? "unknown" : record[place.row];
      },
      list: (prefix) => table.keys.list(prefix),
      urls: async () => new Set((await Promise.all(firstRecords(folder, parsed).map(urlsOfRecord))).flat()),
    },
    options,
  );

  /** A record that cannot be read is named when a chunk of it is read. */
  async function urlsOfRecord(name: string): Promise<string[]> {
    const record = (await records.read(name).catch(() => undefined)) ?? [];
    return record.flatMap((reference) => (reference && "url" in reference ? reference.url : []));
  }
}

/** Returns the names of the files with the first references of each array, as many as stay in memory. */
function firstRecords(folder: string, { table }: ParquetMetadata): string[] {
  const arrays = table.keys.all().filter((key) => /(?:^|\/)\.zarray$/.test(key));
  return arrays.slice(0, MAX_RECORDS).map((key) => `${folder}${key.slice(0, -".zarray".length)}refs.0.parq`);
}

/** File and row of a chunk's reference. */
interface RecordPlace {
  readonly name: string;
  readonly row: number;
}

/** Returns the function that finds the place of a chunk; undefined if the key is not that of a chunk. */
function placesIn(
  folder: string,
  { table, recordSize }: ParquetMetadata,
): (key: string) => RecordPlace | undefined {
  const arrays = new Map<string, ArrayRecords | undefined>();
  return (key) => {
    const path = arrayPathOf(key, (candidate) => table.find(`${candidate}.zarray`) !== undefined);
    if (path === undefined) return undefined;
    if (!arrays.has(path)) arrays.set(path, arrayRecords(table.find(`${path}.zarray`)));
    const array = arrays.get(path);
    const text = key.slice(path.length);
    if (array === undefined || (array.separator !== "." && text.includes("."))) return undefined;
    const coords = parseChunkKey(text.replaceAll(array.separator, "."), array.gridShape);
    if (coords === undefined) return undefined;
    const number = coords.reduce((sum, index, axis) => sum * array.gridShape[axis]! + index, 0);
    return { name: `${folder}${path}refs.${Math.floor(number / recordSize)}.parq`, row: number % recordSize };
  };
}

/** Record files by name, of which the latest stay in memory. */
interface Records {
  /** Undefined if there is no such file: none of its chunks exists. */
  read(name: string): Promise<ParquetRecord | undefined>;
  /** Undefined unless it is in memory. */
  loaded(name: string): ParquetRecord | undefined;
}

function createRecords(container: ByteStore, file: string, version: ObjectVersion): Records {
  const records = createBoundedMap<ParquetRecord>({ maxEntries: MAX_RECORDS });
  const reading = createSingleFlight<ParquetRecord | undefined>();
  const versions = new Map<string, ObjectVersion>();

  /** Reads a record file, always in the version in which it was read first. */
  async function readRecord(name: string): Promise<ParquetRecord | undefined> {
    const read = await container.read(name, { maxByteLength: MAX_RECORD_BYTES, version: versions.get(name) });
    if (read === undefined) {
      if (versions.has(name)) throw new ZpublishError("source-changed", `'${name}' is no longer there`);
      await assertKnownVersion(container, file, version);
      return undefined;
    }
    versions.set(name, read.version);
    const record = await readParquetRecord(name, read.bytes);
    records.set(name, record);
    return record;
  }

  return {
    read: async (name) => records.get(name) ?? reading.run(name, () => readRecord(name)),
    loaded: (name) => records.get(name),
  };
}

/** Finds the array in which a chunk's key lies, as the part of the key before it. */
function arrayPathOf(key: string, isArray: (path: string) => boolean): string | undefined {
  for (let end = key.length; end > 0; ) {
    const path = key.slice(0, key.lastIndexOf("/", end - 1) + 1);
    if (isArray(path)) return path;
    end = path.length - 1;
  }
  return undefined;
}

function arrayRecords(zarray: Reference | undefined): ArrayRecords | undefined {
  if (zarray === undefined || !("inline" in zarray)) return undefined;
  const document = parseJson(Buffer.from(zarray.inline).toString());
  if (!isJsonObject(document)) return undefined;
  const [shape, chunks] = [lengthsOf(document.shape), lengthsOf(document.chunks)];
  if (shape === undefined || chunks === undefined || shape.length !== chunks.length) return undefined;
  const gridShape = shape.map((length, axis) => Math.ceil(length / (chunks[axis] || 1)));
  return { gridShape, separator: document.dimension_separator === "/" ? "/" : "." };
}

function lengthsOf(value: JsonValue | undefined): number[] | undefined {
  if (!isJsonArray(value)) return undefined;
  const lengths = value.map((item) => toNumber(item) ?? Number.NaN);
  return lengths.every((length) => Number.isSafeInteger(length) && length >= 0) ? lengths : undefined;
}

interface ParquetMetadata {
  readonly table: ReferenceTable;
  readonly recordSize: number;
}

function* parseMetadata(text: string, file: string): CooperativeTask<ParquetMetadata> {
  const table = createReferenceTable();
  const document = yield* parseJsonAround(text, "metadata", (key, start, end) => {
    const value = text.slice(start, end);
    // A document may also be a text.
    table.set(key, { inline: Buffer.from(value.startsWith('"') ? String(parseJson(value)) : value) });
  });
  const recordSize = isJsonObject(document) ? toNumber(document.record_size) : undefined;
  if (!isJsonObject(document) || !isJsonObject(document.metadata) || !isRecordSize(recordSize)) {
    throw new ZpublishError(
      "invalid-metadata",
      `'${file}': expected 'metadata' and a 'record_size' of at least 1`,
    );
  }
  return { table, recordSize };
}

function isRecordSize(size: number | undefined): size is number {
  return size !== undefined && Number.isSafeInteger(size) && size > 0;
}

/** Tells if a `.zmetadata` is that of references in parquet. @param text The whole document. */
export function isParquetMetadata(text: string): boolean {
  return /"record_size"\s*:\s*\d/.test(text);
}

/** References by row; undefined for rows without any. */
type ParquetRecord = readonly (Reference | undefined)[];

const COLUMNS = ["path", "offset", "size", "raw"] as const;

/**
 * Reads a file of references: the columns `path`, `offset`, `size` and `raw`. A row without path and raw is absent; offset and
 * size of 0 mean the whole object.
 * @throws ZpublishError `invalid-metadata`
 */
export async function readParquetRecord(name: string, bytes: Uint8Array): Promise<ParquetRecord> {
  try {
    const { path, offset, size, raw } = await readColumns(bytes, COLUMNS);
    const rows = Array.from({ length: Math.max(path.length, raw.length) }).keys();
    return Array.from(rows, (row) => referenceOf(row, path[row], offset[row], size[row], raw[row]));
  } catch (error) {
    throw new ZpublishError("invalid-metadata", `'${name}': ${messageOf(error)}`, { cause: error });
  }
}

function referenceOf(
  row: number,
  path: ParquetValue,
  offset: ParquetValue = 0,
  size: ParquetValue = 0,
  raw: ParquetValue,
): Reference | undefined {
  const url = path instanceof Uint8Array ? Buffer.from(path).toString() : "";
  // Some writers have no null for bytes.
  if (raw instanceof Uint8Array && (raw.length > 0 || url === "")) return { inline: raw.slice() };
  if (url === "") return undefined;
  if (offset === 0 && size === 0) return { url, part: undefined };
  const [from, byteLength] = [Number(offset), Number(size)];
  if (from >= 0 && byteLength >= 0 && Number.isSafeInteger(from + byteLength)) {
    return { url, part: { offset: from, byteLength } };
  }
  throw new Error(`row ${row}: expected an offset and a size, received ${offset} and ${size}`);
}

const INLINE = -1;
/** Length of a reference to a whole object. */
const WHOLE = -1;
const MIN_CAPACITY = 1024;

/** References by key; every URL is kept once. */
interface ReferenceTable {
  readonly keys: KeyIndex;
  /** Sets a reference; the last one of a key counts. */
  set(key: string, reference: Reference): void;
  find(key: string): Reference | undefined;
  urls(): readonly string[];
}

/** Creates an empty table. */
function createReferenceTable(): ReferenceTable {
  const keys = createKeyIndex();
  const urls = createKeyIndex();
  let urlNumbers = new Int32Array(MIN_CAPACITY);
  let offsets = new Float64Array(MIN_CAPACITY);
  let byteLengths = new Float64Array(MIN_CAPACITY);
  let inline = new Uint8Array(64 * 1024);
  let inlineEnd = 0;

  function grow(): void {
    const capacity = urlNumbers.length * 2;
    urlNumbers = copyInto(new Int32Array(capacity), urlNumbers);
    offsets = copyInto(new Float64Array(capacity), offsets);
    byteLengths = copyInto(new Float64Array(capacity), byteLengths);
  }

  function keep(bytes: Uint8Array): number {
    if (inlineEnd + bytes.length > inline.length) {
      inline = copyInto(new Uint8Array(Math.max(inline.length * 2, inlineEnd + bytes.length)), inline);
    }
    inline.set(bytes, inlineEnd);
    inlineEnd += bytes.length;
    return inlineEnd - bytes.length;
  }

  return {
    keys,
    urls: urls.all,
    set(key, reference) {
      const number = keys.add(key);
      if (number >= urlNumbers.length) grow();
      const isInline = "inline" in reference;
      urlNumbers[number] = isInline ? INLINE : urls.add(reference.url);
      offsets[number] = isInline ? keep(reference.inline) : (reference.part?.offset ?? 0);
      byteLengths[number] = isInline ? reference.inline.length : (reference.part?.byteLength ?? WHOLE);
    },
    find(key) {
      const number = keys.find(key);
      if (number < 0) return undefined;
      const offset = offsets[number]!;
      const byteLength = byteLengths[number]!;
      const urlNumber = urlNumbers[number]!;
      if (urlNumber === INLINE) return { inline: inline.subarray(offset, offset + byteLength) };
      return { url: urls.keyOf(urlNumber), part: byteLength === WHOLE ? undefined : { offset, byteLength } };
    },
  };
}

function copyInto<T extends Int32Array | Float64Array | Uint8Array>(target: T, source: T): T {
  target.set(source);
  return target;
}
