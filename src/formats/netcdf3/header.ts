import { ZpublishError } from "../../errors.js";
import { type CooperativeTask, runCooperatively } from "../../event-loop/cooperative-task.js";
import type { JsonValue } from "../../json/json-value.js";
import { pythonFloat } from "../../json/stringify-json.js";
import type { FileBlocks } from "../file-format.js";

/** The header of a file, as it is written (NetCDF Classic Format Specification). */
export interface Netcdf3Header {
  readonly version: Netcdf3Version;
  readonly recordCount: number;
  readonly attributes: readonly Netcdf3Attribute[];
  readonly variables: readonly Netcdf3Variable[];
  readonly byteLength: number;
}

/** A dimension. The length of the record dimension is 0. */
interface Netcdf3Dimension {
  readonly name: string;
  readonly length: number;
}

/** An attribute with its items. */
export interface Netcdf3Attribute {
  readonly name: string;
  readonly type: Netcdf3Type;
  readonly bytes: Uint8Array;
}

/** A variable. Its `vsize` is left out: it may be less than the size, which the shape tells. */
export interface Netcdf3Variable {
  readonly name: string;
  readonly dimensions: readonly Netcdf3Dimension[];
  readonly attributes: readonly Netcdf3Attribute[];
  readonly type: Netcdf3Type;
  /** Offset of the first item in the file. */
  readonly begin: number;
}

const DIMENSION_TAG = 10;
const VARIABLE_TAG = 11;
const ATTRIBUTE_TAG = 12;
/** Most axes of a variable (`NC_MAX_VAR_DIMS`). */
const MAX_AXES = 1024;
/** Estimates of the memory that is kept for an item of a list. */
const MEMORY = { dimension: 128, attribute: 512, variable: 1024, axis: 32, character: 2, number: 16 };

/** Returns the version that the first bytes of a file tell; undefined if they are no NetCDF-3. */
export function netcdf3VersionOf(head: Uint8Array): Netcdf3Version | undefined {
  const version = head[3];
  const isClassic = head[0] === 0x43 && head[1] === 0x44 && head[2] === 0x46;
  return isClassic && (version === 1 || version === 2 || version === 5) ? version : undefined;
}

/** Version of the format: the byte behind `CDF`. */
type Netcdf3Version = 1 | 2 | 5;

/** Bytes that are read first. Most headers are shorter. */
const FIRST_BYTES = 64 * 1024;
/** Longest header. Those of 10,000 variables have some 10 MB. */
const MAX_HEADER_BYTES = 32 * 2 ** 20;
/** Memory that what is made of a header may take, by estimate: 130,000 variables with two attributes each. */
const MAX_MEMORY = 256 * 2 ** 20;

/** Thrown if the header passes the end of the bytes that were read. */
const MORE_BYTES = Symbol("more bytes");

/**
 * Reads the header of a file. If it is longer than what was read, more is read, and it is parsed again.
 * @throws ZpublishError `invalid-metadata`, `unsupported` if the header is too long; `source-unreadable`, `source-changed`
 */
export async function readNetcdf3Header(file: FileBlocks): Promise<Netcdf3Header> {
  let bytes = Buffer.alloc(0);
  for (;;) {
    const end = Math.min(Math.max(FIRST_BYTES, 4 * bytes.length), file.byteLength, MAX_HEADER_BYTES);
    bytes = Buffer.concat([bytes, await file.read(bytes.length, end - bytes.length)]);
    try {
      return await runCooperatively(headerSteps(new HeaderCursor(bytes, file.byteLength)));
    } catch (error) {
      if (error !== MORE_BYTES) throw error;
    }
  }
}

function* headerSteps(cursor: HeaderCursor): CooperativeTask<Netcdf3Header> {
  const version = netcdf3VersionOf(cursor.bytes(4));
  if (version === undefined) throw invalid("expected the file to begin with CDF and 1, 2 or 5");
  cursor.version = version;
  const recordCount = cursor.count();
  // `STREAMING`: the writer did not know the number.
  if (recordCount === (version === 5 ? 2 ** 64 : 0xffff_ffff)) {
    throw new ZpublishError("unsupported", "NetCDF-3: the number of records is not in the header");
  }
  const dimensions = yield* listSteps(cursor, DIMENSION_TAG, 8, MEMORY.dimension, function* () {
    yield;
    return { name: cursor.name(), length: cursor.count() };
  });
  const attributes = yield* attributeSteps(cursor);
  const variables = yield* listSteps(cursor, VARIABLE_TAG, 28, MEMORY.variable, () =>
    variableSteps(cursor, dimensions),
  );
  return { version, recordCount, attributes, variables, byteLength: cursor.offset };
}

