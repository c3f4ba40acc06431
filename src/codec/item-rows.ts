import { type Packing, roundedPacking } from "../cf/packing.js";
import { ZpublishError } from "../errors.js";
import type { DataType } from "../model/data-type.js";
import { halfNumbers, writeHalf } from "../model/fill-value.js";
import type { NumericType } from "../zarr/plan/codec-rules.js";
import { HIGH_WORD, isWide, LOW_WORD, nativeBytes, swapToOrder, viewOf, wordsOf } from "./item-reader.js";

/** Items as doubles: of all types but 64-bit integers they are exact. */
interface RowReader {
  /**
   * Reads items into the first places of a row; missing ones become NaN.
   * @param first Index of the first item.
   * @returns False if some are integers of more than 53 bits, which are rounded.
   */
  read(row: Float64Array, first: number, count: number): boolean;
  /** The items if they are 64-bit integers. */
  readonly wide: BigInt64Array | BigUint64Array | undefined;
}

/** Doubles that become items. */
export interface RowWriter {
  /** Writes the first places of a row; NaN becomes the missing item. @param first Index of the first item. */
  write(row: Float64Array, first: number, count: number): void;
  /** Writes 64-bit integers, as {@link RowReader.wide} has them; undefined is missing. */
  writeWide(index: number, value: bigint | undefined): void;
  /** Returns the bytes in the type's byte order; nothing can be written any more. */
  finish(): Uint8Array;
}

const TWO_32 = 2 ** 32;
/** Higher words of the integers of 53 bits. */
const HIGH_WORDS = 2 ** 21;

/** Tells whether items of a type are numbers that can be computed with. */
export function isNumeric({ kind, itemSize }: DataType): boolean {
  return kind === "b" || kind === "i" || kind === "u" || (kind === "f" && itemSize <= 8);
}

/** Opens items for reading. @throws ZpublishError `codec-failed` if they are no numbers */
export function openRows(bytes: Uint8Array, dataType: DataType, packing: Packing): RowReader {
  const type = numericTypeOf(dataType, packing);
  const marks = [...new Set(roundedPacking(packing, signedType(dataType, packing)).missing)];
  const native = nativeBytes(bytes, type);
  const readRow =
    dataType.kind === "f" && dataType.itemSize === 2
      ? halfReader(native)
      : isWide(type)
        ? wideReader(native, type, marks)
        : numberReader(native, type);
  const BigView = type.kind === "u" ? BigUint64Array : BigInt64Array;
  return {
    read(row, first, count) {
      const isExact = readRow(row, first, count);
      for (const mark of marks) maskRow(row, count, mark);
      return isExact;
    },
    wide: isWide(type)
      ? new BigView(native.buffer as ArrayBuffer, native.byteOffset, native.length / 8)
      : undefined,
  };
}

/** Opens memory for items. @param missingItem One item in the type's byte order; null for zero bytes. */
export function openRowsForWriting(
  bytes: Uint8Array,
  dataType: DataType,
  packing: Packing,
  missingItem: Uint8Array | null,
): RowWriter {
  const type = numericTypeOf(dataType, packing);
  const missing = nativeBytes((missingItem ?? new Uint8Array(dataType.itemSize)).slice(), type);
  // Fill items are in it already.
  swapToOrder(bytes, type);
  const finish = () => swapToOrder(bytes, type);
  if (isWide(type)) return { ...wideWriter(bytes, type, missing), finish };
  const writeWide = () => {
    throw new ZpublishError("codec-failed", `expected 64-bit integers, received ${dataType.numpyName}`);
  };
  if (dataType.kind === "f" && dataType.itemSize === 2)
    return { write: halfWriter(bytes, missing), writeWide, finish };
  const items = viewOf(bytes, type);
  const missingValue = viewOf(missing, type)[0]!;
  return {
    write(row, first, count) {
      if (!Number.isNaN(missingValue)) unmaskRow(row, count, missingValue);
      items.set(row.subarray(0, count), first);
    },
    writeWide,
    finish,
  };
}

/** Replaces a stored number that means a missing value. */
function maskRow(row: Float64Array, count: number, mark: number): void {
  for (let i = 0; i < count; i++) if (row[i] === mark) row[i] = Number.NaN;
}

function unmaskRow(row: Float64Array, count: number, missing: number): void {
  for (let i = 0; i < count; i++) if (Number.isNaN(row[i])) row[i] = missing;
}

/** The type of typed arrays that has an item's bits; words for half floats. */
function numericTypeOf(dataType: DataType, { isUnsigned }: Packing): NumericType {
  const { kind, itemSize, byteOrder } = dataType;
  if (!isNumeric(dataType))
    throw new ZpublishError("codec-failed", `expected numbers, received ${dataType.numpyName}`);
  const isHalf = kind === "f" && itemSize === 2;
  const unsigned = kind === "b" || isHalf || (isUnsigned ?? kind === "u");
  const numericKind = kind === "f" && !isHalf ? "f" : unsigned ? "u" : "i";
  return {
    kind: numericKind,
    itemSize: itemSize as NumericType["itemSize"],
    isBigEndian: byteOrder === ">" && itemSize > 1,
    name: dataType.numpyStr,
  };
}

