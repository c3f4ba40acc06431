import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { zstd } from "../codec/zstd.js";
import type { DatasetSnapshot } from "../dataset/dataset.js";
import type { JsonObject } from "../json/json-value.js";
import { stringifyJson } from "../json/stringify-json.js";
import { type ChunkReference, type ReferenceRules, referenceSteps } from "./dataset-references.js";

/** Rows of a file, as fsspec writes by default. */
const RECORD_SIZE = 10_000;

/**
 * Writes the references of a dataset into an empty folder as fsspec's `LazyReferenceMapper` reads them: `.zmetadata`, and for each array
 * `refs.N.parq` with 10,000 chunks each. A file without any reference is not written.
 * @throws as {@link referenceSteps}; Error if a file cannot be written
 */
export async function writeParquetReferences(
  folder: string,
  snapshot: DatasetSnapshot,
  rules: ReferenceRules,
): Promise<void> {
  const metadata: Record<string, JsonObject> = {};
  let path = "";
  /** Rows of files that are not written yet, by the number of the file; and how many of them were found. */
  const records = new Map<number, { readonly rows: (ChunkReference | undefined)[]; found: number }>();

  async function write(record: number): Promise<void> {
    const { rows = [] } = records.get(record) ?? {};
    records.delete(record);
    if (rows.every((row) => row === undefined)) return;
    const file = join(folder, ...path.split("/"), `refs.${record}.parq`);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, await parquetOf(rows));
  }

  async function writeAll(): Promise<void> {
    for (const record of records.keys()) await write(record);
  }

  for await (const step of referenceSteps(snapshot, rules)) {
    if ("document" in step) {
      metadata[step.key] = step.document;
      continue;
    }
    if (step.path !== path) await writeAll();
    path = step.path;
    for (const { number, reference } of step.chunks) {
      const record = Math.floor(number / RECORD_SIZE);
      const length = Math.min(RECORD_SIZE, step.count - record * RECORD_SIZE);
      const found = records.get(record) ?? { rows: Array(length).fill(undefined), found: 0 };
      records.set(record, found);
      found.rows[number % RECORD_SIZE] = reference;
      found.found++;
      if (found.found === length) await write(record);
    }
  }
  await writeAll();
  const content = { metadata, zarr_consolidated_format: 1, record_size: RECORD_SIZE };
  await writeFile(join(folder, ".zmetadata"), stringifyJson(content));
}

/** Types, codecs and encodings of Parquet (`parquet.thrift`). */
const [INT64, BYTE_ARRAY, UTF8, ZSTD, PLAIN, RLE, DATA_PAGE] = [2, 6, 0, 6, 0, 3, 0] as const;
const [REQUIRED, OPTIONAL] = [0, 1] as const;
const MAGIC = Buffer.from("PAR1");

/** Makes a Parquet file with the columns of kerchunk, in one page each. Offset and size of a whole object are 0. */
async function parquetOf(rows: readonly (ChunkReference | undefined)[]): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [MAGIC];
  const schema: Thrift[] = [{ 4: "schema", 5: 4 }];
  const chunks: Thrift[] = [];
  const count = BigInt(rows.length);
  let offset = BigInt(MAGIC.length);
  for (const [name, values] of Object.entries(columnsOf(rows))) {
    const isNumber = name === "offset" || name === "size";
    const type = isNumber ? INT64 : BYTE_ARRAY;
    const page = Buffer.concat([...(isNumber ? [] : levelsOf(values)), ...values.flatMap(itemOf)]);
    const packed = await compress(page);
    const pageHeader = { 1: rows.length, 2: PLAIN, 3: RLE, 4: RLE };
    const header = encodeThrift({ 1: DATA_PAGE, 2: page.length, 3: packed.length, 5: pageHeader });
    const [whole, stored] = [page, packed].map(({ length }) => BigInt(header.length + length)) as [
      bigint,
      bigint,
    ];
    const chunk = { 1: type, 2: [PLAIN, RLE], 3: [name], 4: ZSTD, 5: count, 6: whole, 7: stored, 9: offset };
    chunks.push({ 2: offset, 3: chunk });
    const element = { 1: type, 3: isNumber ? REQUIRED : OPTIONAL, 4: name };
    schema.push(name === "path" ? { ...element, 6: UTF8 } : element);
    pieces.push(Buffer.from(header), packed);
    offset += stored;
  }
  const group = { 1: chunks, 2: offset, 3: count };
  const footer = encodeThrift({ 1: 1, 2: schema, 3: count, 4: [group], 6: "zpublish" });
  return Buffer.concat([...pieces, Buffer.from(footer), lengthOf(footer), MAGIC]);
}