/** Reads a list, which is the tag of its items, their number and the items, or zeros if there is none (`ABSENT`). */
function* listSteps<T>(
  cursor: HeaderCursor,
  tag: number,
  itemBytes: number,
  itemMemory: number,
  itemSteps: () => CooperativeTask<T>,
): CooperativeTask<T[]> {
  const received = cursor.word();
  if (received !== tag && received !== 0)
    throw invalid(`expected a list with tag ${tag} or 0, received ${received}`);
  const count = cursor.list(itemBytes, itemMemory);
  if (received === 0 && count > 0)
    throw invalid(`expected no items in a list without tag, received ${count}`);
  const items: T[] = [];
  while (items.length < count) items.push(yield* itemSteps());
  return items;
}

function attributeSteps(cursor: HeaderCursor): CooperativeTask<Netcdf3Attribute[]> {
  return listSteps(cursor, ATTRIBUTE_TAG, 12, MEMORY.attribute, function* () {
    yield;
    const name = cursor.name();
    const type = cursor.type();
    const memory = type.read === undefined ? MEMORY.character : MEMORY.number;
    return { name, type, bytes: cursor.bytes(cursor.list(type.itemSize, memory) * type.itemSize) };
  });
}

function* variableSteps(
  cursor: HeaderCursor,
  all: readonly Netcdf3Dimension[],
): CooperativeTask<Netcdf3Variable> {
  const name = cursor.name();
  const rank = cursor.list(4, MEMORY.axis);
  if (rank > MAX_AXES) throw invalid(`expected at most ${MAX_AXES} dimensions, received ${rank}`);
  const dimensions = Array.from({ length: rank }, () => {
    const id = cursor.count();
    const dimension = all[id];
    if (dimension !== undefined) return dimension;
    throw invalid(`expected the number of a dimension below ${all.length}, received ${id}`);
  });
  const attributes = yield* attributeSteps(cursor);
  const type = cursor.type();
  cursor.count();
  return { name, dimensions, attributes, type, begin: cursor.place() };
}

/** Position in the header of a file. Its methods throw {@link MORE_BYTES} at the end of the bytes that were read. */
class HeaderCursor {
  offset = 0;
  version: Netcdf3Version = 1;
  private readonly view: DataView;
  private memory = 0;

  constructor(
    bytes: Uint8Array,
    private readonly fileLength: number,
  ) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /**
   * Reads the number of items in a list.
   * @param itemBytes Least length of an item in the file.
   * @param itemMemory Estimate of the memory that is kept for an item.
   */
  list(itemBytes: number, itemMemory: number): number {
    const count = this.count();
    const left = this.fileLength - this.offset;
    if (count * itemBytes > left)
      throw invalid(`expected at most ${left} bytes of items, received ${count} items`);
    this.memory += count * itemMemory;
    if (this.memory <= MAX_MEMORY) return count;
    throw new ZpublishError(
      "unsupported",
      `expected a header that needs at most ${MAX_MEMORY} bytes of memory`,
    );
  }

  /** Reads a count, length or number (`NON_NEG`); inexact beyond 2^53, which is more than any file has. */
  count(): number {
    return this.version === 5 ? this.long() : this.word();
  }

  /** Reads the offset of a variable (`OFFSET`). */
  place(): number {
    return this.version === 1 ? this.word() : this.long();
  }

  word(): number {
    return this.view.getUint32(this.take(4));
  }

  private long(): number {
    return Number(this.view.getBigUint64(this.take(8)));
  }

  type(): Netcdf3Type {
    const number = this.word();
    const type = NETCDF3_TYPES.get(number);
    if (type === undefined) throw invalid(`expected a type from 1 to 11, received ${number}`);
    return type;
  }

