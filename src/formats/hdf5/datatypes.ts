import { ZpublishError } from "../../errors.js";
import type { JsonObject, JsonValue } from "../../json/json-value.js";
import { elementCount } from "../../model/data-tree.js";
import type { CodecSpec } from "../../zarr/codec-step.js";
import { type ByteCursor, bytesFor, check, invalidFile } from "./bytes.js";
import type { Hdf5Type } from "./hdf5-model.js";

/** Maximum depth of types in types. */
const MAX_DEPTH = 16;

/** Maximum number of axes of an array type, and of a dataspace. */
export const MAX_RANK = 32;

/** Maximum size of an item in bytes. */
const MAX_ITEM_BYTES = 0xffff_ffff;

/**
 * Fields of IEEE 754 floats, by size: offset and number of all bits, place and size of the exponent, place and size of the mantissa,
 * bias.
 */
const IEEE_FLOATS: Readonly<Record<number, string>> = {
  2: "0 16 10 5 0 10 15",
  4: "0 32 23 8 0 23 127",
  8: "0 64 52 11 0 52 1023",
};

/** The fields that all classes of types have. */
interface TypeHead {
  readonly version: number;
  /** The class bit field. */
  readonly bits: number;
  readonly size: number;
}

/**
 * Parses a datatype message (HDF5 File Format Specification, IV.A.2.d), and leaves the cursor behind it.
 * @throws ZpublishError `invalid-metadata`, `unsupported`
 */
export function parseDatatype(cursor: ByteCursor, depth = 0): Hdf5Type {
  check(depth <= MAX_DEPTH, "datatype", `at most ${MAX_DEPTH} types inside each other`, depth);
  const classAndVersion = cursor.u8();
  const version = classAndVersion >> 4;
  check(version >= 1 && version <= 5, "datatype", "version 1 to 5", version);
  const head = { version, bits: cursor.u16() | (cursor.u8() << 16), size: cursor.u32() };
  check(head.size > 0, "datatype", "items of at least one byte", 0);
  switch (classAndVersion & 0x0f) {
    case 0:
      return parseIntegerType(cursor, head);
    case 1:
      return parseFloatType(cursor, head);
    case 2:
      cursor.skip(2);
      return other(head, "times");
    case 3:
      return parseStringType(head);
    case 4:
      // Bit fields are numbers to h5py, too. The booleans of PyTables are some.
      return parseIntegerType(cursor, { ...head, bits: head.bits & 1 });
    case 5:
      return { kind: "opaque", size: head.size, tag: cursor.text(head.bits & 0xff) };
    case 6:
      return parseCompound(cursor, head, depth);
    case 7:
      return parseReference(head);
    case 8:
      return parseEnum(cursor, head, depth);
    case 9:
      return parseVlen(cursor, head, depth);
    case 10:
      return parseArray(cursor, head, depth);
    case 11:
      parseDatatype(cursor, depth + 1);
      return other(head, "complex numbers of HDF5 2.0");
    default:
      throw invalidFile(`datatype: expected a class from 0 to 11, received ${classAndVersion & 0x0f}`);
  }
}

function other(head: TypeHead, description: string): Hdf5Type {
  return { kind: "other", size: head.size, description };
}

function parseIntegerType(cursor: ByteCursor, { bits, size }: TypeHead): Hdf5Type {
  const [bitOffset, precision] = [cursor.u16(), cursor.u16()];
  const areInside = precision > 0 && bitOffset + precision <= size * 8;
  check(areInside, "datatype", `bits of an integer of ${size} bytes`, `${bitOffset}+${precision}`);
  if (size !== 1 && size !== 2 && size !== 4 && size !== 8) {
    return { kind: "other", size, description: `integers of ${size} bytes` };
  }
  const byteOrder = (bits & 1) === 0 ? "<" : ">";
  return { kind: "integer", size, isSigned: (bits & 8) !== 0, byteOrder, precision, bitOffset };
}

function parseFloatType(cursor: ByteCursor, head: TypeHead): Hdf5Type {
  const { bits, size } = head;
  const fields = [
    cursor.u16(),
    cursor.u16(),
    cursor.u8(),
    cursor.u8(),
    cursor.u8(),
    cursor.u8(),
    cursor.u32(),
  ];
  // Bits 4 and 5: the mantissa's first bit is implied. Bit 6 with bit 0: VAX order.
  const isNormal = ((bits >> 4) & 3) === 2 && (bits & 0x40) === 0 && ((bits >> 8) & 0xff) === size * 8 - 1;
  if (isNormal && IEEE_FLOATS[size] === fields.join(" ")) {
    return { kind: "float", size, byteOrder: (bits & 1) === 0 ? "<" : ">" };
  }
  const layout = `${fields[3]} bits of exponent and ${fields[5]} of mantissa`;
  return other(head, `floats of ${size} bytes with ${layout}, not IEEE 754`);
}

