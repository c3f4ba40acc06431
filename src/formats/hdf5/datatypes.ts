import { ZpublishError } from "../../errors.js";
import type { JsonObject, JsonValue } from "../../json/json-value.js";
import type { CodecSpec } from "../../zarr/codec-step.js";
import { type ByteCursor, bytesFor, invalidFile } from "./bytes.js";
import type { Hdf5Type } from "./hdf5-model.js";

/** Maximum depth of types in types. */
const MAX_DEPTH = 16;

/** Maximum number of axes of an array type, and of a dataspace. */
export const MAX_RANK = 32;

/** Maximum size of an item in bytes. */
const MAX_ITEM_BYTES = 0xffff_ffff;

/** Fields of an IEEE 754 float: size, exponent's place and size, mantissa's size, bias. The sign is the last bit. */
const IEEE_FLOATS = [
  { size: 2, exponentAt: 10, exponentBits: 5, mantissaBits: 10, bias: 15 },
  { size: 4, exponentAt: 23, exponentBits: 8, mantissaBits: 23, bias: 127 },
  { size: 8, exponentAt: 52, exponentBits: 11, mantissaBits: 52, bias: 1023 },
] as const;

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
  if (depth > MAX_DEPTH) throw invalidFile(`datatype: expected at most ${MAX_DEPTH} types inside each other`);
  const classAndVersion = cursor.u8();
  const version = classAndVersion >> 4;
  if (version < 1 || version > 5) throw invalidFile(`datatype: expected version 1 to 5, received ${version}`);
  const head = { version, bits: cursor.u16() | (cursor.u8() << 16), size: cursor.u32() };
  if (head.size === 0) throw invalidFile("datatype: expected items of at least one byte, received 0");
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
      return parseComplex(cursor, head, depth);
    default:
      throw invalidFile(`datatype: expected a class from 0 to 11, received ${classAndVersion & 0x0f}`);
  }
}

function other(head: TypeHead, description: string): Hdf5Type {
  return { kind: "other", size: head.size, description };
}

function parseIntegerType(cursor: ByteCursor, { bits, size }: TypeHead): Hdf5Type {
  const [bitOffset, precision] = [cursor.u16(), cursor.u16()];
  if (precision === 0 || bitOffset + precision > size * 8) {
    throw invalidFile(
      `datatype: expected bits of an integer of ${size} bytes, received ${bitOffset}+${precision}`,
    );
  }
  if (size !== 1 && size !== 2 && size !== 4 && size !== 8) {
    return { kind: "other", size, description: `integers of ${size} bytes` };
  }
  const byteOrder = (bits & 1) === 0 ? "<" : ">";
  return { kind: "integer", size, isSigned: (bits & 8) !== 0, byteOrder, precision, bitOffset };
}

function parseFloatType(cursor: ByteCursor, head: TypeHead): Hdf5Type {
  const { bits, size } = head;
  const [bitOffset, precision] = [cursor.u16(), cursor.u16()];
  const [exponentAt, exponentBits, mantissaAt, mantissaBits] = [
    cursor.u8(),
    cursor.u8(),
    cursor.u8(),
    cursor.u8(),
  ];
  const bias = cursor.u32();
  const isIeee = IEEE_FLOATS.some(
    (float) =>
      float.size === size &&
      float.exponentAt === exponentAt &&
      float.exponentBits === exponentBits &&
      float.mantissaBits === mantissaBits &&
      float.bias === bias,
  );
  // Bits 4 and 5: the mantissa's first bit is implied. Bit 6 with bit 0: VAX order.
  const isNormal = ((bits >> 4) & 3) === 2 && (bits & 0x40) === 0 && ((bits >> 8) & 0xff) === size * 8 - 1;
  if (isIeee && isNormal && bitOffset === 0 && precision === size * 8 && mantissaAt === 0) {
    return { kind: "float", size, byteOrder: (bits & 1) === 0 ? "<" : ">" };
  }
  return other(
    head,
    `floats of ${size} bytes with ${exponentBits} bits of exponent and ${mantissaBits} of mantissa, not IEEE 754`,
  );
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
  if (count === 0) throw invalidFile("datatype: expected a compound of at least one field, received none");
  const offsetBytes = version >= 3 ? bytesFor(size) : 4;
  const fields: { name: string; offset: number; type: Hdf5Type }[] = [];
  for (let i = 0; i < count; i++) {
    const name = parseFieldName(cursor, version);
    const offset = cursor.uint(offsetBytes);
    // Version 1 has the axes of an array here, which later versions have as a type.
    const shape = version === 1 ? parseFieldShape(cursor) : [];
    const base = parseDatatype(cursor, depth + 1);
    const type = shape.length === 0 ? base : arrayOf(base, shape);
    if (offset + type.size > size) {
      throw invalidFile(
        `datatype: expected fields inside ${size} bytes, received one that ends at ${offset + type.size}`,
      );
    }
    fields.push({ name, offset, type });
  }
  return { kind: "compound", size, fields };
}