  /** Reads bytes and what pads them to a multiple of four. @returns A copy. */
  bytes(byteLength: number): Uint8Array {
    const { buffer, byteOffset } = this.view;
    const bytes = new Uint8Array(buffer, byteOffset + this.take(byteLength), byteLength).slice();
    this.take(-byteLength & 3);
    return bytes;
  }

  /** Reads a name. One that is no UTF-8 is Latin-1, which scipy writes. */
  name(): string {
    const bytes = this.bytes(this.count());
    const end = bytes.indexOf(0);
    const text = end === -1 ? bytes : bytes.subarray(0, end);
    try {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(text);
    } catch {
      return Buffer.from(text).toString("latin1");
    }
  }

  /** Moves behind bytes, and returns their offset. */
  private take(byteLength: number): number {
    const at = this.offset;
    const end = at + byteLength;
    if (end > this.fileLength) {
      throw invalid(`expected ${end} bytes or more, since the header has them, received ${this.fileLength}`);
    }
    if (end > MAX_HEADER_BYTES)
      throw new ZpublishError("unsupported", `expected a header of at most ${MAX_HEADER_BYTES} bytes`);
    if (end > this.view.byteLength) throw MORE_BYTES;
    this.offset = end;
    return at;
  }
}

/** An error about a header. */
export function invalid(message: string): ZpublishError {
  return new ZpublishError("invalid-metadata", `NetCDF-3: ${message}`);
}

/** A type of the classic formats. Items are big-endian. */
interface Netcdf3Type {
  /** As in a v2 `.zarray`. */
  readonly dtype: string;
  readonly itemSize: number;
  /** Reads an item; undefined for characters, whose attributes are texts. */
  readonly read?: (view: DataView, offset: number) => JsonValue;
}

/** Types by their number (NetCDF Classic Format Specification, `nc_type`); those from 7 on came with CDF-5. */
const NETCDF3_TYPES: ReadonlyMap<number, Netcdf3Type> = new Map<number, Netcdf3Type>([
  [1, { dtype: "|i1", itemSize: 1, read: (view, offset) => view.getInt8(offset) }],
  [2, { dtype: "|S1", itemSize: 1 }],
  [3, { dtype: ">i2", itemSize: 2, read: (view, offset) => view.getInt16(offset) }],
  [4, { dtype: ">i4", itemSize: 4, read: (view, offset) => view.getInt32(offset) }],
  [5, { dtype: ">f4", itemSize: 4, read: (view, offset) => floatOf(view.getFloat32(offset)) }],
  [6, { dtype: ">f8", itemSize: 8, read: (view, offset) => floatOf(view.getFloat64(offset)) }],
  [7, { dtype: "|u1", itemSize: 1, read: (view, offset) => view.getUint8(offset) }],
  [8, { dtype: ">u2", itemSize: 2, read: (view, offset) => view.getUint16(offset) }],
  [9, { dtype: ">u4", itemSize: 4, read: (view, offset) => view.getUint32(offset) }],
  [10, { dtype: ">i8", itemSize: 8, read: (view, offset) => integerOf(view.getBigInt64(offset)) }],
  [11, { dtype: ">u8", itemSize: 8, read: (view, offset) => integerOf(view.getBigUint64(offset)) }],
]);

/**
 * Converts the values of an attribute in steps, as netCDF4-python does: characters to a text without null characters, one number to
 * itself, several or none to a list.
 */
export function* valuesSteps(type: Netcdf3Type, bytes: Uint8Array): CooperativeTask<JsonValue> {
  const { read, itemSize } = type;
  if (read === undefined)
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes).replaceAll("\0", "");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length === itemSize) return read(view, 0);
  const values: JsonValue[] = [];
  for (let offset = 0; offset < bytes.length; offset += itemSize) {
    if (values.length % 1024 === 0) yield;
    values.push(read(view, offset));
  }
  return values;
}

/** Returns a float that stays one for Python, even if it is integral. */
function floatOf(value: number): JsonValue {
  return Number.isFinite(value) ? pythonFloat(value) : value;
}

function integerOf(value: bigint): JsonValue {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}
