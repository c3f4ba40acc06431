import { isUtf8 } from "node:buffer";
import { decodeZstdSteps } from "../../codec/plain/zstd-decoder.js";
import { messageOf, ZpublishError } from "../../errors.js";
import { runCooperatively } from "../../event-loop/cooperative-task.js";

/*
 * Files of Icechunk: a header of 39 bytes (magic, name of the writer, format, type, compression), and a FlatBuffer of which this reads
 * tables field by field, as they are wanted. `icechunk-format/flatbuffers/*.fbs` of Icechunk has the fields and their order.
 */

const MAGIC = Buffer.from("ICE🧊CHUNK");
const FORMAT_AT = 36;

/** Bytes of the header of a file. */
export const FILE_HEADER_BYTES = 39;

/** Types of files, by their number in the header. */
const TYPES = { snapshot: 1, manifest: 2, repo: 6 } as const;

/** Highest format of files that is read: 2.1 is written as 2. */
const MAX_FORMAT = 2;

/** Longest decoded file: a view cannot be longer. It is no longer than files compress, either, so that a small one takes little memory. */
const MAX_DECODED_BYTES = 2 ** 31 - 1;
const MIN_BOUND_BYTES = 64 * 2 ** 20;
const MAX_RATIO = 1_000;

/** A file as it was read. */
export interface IcechunkFile {
  readonly root: FlatTable;
  /** Major number of the format: 1 or 2. */
  readonly format: number;
}

/** Tells whether a file begins as those of Icechunk do. */
export function isIcechunkFile(bytes: Uint8Array): boolean {
  return MAGIC.equals(bytes.subarray(0, MAGIC.length));
}

/**
 * Decodes a file in steps.
 * @param key Its key in the repository, for messages.
 * @throws ZpublishError `invalid-metadata` if it is damaged; `unsupported` for newer formats
 */
export async function decodeIcechunkFile(
  bytes: Uint8Array,
  key: string,
  type: keyof typeof TYPES,
): Promise<IcechunkFile> {
  const [format = 0, number, compression] = bytes.subarray(FORMAT_AT, FILE_HEADER_BYTES);
  if (!isIcechunkFile(bytes) || number === undefined || compression === undefined) {
    const begin = JSON.stringify(Buffer.from(bytes.subarray(0, MAGIC.length)).toString("latin1"));
    throw damaged(
      key,
      `expected a file of Icechunk, received ${bytes.length} bytes that begin with ${begin}`,
    );
  }
  if (format > MAX_FORMAT || compression > 1) {
    const received = format > MAX_FORMAT ? `format ${format}` : `compression ${compression}`;
    const expected = format > MAX_FORMAT ? `a format of at most ${MAX_FORMAT}` : "compression 0 or 1";
    throw new ZpublishError("unsupported", `'${key}': expected ${expected}, received ${received}`);
  }
  if (number !== TYPES[type])
    throw damaged(key, `expected type ${TYPES[type]} (${type}), received type ${number}`);
  const payload = bytes.subarray(FILE_HEADER_BYTES);
  const bound = Math.min(MAX_DECODED_BYTES, Math.max(MIN_BOUND_BYTES, payload.length * MAX_RATIO));
  try {
    const decoded = compression === 0 ? payload : await runCooperatively(decodeZstdSteps(payload, bound));
    return { root: rootTable(decoded), format };
  } catch (error) {
    throw asDamage(error, key);
  }
}

/** Creates the error of a file that cannot be understood. */
export function damaged(key: string, problem: string): ZpublishError {
  return new ZpublishError("invalid-metadata", `'${key}' is damaged: ${problem}`, { details: { key } });
}

/** Returns the error to throw for one of reading tables: offsets of damaged files lead out of them. */
export function asDamage(error: unknown, key: string): unknown {
  if (error instanceof RangeError)
    return damaged(key, "expected tables of the format, with all that they must have, received others");
  const isDamage = error instanceof ZpublishError && error.code === "corrupt-chunk";
  return isDamage ? damaged(key, messageOf(error)) : error;
}

/** Items of a vector: the place of the first, and their number. */
export interface FlatVector {
  readonly at: number;
  readonly length: number;
}

/** A table of a FlatBuffer. Methods take the number of a field in the schema, and throw RangeError for places outside of the file. */
export class FlatTable {
  constructor(
    readonly view: DataView,
    readonly at: number,
  ) {}