/** Number of axes, reserved bytes, a permutation, and always four lengths. */
function parseFieldShape(cursor: ByteCursor): number[] {
  const rank = cursor.u8();
  cursor.skip(11);
  const lengths = [cursor.u32(), cursor.u32(), cursor.u32(), cursor.u32()];
  if (rank > 4) throw invalidFile(`datatype: expected at most 4 axes of a field, received ${rank}`);
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
  if (head.size !== 16)
    throw invalidFile(`datatype: expected 16 bytes for a variable length, received ${head.size}`);
  const isString = (head.bits & 0x0f) === 1;
  if (!isString) return { kind: "vlen", size: 16, base };
  return { kind: "vlen-string", size: 16, charset: charsetOf(head.bits >> 8) };
}

function parseArray(cursor: ByteCursor, { version, size }: TypeHead, depth: number): Hdf5Type {
  const rank = cursor.u8();
  if (rank > MAX_RANK) throw invalidFile(`datatype: expected at most ${MAX_RANK} axes, received ${rank}`);
  if (version < 3) cursor.skip(3);
  const shape = Array.from({ length: rank }, () => cursor.u32());
  // A permutation that no version has used.
  if (version < 3) cursor.skip(4 * rank);
  const type = arrayOf(parseDatatype(cursor, depth + 1), shape);
  if (type.size !== size)
    throw invalidFile(`datatype: expected an array of ${type.size} bytes, received ${size}`);
  return type;
}

function arrayOf(base: Hdf5Type, shape: readonly number[]): Hdf5Type {
  const size = shape.reduce((product, length) => product * length, base.size);
  if (size === 0 || size > MAX_ITEM_BYTES) throw invalidFile(`datatype: received an array of ${size} bytes`);
  return { kind: "array", size, base, shape };
}

function parseComplex(cursor: ByteCursor, head: TypeHead, depth: number): Hdf5Type {
  const base = parseDatatype(cursor, depth + 1);
  if (base.kind !== "float") return other(head, "complex numbers of other parts than IEEE 754 floats");
  // Bits 1 and 2: real and imaginary part, or polar or exponential form.
  if (((head.bits >> 1) & 3) !== 0) return other(head, "complex numbers that have no real part");
  if (head.size !== 2 * base.size) {
    throw invalidFile(`datatype: expected a complex number of ${2 * base.size} bytes, received ${head.size}`);
  }
  return { kind: "complex", size: head.size, base };
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
  if (type.kind === "string" && type.charset === "utf-8" && type.size > 1) return mapUtf8(type);
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

/**
 * Maps strings of a fixed length in UTF-8 to numpy's `<U`, as netCDF4 reads them. A single byte is a character of netCDF, which both
 * engines of xarray read as bytes.
 */
function mapUtf8({ size, padding, charset }: Extract<Hdf5Type, { kind: "string" }>): MappedType {
  const codecs = [{ id: "hdf5-text", itemSize: size, padding, charset }];
  return { dtype: `<U${size}`, storedSize: size, codecs, isText: false, flags: {} };
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
      if (![1, 2, 4, 8].includes(type.size))
        throw unsupported(`integers of ${type.size} bytes are not served`);
      return numberType(type.isSigned ? "i" : "u", type.size, type.byteOrder, isField);
    case "float":
      return numberType("f", type.size, type.byteOrder, isField);
    case "complex":
      return mapComplex(type.base, type.size, isField);
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
  const [real, imaginary] = type.fields;
  // As h5py writes complex numbers.
  if (type.fields.length === 2 && real?.name === "r" && imaginary?.name === "i") {
    const { type: part } = real;
    const isPair = JSON.stringify(part) === JSON.stringify(imaginary.type) && imaginary.offset === part.size;
    if (
      part.kind === "float" &&
      part.size >= 4 &&
      isPair &&
      real.offset === 0 &&
      type.size === 2 * part.size
    ) {
      return mapComplex(part, type.size, isField);
    }
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
    const count = inner?.shape.reduce((product, length) => product * length, 1) ?? 1;
    const stored = base.size;
    addPieces(pieces, field.pieces, { offset, count, stored });
    fields.push(inner === undefined ? [name, field.dtype] : [name, field.dtype, inner.shape]);
  }
  if (fields.length === 0) throw unsupported("compounds without fields are not served");
  return { dtype: fields, pieces };
}

function addPieces(
  pieces: Piece[],
  added: readonly Piece[],
  { offset, count, stored }: { readonly offset: number; readonly count: number; readonly stored: number },
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

function mapComplex(part: Hdf5Type, size: number, isField: boolean): PlainType {
  if (part.kind !== "float" || part.size < 4)
    throw unsupported("complex numbers of such parts are not served");
  const { dtype, pieces } = numberType("c", size, part.byteOrder, isField);
  return {
    dtype,
    pieces: pieces.map(([at, byteLength, reversed]) => [at, byteLength, reversed > 1 ? part.size : 1]),
  };
}

/** Type of h5py's `opaque_dtype` for times, which the tag names. */
function timeOf(tag: string, size: number): string | undefined {
  const time = /^NUMPY:([<>][mM]8(?:\[[0-9]{0,6}[a-zA-Z]{1,2}\])?)$/.exec(tag)?.[1];
  return size === 8 ? time : undefined;
}

/** True for h5py's truth values. */
function isBool({ size, members }: Extract<Hdf5Type, { kind: "enum" }>): boolean {
  const values = new Map(members.map(({ name, value }) => [name, value]));
  return size === 1 && members.length === 2 && values.get("FALSE") === 0n && values.get("TRUE") === 1n;
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
