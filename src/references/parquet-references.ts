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
  let record = 0;
  let rows: (ChunkReference | undefined)[] = [];

  async function flush(): Promise<void> {
    if (rows.some((row) => row !== undefined)) {
      const file = join(folder, ...path.split("/"), `refs.${record}.parq`);
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, await parquetOf(rows));
    }
    record++;
    rows = [];
  }

  for await (const step of referenceSteps(snapshot, rules)) {
    if ("document" in step) {
      metadata[step.key] = step.document;
      continue;
    }
    if (step.path !== path) {
      await flush();
      path = step.path;
      record = 0;
    }
    for (const { reference } of step.chunks) {
      rows.push(reference);
      if (rows.length === RECORD_SIZE) await flush();
    }
  }
  await flush();
  const content = { metadata, zarr_consolidated_format: 1, record_size: RECORD_SIZE };
  await writeFile(join(folder, ".zmetadata"), stringifyJson(content));
}

const MAGIC = Buffer.from("PAR1");
/** Types and codecs of Parquet by their numbers (`parquet.thrift`). */
const [INT64, BYTE_ARRAY, UTF8, ZSTD, PLAIN, RLE, DATA_PAGE] = [2, 6, 0, 6, 0, 3, 0] as const;
const [REQUIRED, OPTIONAL] = [0, 1] as const;

/** A column: one value per row; undefined for null. */
interface Column {
  readonly name: string;
  readonly isText: boolean;
  readonly values: readonly (bigint | Uint8Array | undefined)[];
}

/** Makes a Parquet file of references: the columns of kerchunk, in one page each. Offset and size of a whole object are 0. */
async function parquetOf(rows: readonly (ChunkReference | undefined)[]): Promise<Uint8Array> {
  const targets = rows.map((row) => (row !== undefined && "url" in row ? row : undefined));
  const columns: readonly Column[] = [
    { name: "path", isText: true, values: targets.map((row) => row && Buffer.from(row.url)) },
    { name: "offset", isText: false, values: targets.map((row) => BigInt(row?.part?.offset ?? 0)) },
    { name: "size", isText: false, values: targets.map((row) => BigInt(row?.part?.byteLength ?? 0)) },
    {
      name: "raw",
      isText: false,
      values: rows.map((row) => (row !== undefined && "bytes" in row ? row.bytes : undefined)),
    },
  ];
  const pieces: Uint8Array[] = [MAGIC];
  let offset = MAGIC.length;
  const chunks: Thrift[] = [];
  for (const { name, values } of columns) {
    const type = typeof values[0] === "bigint" ? INT64 : BYTE_ARRAY;
    const page = Buffer.concat(
      type === INT64 ? values.map(itemOf) : [levelsOf(values), ...values.map(itemOf)],
    );
    const step = {
      codec: { id: "zstd", level: 3 },
      decodedByteLength: null,
      maxDecodedByteLength: page.length,
      itemSize: 1,
    };
    const packed = Uint8Array.from((await zstd.encode?.(page, step)) ?? []);
    const pageHeader = { 1: values.length, 2: PLAIN, 3: RLE, 4: RLE };
    const header = thriftBytes({ 1: DATA_PAGE, 2: page.length, 3: packed.length, 5: pageHeader });
    pieces.push(header, packed);
    const [whole, stored] = [header.length + page.length, header.length + packed.length].map(BigInt) as [
      bigint,
      bigint,
    ];
    const chunk = {
      1: type,
      2: [PLAIN, RLE],
      3: [name],
      4: ZSTD,
      5: BigInt(values.length),
      6: whole,
      7: stored,
      9: BigInt(offset),
    };
    chunks.push({ 2: BigInt(offset), 3: chunk });
    offset += header.length + packed.length;
  }
  const schema = columns.map(({ name, isText, values }): Thrift => {
    const isNumber = typeof values[0] === "bigint";
    const element = { 1: isNumber ? INT64 : BYTE_ARRAY, 3: isNumber ? REQUIRED : OPTIONAL, 4: name };
    return isText ? { ...element, 6: UTF8 } : element;
  });
  const count = BigInt(rows.length);
  const group = { 1: chunks, 2: BigInt(offset - MAGIC.length), 3: count };
  const footer = thriftBytes({
    1: 1,
    2: [{ 4: "schema", 5: columns.length }, ...schema],
    3: count,
    4: [group],
    6: "zpublish",
  });
  const length = Buffer.alloc(4);
  length.writeUInt32LE(footer.length);
  return Buffer.concat([...pieces, footer, length, MAGIC]);
}

/** Writes a value as Parquet's plain encoding has it; nothing for null. */
function itemOf(value: bigint | Uint8Array | undefined): Uint8Array {
  if (value === undefined) return Buffer.alloc(0);
  const item = Buffer.alloc(typeof value === "bigint" ? 8 : 4 + value.length);
  if (typeof value === "bigint") item.writeBigInt64LE(value);
  else {
    item.writeUInt32LE(value.length);
    item.set(value, 4);
  }
  return item;
}

/** Writes which values of a column there are: one run of packed bits, after its length. */
function levelsOf(values: Column["values"]): Uint8Array {
  const bits = Buffer.alloc(Math.ceil(values.length / 8));
  for (const [row, value] of values.entries()) if (value !== undefined) bits[row >> 3]! |= 1 << (row & 7);
  const run = Buffer.from([...varint(BigInt(bits.length * 2 + 1)), ...bits]);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(run.length);
  return Buffer.concat([length, run]);
}

/** A value of Thrift's compact protocol: i32, i64, text, a list of at most 14 values of one type, or a struct by field numbers. */
type Thrift = number | bigint | string | readonly Thrift[] | { readonly [field: number]: Thrift };

function thriftBytes(value: Thrift): Uint8Array {
  return Buffer.from(encodeThrift(value));
}

function encodeThrift(value: Thrift): number[] {
  // Zigzag: signs go to the lowest bit.
  if (typeof value === "number" || typeof value === "bigint") return varint(BigInt(value) * 2n);
  if (typeof value === "string") return [...varint(BigInt(Buffer.byteLength(value))), ...Buffer.from(value)];
  if (isThriftList(value))
    return [(value.length << 4) | thriftType(value[0] as Thrift), ...value.flatMap(encodeThrift)];
  let before = 0;
  const bytes: number[] = [];
  // Fields come in ascending order.
  for (const [name, field] of Object.entries(value)) {
    bytes.push(((Number(name) - before) << 4) | thriftType(field), ...encodeThrift(field));
    before = Number(name);
  }
  return [...bytes, 0];
}

function thriftType(value: Thrift): number {
  if (typeof value === "number") return 5;
  if (typeof value === "bigint") return 6;
  if (typeof value === "string") return 8;
  return isThriftList(value) ? 9 : 12;
}

function isThriftList(value: Thrift): value is readonly Thrift[] {
  return Array.isArray(value);
}

/** Writes a number of at least 0 in groups of 7 bits, the lowest first. */
function varint(value: bigint): number[] {
  return value < 128n ? [Number(value)] : [Number(value & 127n) | 128, ...varint(value >> 7n)];
}
