import { corrupt } from "../codec/codec.js";
import { zstd } from "../codec/zstd.js";
import { createSlice } from "../event-loop/cooperative-task.js";

/*
 * Parquet as kerchunk, fsspec and pandas write references: flat columns of integers and bytes, plain or with a dictionary.
 * hyparquet reads far more of it, but loops for ever over some damaged pages, or fills the memory (version 1.31.5).
 */

/** A value of a column; undefined for null. */
export type ParquetValue = number | Uint8Array | undefined;

/** Rows of a file at most; 10,000 are usual. */
const MAX_ROWS = 2 ** 22;
const MAGIC = "PAR1";
/** Magic and length of the metadata. */
const FOOTER_BYTES = 8;

const INT32 = 1;
const INT64 = 2;
const BYTE_ARRAY = 6;

const DATA_PAGE = 0;
const DICTIONARY_PAGE = 2;

const PLAIN = 0;
const PLAIN_DICTIONARY = 2;
const RLE_DICTIONARY = 8;

/** A column in one group of rows. */
interface ColumnChunk {
  readonly type: number;
  readonly codec: number;
  readonly isOptional: boolean;
  readonly rows: number;
  readonly offset: number;
  readonly end: number;
}

/**
 * Reads columns of a Parquet file; those that it has not are empty.
 * @throws Error if it is damaged, or of a form that references do not have.
 */
export async function readColumns<K extends string>(
  bytes: Uint8Array,
  names: readonly K[],
): Promise<Record<K, ParquetValue[]>> {
  const footer = bytes.length - FOOTER_BYTES;
  const magic = Buffer.from(bytes.subarray(Math.max(0, footer + 4))).toString("latin1");
  if (footer < 4 || magic !== MAGIC) throw new Error("expected a Parquet file, received something else");
  const start = footer - new DataView(bytes.buffer, bytes.byteOffset).getUint32(footer, true);
  if (start < 4) throw new Error("expected shorter metadata");
  const { struct: metadata } = readThrift(bytes.subarray(0, footer), start);
  const rows = numberOf(metadata, 3);
  if (rows < 0 || rows > MAX_ROWS) throw new Error(`expected at most ${MAX_ROWS} rows, received ${rows}`);
  const columns = {} as Record<K, ParquetValue[]>;
  for (const name of names) {
    columns[name] = [];
    for (const chunk of chunksOf(metadata, name, start)) {
      if (columns[name].length + chunk.rows > rows) throw new Error(`expected ${rows} rows, received more`);
      await readChunk(bytes, chunk, columns[name]);
    }
  }
  return columns;
}

function chunksOf(metadata: ThriftStruct, name: string, end: number): ColumnChunk[] {
  const element = structsOf(metadata, 2).find((element) => textOf(element.get(4)) === name);
  if (element === undefined) return [];
  if (element.get(3) === 2 || element.has(5)) throw new Error(`expected a flat column '${name}'`);
  return structsOf(metadata, 4).map((group) => {
    const column = structsOf(group, 1)
      .map((chunk) => structOf(chunk, 3))
      .find((found) => textOf(listOf(found, 3)[0]) === name);
    if (column === undefined) throw new Error(`expected the column '${name}' in all groups of rows`);
    const offset = Math.min(
      numberOf(column, 9),
      column.has(11) ? numberOf(column, 11) : Number.POSITIVE_INFINITY,
    );
    const chunk = { offset, end: offset + numberOf(column, 7), rows: numberOf(group, 3) };
    if (offset < 0 || chunk.end > end || chunk.rows < 0)
      throw new Error(`expected '${name}' within the file`);
    return {
      ...chunk,
      type: numberOf(column, 1),
      codec: numberOf(column, 4),
      isOptional: element.get(3) === 1,
    };
  });
}

async function readChunk(bytes: Uint8Array, chunk: ColumnChunk, values: ParquetValue[]): Promise<void> {
  const slice = createSlice();
  const until = values.length + chunk.rows;
  let dictionary: ParquetValue[] = [];
  for (let at = chunk.offset; values.length < until; ) {
    if (slice.isOver()) await slice.next();
    const { struct: header, end: start } = readThrift(bytes.subarray(0, chunk.end), at);
    at = start + numberOf(header, 3);
    if (at < start || at > chunk.end) throw new Error("expected a page within its column");
    const page = bytes.subarray(start, at);
    const byteLength = numberOf(header, 2);
    const type = numberOf(header, 1);
    if (type === DICTIONARY_PAGE) {
      const content = await decompressPage(chunk.codec, page, byteLength);
      dictionary = readPlain(content, chunk.type, numberOf(structOf(header, 7), 1));
    } else if (type === DATA_PAGE) {
      const fields = structOf(header, 5);
      const count = numberOf(fields, 1);
      if (count < 0 || count > until - values.length) throw new Error("expected fewer values in a page");
      const read = splitPage(chunk, await decompressPage(chunk.codec, page, byteLength), count);
      const present = read.levels === undefined ? count : read.levels.reduce((sum, level) => sum + level, 0);
      const found = readValues(read.content, chunk.type, numberOf(fields, 2), present, dictionary);
      let next = 0;
      for (let row = 0; row < count; row++) values.push(read.levels?.[row] === 0 ? undefined : found[next++]);
    } else throw new Error(`expected data pages of version 1, received a page of type ${type}`);
  }
}

