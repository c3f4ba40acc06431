import { ZpublishError } from "../../../errors.js";
import type { JsonObject, JsonValue } from "../../../json/json-value.js";
import type { CodecSpec } from "../../../zarr/codec-step.js";
import type { Hdf5Type } from "../hdf5-model.js";

/** Maximum number of pieces that an item with padding is put together from. */
const MAX_PIECES = 4_096;

/** The type of a dataset in terms of Zarr v2. */
export interface MappedType {
  /** As in a `.zarray`, without padding between fields. */
  readonly dtype: JsonValue;
  /** Bytes of an item of `dtype`; 0 for variable-length strings. */
  readonly itemSize: number;
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
    return { dtype: "|O", itemSize: 0, storedSize: type.size, codecs: [], isText: true, flags: {} };
  }
  if (type.kind === "string" && type.charset === "utf-8" && type.size > 1) return mapUtf8(type);
  const { dtype, pieces } = mapPlain(type, false);
  const itemSize = byteLengthOf(pieces);
  const [first] = pieces;
  // Fields may lie in another order than they are listed in, without any padding.
  const isStored = pieces.length === 1 && first?.[0] === 0 && first[1] === type.size && first[2] === 1;
  return {
    dtype,
    itemSize,
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
  return { dtype: `<U${size}`, itemSize: 4 * size, storedSize: size, codecs, isText: false, flags: {} };
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
      return number(type.isSigned ? "i" : "u", type.size, type.byteOrder, isField);
    case "float":
      return number("f", type.size, type.byteOrder, isField);
    case "complex":
      return mapComplex(type.base, type.size, isField);
    case "string":
      return plain(`|S${type.size}`, type.size);
    case "opaque":
      return plain(timeOf(type.tag, type.size) ?? `|V${type.size}`, type.size);
    case "enum":
      return isBool(type) ? plain("|b1", 1) : mapPlain(type.base, isField);
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
  const { dtype, pieces } = number("c", size, part.byteOrder, isField);
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

function plain(dtype: JsonValue, size: number): PlainType {
  return { dtype, pieces: [[0, size, 1]] };
}

function number(kind: string, size: number, byteOrder: "<" | ">", isField: boolean): PlainType {
  const order = size === 1 ? "|" : isField ? "<" : byteOrder;
  const isReversed = isField && byteOrder === ">";
  return { dtype: `${order}${kind}${size}`, pieces: [[0, size, isReversed ? size : 1]] };
}

function byteLengthOf(pieces: readonly Piece[]): number {
  return pieces.reduce((sum, [, byteLength]) => sum + byteLength, 0);
}

function unsupported(message: string): ZpublishError {
  return new ZpublishError("unsupported", message);
}
