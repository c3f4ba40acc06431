import { parquetMetadataAsync, parquetReadObjects } from "hyparquet";
import { corrupt } from "../../../codec/codec.js";
import { decodeSnappyBlock } from "../../../codec/plain/snappy-block.js";
import { zstd } from "../../../codec/zstd.js";
import { messageOf, ZpublishError } from "../../../errors.js";
import { createSlice } from "../../../event-loop/cooperative-task.js";
import type { Reference } from "./reference-store.js";
import { createReferenceTable } from "./reference-table.js";

/** Rows of one file at most: 10,000 are usual. */
const MAX_ROWS = 10_000_000;
const MAX_PAGE_BYTES = 256 * 2 ** 20;
/** A copy of Snappy makes 64 bytes of three. */
const MAX_SNAPPY_RATIO = 32;

/** References by row. */
export type ParquetRecord = (row: number) => Reference | undefined;

/** Tells hyparquet's synchronous reader that a page has to be decoded first. */
class PageNeeded extends Error {
  constructor(
    readonly bytes: Uint8Array,
    readonly byteLength: number,
  ) {
    super("a page has not been decoded yet");
  }
}

/**
 * Reads a file of references: the columns `path`, `offset`, `size` and `raw`. A row without path and raw is absent; offset and
 * size of 0 mean the whole object.
 * @param name For messages.
 * @throws ZpublishError `invalid-metadata`
 */
export async function readParquetRecord(
  name: string,
  bytes: Uint8Array<ArrayBuffer>,
): Promise<ParquetRecord> {
  try {
    return await readRows(bytes);
  } catch (error) {
    throw new ZpublishError("invalid-metadata", `'${name}': ${messageOf(error)}`, { cause: error });
  }
}

async function readRows(bytes: Uint8Array<ArrayBuffer>): Promise<ParquetRecord> {
  const file = {
    byteLength: bytes.length,
    slice: (start: number, end?: number) => bytes.slice(start, end).buffer,
  };
  const metadata = await parquetMetadataAsync(file);
  if (metadata.num_rows > MAX_ROWS)
    throw new Error(`expected at most ${MAX_ROWS} rows, received ${metadata.num_rows}`);
  const names = new Set(metadata.schema.map(({ name }) => name));

  async function readColumn(column: string): Promise<readonly unknown[]> {
    if (!names.has(column)) return [];
    const pages: Uint8Array[] = [];
    for (;;) {
      let page = 0;
      const next = (input: Uint8Array, byteLength: number): Uint8Array => {
        const decoded = pages[page++];
        if (decoded === undefined) throw new PageNeeded(input, byteLength);
        return decoded;
      };
      try {
        const compressors = { ZSTD: next, SNAPPY: decodeSnappy };
        const rows = await parquetReadObjects({
          file,
          metadata,
          columns: [column],
          utf8: false,
          compressors,
        });
        return rows.map((row) => row[column] as unknown);
      } catch (error) {
        if (!(error instanceof PageNeeded)) throw error;
        // Our zstd may have to be awaited, and hyparquet does not wait. A column has one or two pages.
        pages.push(await decodeZstd(error.bytes, error.byteLength));
      }
    }
  }

  const [paths, offsets, sizes, raws] = [
    await readColumn("path"),
    await readColumn("offset"),
    await readColumn("size"),
    await readColumn("raw"),
  ];
  return recordOf(paths, offsets, sizes, raws);
}

async function recordOf(
  paths: readonly unknown[],
  offsets: readonly unknown[],
  sizes: readonly unknown[],
  raws: readonly unknown[],
): Promise<ParquetRecord> {
  const table = createReferenceTable();
  const slice = createSlice();
  for (let row = 0; row < Math.max(paths.length, raws.length); row++) {
    if (slice.isOver()) await slice.next();
    const reference = referenceOf(row, paths[row], offsets[row], sizes[row], raws[row]);
    if (reference !== undefined) table.set(String(row), reference);
  }
  return (row) => table.find(String(row));
}

function referenceOf(
  row: number,
  path: unknown,
  offset: unknown,
  size: unknown,
  raw: unknown,
): Reference | undefined {
  const inline = textBytes(raw);
  const url = textBytes(path)?.toString();
  // Some writers have no null for bytes.
  if (inline !== undefined && (inline.length > 0 || url === undefined)) return { inline };
  if (url === undefined || url === "") return undefined;
  const [from, byteLength] = [Number(offset ?? 0), Number(size ?? 0)];
  if (from === 0 && byteLength === 0) return { url, part: undefined };
  if (from >= 0 && byteLength >= 0 && Number.isSafeInteger(from + byteLength)) {
    return { url, part: { offset: from, byteLength } };
  }
  throw new Error(`row ${row}: expected an offset and a size, received ${offset} and ${size}`);
}

function textBytes(value: unknown): Buffer | undefined {
  if (typeof value === "string") return Buffer.from(value);
  return value instanceof Uint8Array ? Buffer.from(value) : undefined;
}

async function decodeZstd(bytes: Uint8Array, byteLength: number): Promise<Uint8Array> {
  checkPage(byteLength);
  const decoded = await zstd.decode(bytes, {
    codec: { id: "zstd" },
    decodedByteLength: byteLength,
    maxDecodedByteLength: byteLength,
    itemSize: 1,
  });
  if (decoded.length !== byteLength)
    throw corrupt(`zstd: expected ${byteLength} bytes, received ${decoded.length}`);
  return decoded;
}

function decodeSnappy(bytes: Uint8Array, byteLength: number): Uint8Array {
  checkPage(byteLength);
  if (byteLength > (bytes.length + 1) * MAX_SNAPPY_RATIO) {
    throw corrupt(`snappy: ${bytes.length} bytes cannot decode to ${byteLength}`);
  }
  const decoded = new Uint8Array(byteLength);
  if (!decodeSnappyBlock(bytes, decoded))
    throw corrupt(`snappy: expected ${byteLength} bytes, received others`);
  return decoded;
}

function checkPage(byteLength: number): void {
  if (byteLength >= 0 && byteLength <= MAX_PAGE_BYTES) return;
  throw corrupt(`expected a page of at most ${MAX_PAGE_BYTES} bytes, received ${byteLength}`);
}