/** A page: levels (1: present, 0: null), unless all values are present, and the values after them. */
interface SplitPage {
  readonly levels: Uint32Array | undefined;
  readonly content: Uint8Array;
}

function splitPage({ isOptional }: ColumnChunk, content: Uint8Array, count: number): SplitPage {
  if (!isOptional) return { levels: undefined, content };
  if (content.length < 4) throw new Error("expected levels in a page");
  const end = 4 + new DataView(content.buffer, content.byteOffset).getUint32(0, true);
  if (end > content.length) throw new Error("expected shorter levels in a page");
  return { levels: readHybrid(content.subarray(4, end), 1, count), content: content.subarray(end) };
}

function readValues(
  content: Uint8Array,
  type: number,
  encoding: number,
  count: number,
  dictionary: readonly ParquetValue[],
): ParquetValue[] {
  if (encoding === PLAIN) return readPlain(content, type, count);
  if (encoding !== PLAIN_DICTIONARY && encoding !== RLE_DICTIONARY) {
    throw new Error(`expected plain values or a dictionary, received encoding ${encoding}`);
  }
  if (count === 0) return [];
  return Array.from(readHybrid(content.subarray(1), content[0] ?? 0, count), (index) => {
    if (index >= dictionary.length) throw new Error(`expected a dictionary of more than ${index} values`);
    return dictionary[index];
  });
}

function readPlain(bytes: Uint8Array, type: number, count: number): ParquetValue[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const width = type === INT64 ? 8 : 4;
  if (type !== INT32 && type !== INT64 && type !== BYTE_ARRAY)
    throw new Error(`expected integers or bytes, received type ${type}`);
  if (count < 0 || count * width > bytes.length)
    throw new Error(`expected ${count} values in ${bytes.length} bytes`);
  if (type === INT32) return Array.from({ length: count }, (_, index) => view.getInt32(index * 4, true));
  if (type === INT64)
    return Array.from({ length: count }, (_, index) => Number(view.getBigInt64(index * 8, true)));
  let at = 0;
  return Array.from({ length: count }, () => {
    if (at + 4 > bytes.length) throw new Error("expected longer values");
    const start = at + 4;
    at = start + view.getUint32(at, true);
    if (at > bytes.length) throw new Error("expected longer values");
    return bytes.subarray(start, at);
  });
}

function numberOf(struct: ThriftStruct, field: number): number {
  const value = struct.get(field);
  if (typeof value === "number" && Number.isSafeInteger(value)) return value;
  throw new Error(`expected an integer as field ${field} of the metadata`);
}

function structOf(struct: ThriftStruct, field: number): ThriftStruct {
  const value = struct.get(field);
  if (value instanceof Map) return value;
  throw new Error(`expected field ${field} of the metadata`);
}

function listOf(struct: ThriftStruct, field: number): readonly ThriftValue[] {
  const value = struct.get(field);
  if (Array.isArray(value)) return value;
  throw new Error(`expected a list as field ${field} of the metadata`);
}

function structsOf(struct: ThriftStruct, field: number): ThriftStruct[] {
  return listOf(struct, field).map((item) => {
    if (item instanceof Map) return item;
    throw new Error(`expected structs in field ${field} of the metadata`);
  });
}

function textOf(value: ThriftValue | undefined): string | undefined {
  return value instanceof Uint8Array ? Buffer.from(value).toString() : undefined;
}

const UNCOMPRESSED = 0;
const ZSTD = 6;

const MAX_PAGE_BYTES = 256 * 2 ** 20;

/** Decompresses a page of a Parquet file. @throws ZpublishError `corrupt-chunk` */
async function decompressPage(codec: number, bytes: Uint8Array, byteLength: number): Promise<Uint8Array> {
  if (byteLength < 0 || byteLength > MAX_PAGE_BYTES) {
    throw corrupt(`expected a page of at most ${MAX_PAGE_BYTES} bytes, received ${byteLength}`);
  }
  const decoded = byteLength === 0 ? new Uint8Array(0) : await decode(codec, bytes, byteLength);
  if (decoded.length !== byteLength)
    throw corrupt(`expected a page of ${byteLength} bytes, received ${decoded.length}`);
  return decoded;
}

async function decode(codec: number, bytes: Uint8Array, byteLength: number): Promise<Uint8Array> {
  if (codec === UNCOMPRESSED) return bytes;
  if (codec !== ZSTD)
    throw corrupt(`expected a page without compression or of zstd, received codec ${codec}`);
  return zstd.decode(bytes, {
    codec: { id: "zstd" },
    decodedByteLength: byteLength,
    maxDecodedByteLength: byteLength,
    itemSize: 1,
  });
}

/**
 * Reads Parquet's hybrid of runs and bit-packed integers, which holds levels and places in a dictionary.
 * @param width Bits of an integer, at most 32.
 * @throws Error if there are fewer than `count`.
 */