/** Returns the type that items are read as: integers of the other signedness if their attributes say so. */
export function signedType(dataType: DataType, { isUnsigned }: Packing): DataType {
  const isInteger = dataType.kind === "i" || dataType.kind === "u";
  return isInteger && isUnsigned !== undefined ? { ...dataType, kind: isUnsigned ? "u" : "i" } : dataType;
}

type ReadRow = RowReader["read"];

function numberReader(bytes: Uint8Array, type: NumericType): ReadRow {
  const items = viewOf(bytes, type);
  return (row, first, count) => {
    row.set(items.subarray(first, first + count));
    return true;
  };
}

function halfReader(bytes: Uint8Array): ReadRow {
  const words = new Uint16Array(bytes.buffer as ArrayBuffer, bytes.byteOffset, bytes.length / 2);
  const table = halfNumbers();
  return (row, first, count) => {
    for (let i = 0; i < count; i++) row[i] = table[words[first + i]!]!;
    return true;
  };
}

function halfWriter(bytes: Uint8Array, missing: Uint8Array): RowWriter["write"] {
  const words = new Uint16Array(bytes.buffer as ArrayBuffer, bytes.byteOffset, bytes.length / 2);
  const missingWord = missing[0]! | (missing[1]! << 8);
  const view = new DataView(new ArrayBuffer(2));
  return (row, first, count) => {
    for (let i = 0; i < count; i++) {
      writeHalf(view, row[i]!, true);
      words[first + i] = Number.isNaN(row[i]) ? missingWord : view.getUint16(0, true);
    }
  };
}

function wideReader(bytes: Uint8Array, type: NumericType, marks: readonly number[]): ReadRow {
  const words = wordsOf(bytes);
  const isSigned = type.kind === "i";
  return (row, first, count) => {
    if (isSafeAll(words, first, count, isSigned)) {
      readWords(words, first, count, row, 0);
      return true;
    }
    readWords(words, first, count, row, isSigned ? 0 : TWO_32);
    for (let i = 0; i < count; i++)
      if (!Number.isSafeInteger(row[i]) && !marks.includes(row[i]!)) return false;
    return true;
  };
}

/** Tells whether 64-bit integers have at most 53 bits. */
function isSafeAll(words: Int32Array, first: number, count: number, isSigned: boolean): boolean {
  const atHigh = HIGH_WORD;
  // Bits of a higher word that others have: of a signed one when its sign is taken away.
  const bias = isSigned ? HIGH_WORDS : 0;
  const excess = isSigned ? ~(2 * HIGH_WORDS - 1) : ~(HIGH_WORDS - 1);
  let beyond = 0;
  for (let i = 0, at = 2 * first + atHigh; i < count; i++, at += 2) beyond |= (words[at]! + bias) & excess;
  return beyond === 0;
}

/** Reads 64-bit integers. @param ofSign Number that is added to a negative higher word: 2^32 for unsigned ones. */
function readWords(words: Int32Array, first: number, count: number, row: Float64Array, ofSign: number): void {
  const [atLow, atHigh] = [LOW_WORD, HIGH_WORD];
  for (let i = 0, at = 2 * first; i < count; i++, at += 2) {
    const word = words[at + atHigh]!;
    const high = word < 0 ? word + ofSign : word;
    row[i] = high * TWO_32 + (words[at + atLow]! >>> 0);
  }
}

function wideWriter(bytes: Uint8Array, type: NumericType, missing: Uint8Array): Omit<RowWriter, "finish"> {
  const words = wordsOf(bytes);
  const [atLow, atHigh] = [LOW_WORD, HIGH_WORD];
  const missingWords = wordsOf(missing);
  const BigView = type.kind === "u" ? BigUint64Array : BigInt64Array;
  const items = new BigView(bytes.buffer as ArrayBuffer, bytes.byteOffset, bytes.length / 8);
  const missingBig = new BigView(missing.buffer as ArrayBuffer, missing.byteOffset, 1)[0]!;
  return {
    write(row, first, count) {
      for (let i = 0; i < count; i++) {
        const value = row[i]!;
        const at = 2 * (first + i);
        const isMissing = Number.isNaN(value);
        words[at + atLow] = isMissing ? missingWords[atLow]! : value | 0;
        words[at + atHigh] = isMissing ? missingWords[atHigh]! : Math.floor(value / TWO_32) | 0;
      }
    },
    writeWide(index, value) {
      items[index] = value ?? missingBig;
    },
  };
}