function parseStringType(head: TypeHead): Hdf5Type {
  const padding = (["null-terminated", "null-padded", "space-padded"] as const)[head.bits & 0x0f];
  if (padding === undefined) return other(head, `strings with padding ${head.bits & 0x0f}`);
  return { kind: "string", size: head.size, padding, charset: charsetOf(head.bits >> 4) };
}

function charsetOf(bits: number): "ascii" | "utf-8" {
  return (bits & 0x0f) === 1 ? "utf-8" : "ascii";
}

function parseCompound(cursor: ByteCursor, { version, bits, size }: TypeHead, depth: number): Hdf5Type {
  const count = bits & 0xffff;
  check(count > 0, "datatype", "a compound of at least one field", "none");
  const offsetBytes = version >= 3 ? bytesFor(size) : 4;
  const fields: { name: string; offset: number; type: Hdf5Type }[] = [];
  for (let i = 0; i < count; i++) {
    const name = parseFieldName(cursor, version);
    const offset = cursor.uint(offsetBytes);
    // Version 1 has the axes of an array here, which later versions have as a type.
    const shape = version === 1 ? parseFieldShape(cursor) : [];
    const base = parseDatatype(cursor, depth + 1);
    const type = shape.length === 0 ? base : arrayOf(base, shape);
    const end = offset + type.size;
    check(end <= size, "datatype", `fields inside ${size} bytes`, `one that ends at ${end}`);
    fields.push({ name, offset, type });
  }
  return { kind: "compound", size, fields };
}

/** Number of axes, reserved bytes, a permutation, and always four lengths. */
function parseFieldShape(cursor: ByteCursor): number[] {
  const rank = cursor.u8();
  cursor.skip(11);
  const lengths = [cursor.u32(), cursor.u32(), cursor.u32(), cursor.u32()];
  check(rank <= 4, "datatype", "at most 4 axes of a field", rank);
  return lengths.slice(0, rank);
}

function parseReference(head: TypeHead): Hdf5Type {
  const kind = head.bits & 0x0f;
  if (kind === 0 && head.size === 8) return { kind: "object-reference", size: 8 };
  return other(head, kind === 1 ? "region references" : `references of kind ${kind}`);
}

function parseEnum(cursor: ByteCursor, head: TypeHead, depth: number): Hdf5Type {
  const { version, bits, size } = head;
  const base = parseDatatype(cursor, depth + 1);
  const count = bits & 0xffff;
  const names: string[] = [];
  for (let i = 0; i < count; i++) names.push(parseFieldName(cursor, version));
  const values = cursor.take(count * base.size);
  if (base.kind !== "integer" || base.size !== size) return other(head, "enumerations that are no integers");
  const members = names.map((name, i) => ({ name, value: integerAt(values, i * size, base) }));
  return { kind: "enum", size, base, members };
}

function parseVlen(cursor: ByteCursor, head: TypeHead, depth: number): Hdf5Type {
  const base = parseDatatype(cursor, depth + 1);
  check(head.size === 16, "datatype", "16 bytes for a variable length", head.size);
  const isString = (head.bits & 0x0f) === 1;
  if (!isString) return { kind: "vlen", size: 16, base };
  return { kind: "vlen-string", size: 16, charset: charsetOf(head.bits >> 8) };
}

function parseArray(cursor: ByteCursor, { version, size }: TypeHead, depth: number): Hdf5Type {
  const rank = cursor.u8();
  check(rank <= MAX_RANK, "datatype", `at most ${MAX_RANK} axes`, rank);
  if (version < 3) cursor.skip(3);
  const shape = Array.from({ length: rank }, () => cursor.u32());
  // A permutation that no version has used.
  if (version < 3) cursor.skip(4 * rank);
  const type = arrayOf(parseDatatype(cursor, depth + 1), shape);
  check(type.size === size, "datatype", `an array of ${type.size} bytes`, size);
  return type;
}

function arrayOf(base: Hdf5Type, shape: readonly number[]): Hdf5Type {
  const size = elementCount(shape) * base.size;
  check(size > 0 && size <= MAX_ITEM_BYTES, "datatype", "a smaller array", `${size} bytes`);
  return { kind: "array", size, base, shape };
}

/** Names end with a NUL, and are padded to 8 bytes before version 3. */
function parseFieldName(cursor: ByteCursor, version: number): string {
  const start = cursor.at;
  const name = cursor.textToNul();
  if (version < 3) cursor.skip((8 - ((cursor.at - start) % 8)) % 8);
  return name;
}