/** Returns the columns by name; undefined stands for null. */
function columnsOf(
  rows: readonly (ChunkReference | undefined)[],
): Readonly<Record<string, readonly (number | Uint8Array | undefined)[]>> {
  return {
    path: rows.map(({ location } = {}) => (location === undefined ? undefined : Buffer.from(location))),
    offset: rows.map((row) => row?.part?.offset ?? 0),
    size: rows.map((row) => row?.part?.byteLength ?? 0),
    raw: rows.map((row) => row?.bytes),
  };
}

/** @returns Memory of its own. */
async function compress(bytes: Uint8Array): Promise<Uint8Array> {
  const step = { decodedByteLength: null, maxDecodedByteLength: bytes.length, itemSize: 1 };
  return Uint8Array.from((await zstd.encode?.(bytes, { codec: { id: "zstd", level: 3 }, ...step })) ?? []);
}

/** Writes a value in Parquet's plain encoding; nothing for null. */
function itemOf(value: number | Uint8Array | undefined): Uint8Array[] {
  if (value === undefined) return [];
  if (typeof value !== "number") return [lengthOf(value), value];
  const item = Buffer.alloc(8);
  item.writeBigInt64LE(BigInt(value));
  return [item];
}

/** Writes which values of a column there are: one run of packed bits, after its length. */
function levelsOf(values: readonly unknown[]): Uint8Array[] {
  const bits = Buffer.alloc(Math.ceil(values.length / 8));
  for (const [row, value] of values.entries()) if (value !== undefined) bits[row >> 3]! |= 1 << (row & 7);
  const run = Buffer.from([...varint(BigInt(bits.length * 2 + 1)), ...bits]);
  return [lengthOf(run), run];
}

function lengthOf({ length }: { readonly length: number }): Uint8Array {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(length);
  return bytes;
}

/** A value of Thrift's compact protocol: i32, i64, text, a list of at most 14 values of one type, or a struct by field numbers. */
type Thrift = number | bigint | string | readonly Thrift[] | { readonly [field: number]: Thrift };

const isThriftList = (value: Thrift): value is readonly Thrift[] => Array.isArray(value);

/** Writes a value whose numbers are at least 0. */
function encodeThrift(value: Thrift): number[] {
  // Signs would be in the lowest bit.
  if (typeof value === "number" || typeof value === "bigint") return varint(BigInt(value) * 2n);
  if (typeof value === "string") return [...varint(BigInt(Buffer.byteLength(value))), ...Buffer.from(value)];
  if (isThriftList(value))
    return [(value.length << 4) | thriftType(value[0] as Thrift), ...value.flatMap(encodeThrift)];
  let before = 0;
  // Fields of an object with numbers as names are in ascending order.
  const fields = Object.entries(value).flatMap(([name, field]) => {
    const head = ((Number(name) - before) << 4) | thriftType(field);
    before = Number(name);
    return [head, ...encodeThrift(field)];
  });
  return [...fields, 0];
}

function thriftType(value: Thrift): number {
  const types: Readonly<Record<string, number>> = { number: 5, bigint: 6, string: 8 };
  return types[typeof value] ?? (isThriftList(value) ? 9 : 12);
}

/** Writes a number of at least 0 in groups of 7 bits, the lowest first. */
function varint(value: bigint): number[] {
  return value < 128n ? [Number(value)] : [Number(value & 127n) | 128, ...varint(value >> 7n)];
}