function readHybrid(bytes: Uint8Array, width: number, count: number): Uint32Array {
  if (width > 32) throw new Error(`expected integers of at most 32 bits, received ${width}`);
  const values = new Uint32Array(count);
  const valueBytes = (width + 7) >> 3;
  let at = 0;
  let seen = 0;

  function byte(): number {
    const value = bytes[at++];
    if (value === undefined) throw new Error(`expected ${count} integers, received ${seen}`);
    return value;
  }

  function varint(): number {
    let value = 0;
    for (let scale = 1; scale <= 2 ** 28; scale *= 128) {
      const next = byte();
      value += (next & 127) * scale;
      if (next < 128) return value;
    }
    throw new Error("expected a length of at most 32 bits");
  }

  while (seen < count) {
    const head = varint();
    if (head % 2 === 0) {
      let value = 0;
      for (let index = 0; index < valueBytes; index++) value += byte() * 256 ** index;
      const end = Math.min(seen + head / 2, count);
      if (end === seen) throw new Error("expected a run of at least one integer");
      values.fill(value, seen, end);
      seen = end;
      continue;
    }
    const packed = Math.min(((head - 1) / 2) * 8, count - seen);
    if (packed === 0) throw new Error("expected at least one group of integers");
    let held = 0;
    let bits = 0;
    for (let index = 0; index < packed; index++) {
      for (; bits < width; bits += 8) held += byte() * 2 ** bits;
      values[seen++] = held % 2 ** width;
      held = Math.floor(held / 2 ** width);
      bits -= width;
    }
    // Groups are whole: the rest of the last one is padding.
    at += Math.floor((((head - 1) / 2) * 8 * width - (packed * width + bits)) / 8);
  }
  return values;
}

/** A value of Thrift's compact protocol. Integers beyond 2^53 are rounded: none is that large here. */
type ThriftValue = number | boolean | Uint8Array | readonly ThriftValue[] | ThriftStruct;

/** A struct: values by the numbers of their fields. */
type ThriftStruct = ReadonlyMap<number, ThriftValue>;

/** Metadata of Parquet nests six levels. */
const MAX_DEPTH = 16;

/**
 * Reads a struct in Thrift's compact protocol, in which Parquet's metadata is written.
 * @returns The struct, and where it ends.
 * @throws Error if it does not end, or is of another form.
 */
function readThrift(
  bytes: Uint8Array,
  offset: number,
): { readonly struct: ThriftStruct; readonly end: number } {
  const reader = new ThriftReader(bytes, offset);
  return { struct: reader.struct(0), end: reader.at };
}

class ThriftReader {
  readonly bytes: Uint8Array;
  at: number;

  constructor(bytes: Uint8Array, offset: number) {
    this.bytes = bytes;
    this.at = offset;
  }

  struct(depth: number): ThriftStruct {
    const fields = new Map<number, ThriftValue>();
    let field = 0;
    for (let head = this.byte(); head !== 0; head = this.byte()) {
      field = head >> 4 === 0 ? this.integer() : field + (head >> 4);
      fields.set(field, this.value(head & 15, depth));
    }
    return fields;
  }

  private value(type: number, depth: number): ThriftValue {
    if (depth > MAX_DEPTH) throw new Error(`expected at most ${MAX_DEPTH} levels of metadata`);
    if (type === 1 || type === 2) return type === 1;
    if (type === 3) return (this.byte() << 24) >> 24;
    if (type >= 4 && type <= 6) return this.integer();
    // Floating-point numbers are read past.
    if (type === 7) return this.take(8);
    if (type === 8) return this.take(Number(this.varint()));
    if (type === 9 || type === 10) return this.list(depth + 1);
    if (type === 12) return this.struct(depth + 1);
    throw new Error(`expected a known type of metadata, received ${type}`);
  }

  private list(depth: number): ThriftValue[] {
    const head = this.byte();
    const size = head >> 4 === 15 ? Number(this.varint()) : head >> 4;
    // Each item takes a byte at least.
    if (size > this.bytes.length - this.at)
      throw new Error(`expected a shorter list, received one of ${size} items`);
    const type = head & 15;
    // Booleans are bytes in a list.
    const isBoolean = type === 1 || type === 2;
    return Array.from({ length: size }, () => (isBoolean ? this.byte() === 1 : this.value(type, depth)));
  }

  private integer(): number {
    const value = this.varint();
    return Number((value >> 1n) ^ -(value & 1n));
  }

  private varint(): bigint {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const next = this.byte();
      value |= BigInt(next & 127) << shift;
      if (next < 128) return value;
    }
    throw new Error("expected an integer of at most 64 bits");
  }

  private take(byteLength: number): Uint8Array {
    if (byteLength > this.bytes.length - this.at) throw new Error("expected more metadata, it is cut short");
    this.at += byteLength;
    return this.bytes.subarray(this.at - byteLength, this.at);
  }

  private byte(): number {
    const value = this.bytes[this.at++];
    if (value === undefined) throw new Error("expected more metadata, it is cut short");
    return value;
  }
}