/** The integer at a place of `bytes`, which must lie inside. */
export function integerAt(
  bytes: Uint8Array,
  at: number,
  type: Extract<Hdf5Type, { kind: "integer" }>,
): bigint {
  let value = 0n;
  for (let i = 0; i < type.size; i++) {
    const index = type.byteOrder === "<" ? at + type.size - 1 - i : at + i;
    value = (value << 8n) | BigInt(bytes[index]!);
  }
  const bits = value >> BigInt(type.bitOffset);
  return type.isSigned ? BigInt.asIntN(type.precision, bits) : BigInt.asUintN(type.precision, bits);
}

/** Maximum number of pieces that an item with padding is put together from. */
const MAX_PIECES = 4_096;

/** The type of a dataset in terms of Zarr v2. */
export interface MappedType {
  /** As in a `.zarray`, without padding between fields. */
  readonly dtype: JsonValue;
  /** Bytes of an item in the file, padding included; of one item of an array type. */
  readonly storedSize: number;
  /** Internal codecs that make items of `dtype` of those in the file: taking padding out of compounds, and off strings. */
  readonly codecs: readonly CodecSpec[];
  readonly isText: boolean;
  /** CF's names for the values of an enumeration; empty for other types. */
  readonly flags: JsonObject;
}

/** Offset and length in bytes of a part of a stored item, and the length of its numbers if their bytes are to be reversed, else 1. */
type Piece = readonly [offset: number, byteLength: number, reversed: number];

interface PlainType {
  readonly dtype: JsonValue;
  /** Parts that are no padding, in order, none of them touching the next. */
  readonly pieces: readonly Piece[];
}

/**
 * Maps the type of a dataset, and that of its items if it is an array type ({@link innerShapeOf}).
 * @throws ZpublishError `unsupported` if Zarr v2 has no such type, or no client reads it.
 */
export function mapType(type: Hdf5Type): MappedType {
  if (type.kind === "array") {
    const base = mapType(type.base);
    if (base.isText) throw unsupported("arrays of variable-length strings as items are not served");
    return base;
  }
  if (type.kind === "vlen-string") {
    return { dtype: "|O", storedSize: type.size, codecs: [], isText: true, flags: {} };
  }
  // As netCDF4 reads them. A single byte is a character of netCDF, which both engines of xarray read as bytes.
  if (type.kind === "string" && type.charset === "utf-8" && type.size > 1) {
    const { size, padding, charset } = type;
    const codecs = [{ id: "hdf5-text", itemSize: size, padding, charset }];
    return { dtype: `<U${size}`, storedSize: size, codecs, isText: false, flags: {} };
  }
  const { dtype, pieces } = mapPlain(type, false);
  const [first] = pieces;
  // Fields may lie in another order than they are listed in, without any padding.
  const isStored = pieces.length === 1 && first?.[0] === 0 && first[1] === type.size && first[2] === 1;
  return {
    dtype,
    storedSize: type.size,
    codecs: isStored ? textCodecs(type) : [{ id: "repack", itemSize: type.size, pieces }],
    isText: false,
    flags: type.kind === "enum" && dtype !== "|b1" ? flagsOf(type.members) : {},
  };
}

/** Codec of strings whose padding is not that of numpy; none for other types. */
function textCodecs(type: Hdf5Type): readonly CodecSpec[] {
  if (type.kind !== "string" || type.padding === "null-padded" || type.size === 1) return [];
  return [{ id: "hdf5-text", itemSize: type.size, padding: type.padding }];
}

/** Returns the axes that an array type adds behind those of its dataset. */
export function innerShapeOf(type: Hdf5Type): readonly number[] {
  return type.kind === "array" ? [...type.shape, ...innerShapeOf(type.base)] : [];
}

/**
 * Maps a type whose items have a fixed size.
 * @param isField True inside of a compound, whose numbers become little-endian: xarray fails over big-endian ones in it.
 */
function mapPlain(type: Hdf5Type, isField: boolean): PlainType {
  switch (type.kind) {
    case "integer":
      return numberType(type.isSigned ? "i" : "u", type.size, type.byteOrder, isField);
    case "float":
      return numberType("f", type.size, type.byteOrder, isField);
    case "string":
      return plainType(`|S${type.size}`, type.size);
    case "opaque":
      return plainType(timeOf(type.tag, type.size) ?? `|V${type.size}`, type.size);
    case "enum":
      return isBool(type) ? plainType("|b1", 1) : mapPlain(type.base, isField);
    case "compound":
      return mapCompound(type, isField);
    case "array":
      throw unsupported("arrays as items are not served here");
    case "vlen-string":
      throw unsupported("variable-length strings inside compounds are not served");
    case "vlen":
      throw unsupported("variable-length lists are not served");
    case "object-reference":
      throw unsupported("object references are not served");
    case "other":
      throw unsupported(`${type.description} are not served`);
  }
}