  /** Returns the place of a field; 0 if the table does not have it. @param alignment What the place of such a field is a multiple of. */
  place(field: number, alignment = 1): number {
    const vtable = this.at - this.view.getInt32(this.at, true);
    const [end, size] = [this.view.getUint16(vtable, true), this.view.getUint16(vtable + 2, true)];
    if (end < 4 || size < 4 || vtable % 2 !== 0 || end % 2 !== 0) throw new RangeError("no table");
    const slot = 4 + 2 * field;
    const offset = slot < end ? this.view.getUint16(vtable + slot, true) : 0;
    if (offset === 0) return 0;
    if (offset >= size || (this.at + offset) % alignment !== 0)
      throw new RangeError("a field lies outside of its table, or where none can be");
    return this.at + offset;
  }

  uint8(field: number, otherwise = 0): number {
    const place = this.place(field);
    return place === 0 ? otherwise : this.view.getUint8(place);
  }

  uint32(field: number): number {
    const place = this.place(field, 4);
    return place === 0 ? 0 : this.view.getUint32(place, true);
  }

  /** Returns an integer of 64 bits; numbers above 2^53 are rounded. */
  uint64(field: number): number {
    const place = this.place(field, 8);
    return place === 0 ? 0 : Number(this.view.getBigUint64(place, true));
  }

  /** Returns a struct of so many bytes; undefined if the table does not have it. */
  struct(field: number, byteLength: number): Uint8Array | undefined {
    const place = this.place(field);
    return place === 0 ? undefined : bytesIn(this.view, { at: place, length: byteLength });
  }

  /** @throws RangeError if the table does not have one of the fields */
  require(...fields: readonly number[]): void {
    if (fields.some((field) => this.place(field) === 0)) throw new RangeError("a field is missing");
  }

  /** @param itemBytes Bytes of an item. */
  vector(field: number, itemBytes: number): FlatVector | undefined {
    const place = this.place(field, 4);
    return place === 0 ? undefined : vectorAt(this.view, place, itemBytes);
  }

  bytes(field: number): Uint8Array | undefined {
    const vector = this.vector(field, 1);
    return vector && bytesIn(this.view, vector);
  }

  /** Returns a text, which a zero byte follows; empty if the table does not have it. */
  text(field: number): string {
    const vector = this.vector(field, 1);
    if (vector === undefined) return "";
    const bytes = bytesIn(this.view, vector);
    if (this.view.getUint8(vector.at + vector.length) !== 0 || !isUtf8(bytes))
      throw new RangeError("no text");
    return Buffer.from(bytes).toString();
  }

  table(field: number): FlatTable | undefined {
    const place = this.place(field, 4);
    return place === 0 ? undefined : tableAt(this.view, place);
  }

  /** Returns the tables of a vector; none if the table does not have it. */
  *tables(field: number): Generator<FlatTable, undefined> {
    const { at, length } = this.vector(field, 4) ?? { at: 0, length: 0 };
    for (let index = 0; index < length; index++) yield tableAt(this.view, at + 4 * index);
  }
}

function rootTable(bytes: Uint8Array): FlatTable {
  return tableAt(new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), 0);
}

/** Returns the table that the offset at a place leads to. */
export function tableAt(view: DataView, place: number): FlatTable {
  return new FlatTable(view, aligned(place + view.getUint32(place, true)));
}

/** Returns a place that is a multiple of four, as those of tables and vectors are. @throws RangeError if it is none */
function aligned(place: number): number {
  if (place % 4 !== 0) throw new RangeError("an offset leads to no table or vector");
  return place;
}

/** Returns the vector that the offset at a place leads to. @throws RangeError if it is not all within the file */
export function vectorAt(view: DataView, place: number, itemBytes: number): FlatVector {
  const start = aligned(place + view.getUint32(place, true));
  const length = view.getUint32(start, true);
  if (start + 4 + length * itemBytes > view.byteLength) throw new RangeError("a vector ends after the file");
  return { at: start + 4, length };
}

/** @throws RangeError */
export function bytesIn(
  { buffer, byteOffset, byteLength }: DataView,
  { at, length }: FlatVector,
): Uint8Array {
  if (at + length > byteLength) throw new RangeError("bytes end after the file");
  return new Uint8Array(buffer, byteOffset + at, length);
}

const CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/** Two digits for each ten bits. */
const PAIRS = Array.from(CROCKFORD, (first) => Array.from(CROCKFORD, (second) => first + second)).flat();

/** Writes an id as files are named: in Crockford's base 32, without padding. */
export function encodeId(id: Uint8Array): string {
  let text = "";
  for (let bit = 0; bit < id.length * 8; bit += 10) {
    const at = bit >> 3;
    const word = (id[at]! << 16) | (id[at + 1]! << 8) | id[at + 2]!;
    text += PAIRS[(word >> (14 - (bit & 7))) & 1023];
  }
  return text;
}
