import { createBoundedMap } from "../../collections/bounded-map.js";
import { ZpublishError } from "../../errors.js";
import { type CooperativeTask, runCooperatively } from "../../event-loop/cooperative-task.js";
import { isJsonArray, isJsonObject, type JsonValue, toNumber } from "../../json/json-value.js";
import { parseJson, parseJsonAround } from "../../json/parse-json.js";
import { parseChunkKey } from "../../zarr/chunk-reader.js";
import type { ByteStore, ObjectVersion } from "../byte-store.js";
import { childPlace } from "../child-place.js";
import { assertKnownVersion } from "../known-version.js";
import { type ParquetRecord, readParquetRecord } from "./parquet/parquet-record.js";
import {
  createReferenceStore,
  type Reference,
  type ReferenceOptions,
  type ReferenceStore,
} from "./reference-store.js";
import { createReferenceTable, type ReferenceTable } from "./reference-table.js";

const MAX_DOCUMENT_BYTES = 2 ** 29 - 24;
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
 * @param folder Name of the directory in `container`, with a slash at the end; empty for its root.
 * @throws ZpublishError `source-unreadable` if there is no `.zmetadata`; `invalid-metadata`
 */
export async function openParquetReferences(
  container: ByteStore,
  folder: string,
  options: ReferenceOptions,
): Promise<ReferenceStore> {
  const file = `${folder}.zmetadata`;
  const { table, recordSize, version } = await readMetadata(container, file);
  const arrays = new Map<string, ArrayRecords | undefined>();
  const records = createBoundedMap<Promise<ParquetRecord | undefined>>({ maxEntries: MAX_RECORDS });
  const loaded = new WeakMap<Promise<ParquetRecord | undefined>, ParquetRecord>();
  const versions = new Map<string, ObjectVersion>();

  /** Finds the file and the row of a chunk; undefined if the key is not that of a chunk. */
  function placeOf(key: string): { readonly name: string; readonly row: number } | undefined {
    const path = arrayPathOf(key, (candidate) => table.find(`${candidate}.zarray`) !== undefined);
    if (path === undefined) return undefined;
    if (!arrays.has(path)) arrays.set(path, arrayRecords(table.find(`${path}.zarray`)));
    const array = arrays.get(path);
    const text = key.slice(path.length);
    if (array === undefined || (array.separator !== "." && text.includes("."))) return undefined;
    const coords = parseChunkKey(text.replaceAll(array.separator, "."), array.gridShape);
    if (coords === undefined) return undefined;
    const number = coords.reduce((sum, index, axis) => sum * (array.gridShape[axis] as number) + index, 0);
    return { name: `${folder}${path}refs.${Math.floor(number / recordSize)}.parq`, row: number % recordSize };
  }

  function recordOf(name: string, signal?: AbortSignal): Promise<ParquetRecord | undefined> {
    const known = records.get(name);
    if (known !== undefined) return known;
    const reading = readRecord(name);
    records.set(name, reading);
    reading.then(
      (record) => void (record === undefined ? records.delete(name) : loaded.set(reading, record)),
      () => void records.delete(name),
    );
    signal?.throwIfAborted();
    return reading;
  }

  /** Reads a record file, always in the version in which it was read first; undefined if there is none: no chunk exists. */
  async function readRecord(name: string): Promise<ParquetRecord | undefined> {
    const read = await container.read(name, { maxByteLength: MAX_RECORD_BYTES, version: versions.get(name) });
    if (read === undefined) {
      if (versions.has(name)) throw new ZpublishError("source-changed", `'${name}' is no longer there`);
      await assertKnownVersion(container, file, version);
      return undefined;
    }
    versions.set(name, read.version);
    return readParquetRecord(name, read.bytes);
  }

  return createReferenceStore(
    {
      container,
      key: file,
      version,
      place: childPlace(container, folder),
      async find(key, signal) {
        const found = table.find(key);
        if (found !== undefined) return found;
        const place = placeOf(key);
        return place && (await recordOf(place.name, signal))?.(place.row);
      },
      findNow(key) {
        const found = table.find(key);
        if (found !== undefined) return found;
        const place = placeOf(key);
        if (place === undefined) return undefined;
        const reading = records.get(place.name);
        const record = reading && loaded.get(reading);
        return record === undefined ? "unknown" : record(place.row);
      },
      list: (prefix) => table.keys.list(prefix),
    },
    options,
  );
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
  readonly version: ObjectVersion;
}

async function readMetadata(container: ByteStore, file: string): Promise<ParquetMetadata> {
  const read = await container.read(file, { maxByteLength: MAX_DOCUMENT_BYTES });
  if (read === undefined)
    throw new ZpublishError("source-unreadable", `'${file}': expected references, found nothing`);
  const text = new TextDecoder().decode(read.bytes);
  return { ...(await runCooperatively(parseMetadata(file, text))), version: read.version };
}

function* parseMetadata(file: string, text: string): CooperativeTask<Omit<ParquetMetadata, "version">> {
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