function mapCompound(type: Extract<Hdf5Type, { kind: "compound" }>, isField: boolean): PlainType {
  const complex = complexPart(type);
  if (complex !== undefined) {
    const { dtype, pieces } = numberType("c", type.size, complex.byteOrder, isField);
    return {
      dtype,
      pieces: pieces.map(([at, byteLength, reversed]) => [at, byteLength, reversed > 1 ? complex.size : 1]),
    };
  }
  const fields: JsonValue[] = [];
  const pieces: Piece[] = [];
  for (const { name, offset, type: fieldType } of type.fields) {
    const inner = fieldType.kind === "array" ? fieldType : undefined;
    const base = inner?.base ?? fieldType;
    if (base.kind === "integer" && base.precision !== 8 * base.size) {
      throw unsupported(`integers of ${base.precision} bits inside compounds are not served`);
    }
    const field = mapPlain(base, true);
    const count = elementCount(inner?.shape ?? []);
    addPieces(pieces, field.pieces, offset, count, base.size);
    fields.push(inner === undefined ? [name, field.dtype] : [name, field.dtype, inner.shape]);
  }
  return { dtype: fields, pieces };
}

function addPieces(
  pieces: Piece[],
  added: readonly Piece[],
  offset: number,
  count: number,
  stored: number,
): void {
  const [only] = added;
  const isTight = added.length === 1 && only?.[1] === stored;
  const all: readonly Piece[] = isTight ? [[0, stored * count, only?.[2] ?? 1]] : added;
  for (let index = 0; index < (isTight ? 1 : count); index++) {
    for (const [start, byteLength, reversed] of all) {
      const at = offset + index * stored + start;
      const last = pieces.at(-1);
      if (last !== undefined && last[0] + last[1] === at && last[2] === reversed) {
        pieces[pieces.length - 1] = [last[0], last[1] + byteLength, reversed];
      } else pieces.push([at, byteLength, reversed]);
      if (pieces.length > MAX_PIECES) {
        throw unsupported(`expected items of at most ${MAX_PIECES} pieces between padding, received more`);
      }
    }
  }
}

/** Returns the type of both parts of a complex number as h5py writes it; undefined for other compounds. */
function complexPart({ size, fields }: Extract<Hdf5Type, { kind: "compound" }>) {
  const [real, imaginary] = fields;
  if (fields.length !== 2 || real?.name !== "r" || imaginary?.name !== "i") return undefined;
  const { type } = real;
  const arePair = JSON.stringify(type) === JSON.stringify(imaginary.type) && size === 2 * type.size;
  const isTight = arePair && real.offset === 0 && imaginary.offset === type.size;
  return isTight && type.kind === "float" && type.size >= 4 ? type : undefined;
}

/** Type of h5py's `opaque_dtype` for times, which the tag names. */
function timeOf(tag: string, size: number): string | undefined {
  const time = /^NUMPY:([<>][mM]8(?:\[[0-9]{0,6}[a-zA-Z]{1,2}\])?)$/.exec(tag)?.[1];
  return size === 8 ? time : undefined;
}

/** True for h5py's truth values. */
export function isBool({ size, members }: Extract<Hdf5Type, { kind: "enum" }>): boolean {
  const names = members.map(({ name, value }) => `${name}=${value}`).sort();
  return size === 1 && names.join() === "FALSE=0,TRUE=1";
}

/** `flag_values` and `flag_meanings` (CF conventions, §3.5), whose meanings are separated by blanks. */
function flagsOf(members: Extract<Hdf5Type, { kind: "enum" }>["members"]): JsonObject {
  if (members.length === 0) return {};
  return {
    flag_values: members.map(({ value }) => (Number.isSafeInteger(Number(value)) ? Number(value) : value)),
    flag_meanings: members.map(({ name }) => name.replace(/\s+/gu, "_")).join(" "),
  };
}

function plainType(dtype: JsonValue, size: number): PlainType {
  return { dtype, pieces: [[0, size, 1]] };
}

function numberType(kind: string, size: number, byteOrder: "<" | ">", isField: boolean): PlainType {
  const order = size === 1 ? "|" : isField ? "<" : byteOrder;
  const isReversed = isField && byteOrder === ">";
  return { dtype: `${order}${kind}${size}`, pieces: [[0, size, isReversed ? size : 1]] };
}

function unsupported(message: string): ZpublishError {
  return new ZpublishError("unsupported", message);
}
