import type { NumberDecoding, NumberType } from "../../cf/decoded-type.js";
import { packingOf } from "../../cf/packing.js";
import { type DataType, parseDataType } from "../../model/data-type.js";
import { writeHalf } from "../../model/fill-value.js";
import { IS_LITTLE_ENDIAN, swapWords } from "../item-reader.js";
import { openRows } from "../item-rows.js";

/**
 * Decodes packed or marked numbers, bit by bit as xarray does with numpy.
 * @param bytes Items of the stored type in its byte order; never changed.
 * @param target As many items of the type `to`, aligned. They are in this machine's byte order afterwards.
 */
export function decodeNumbers(
  bytes: Uint8Array,
  dataType: DataType,
  decoding: NumberDecoding,
  target: Uint8Array<ArrayBuffer>,
): void {
  const { from, to, scale, offset } = decoding;
  const isSame = from.kind === to.kind && from.itemSize === to.itemSize;
  if (to.kind === "b") writeTruth(bytes, from.itemSize, target);
  else if (isSame && scale === undefined && offset === undefined) {
    target.set(bytes);
    if ((dataType.byteOrder === "<") !== IS_LITTLE_ENDIAN) swapWords(target, wordSizeOf(dataType));
    markMissing(target, decoding);
  } else unpack(bytes, dataType.byteOrder, decoding, target);
}

/** Items at a time: 16 KiB of doubles, half of a first-level cache. */
const ROW_ITEMS = 2048;

/** Unpacks items to floats, by the arithmetic of numpy: each step, and the packing's numbers, are rounded to the target's type. */
function unpack(
  bytes: Uint8Array,
  byteOrder: DataType["byteOrder"],
  { from, to, missing, scale, offset }: NumberDecoding,
  target: Uint8Array<ArrayBuffer>,
): void {
  const rows = openRows(bytes, parseDataType(`${byteOrder}${from.kind}${from.itemSize}`), {
    ...packingOf({}),
    missing,
  });
  const count = target.length / to.itemSize;
  const row = new Float64Array(Math.min(ROW_ITEMS, count));
  for (let first = 0; first < count; first += ROW_ITEMS) {
    const length = Math.min(ROW_ITEMS, count - first);
    rows.read(row, first, length);
    const at = target.byteOffset + first * to.itemSize;
    if (to.itemSize === 4) scaleFloats(row, new Float32Array(target.buffer, at, length), scale, offset);
    else scaleDoubles(row, new Float64Array(target.buffer, at, length), scale, offset);
  }
}

/** As numpy computes with single floats: numbers that are not in the array are rounded, too. Adding 0 would change a negative zero. */
function scaleFloats(row: Float64Array, target: Float32Array, scale = 1, offset?: number): void {
  const factor = Math.fround(scale);
  for (let i = 0; i < target.length; i++) target[i] = Math.fround(row[i]!) * factor;
  if (offset === undefined) return;
  const summand = Math.fround(offset);
  for (let i = 0; i < target.length; i++) target[i]! += summand;
}

function scaleDoubles(row: Float64Array, target: Float64Array, scale = 1, offset?: number): void {
  for (let i = 0; i < target.length; i++) target[i] = row[i]! * scale;
  if (offset === undefined) return;
  for (let i = 0; i < target.length; i++) target[i]! += offset;
}

function writeTruth(bytes: Uint8Array, itemSize: number, target: Uint8Array): void {
  target.fill(0);
  for (let i = 0; i < bytes.length; i++) if (bytes[i] !== 0) target[Math.floor(i / itemSize)] = 1;
}

/** Writes NaN in place of missing floats, and leaves the bits of all others. Integers have no NaN. */
function markMissing(bytes: Uint8Array<ArrayBuffer>, { from, missing }: NumberDecoding): void {
  const { buffer, byteOffset, byteLength } = bytes;
  if (from.kind === "c") {
    markComplex(bytes, from.itemSize / 2, missing);
    return;
  }
  if (from.kind !== "f") return;
  if (from.itemSize === 8) {
    const items = new Float64Array(buffer, byteOffset, byteLength / 8);
    for (const mark of missing)
      for (let i = 0; i < items.length; i++) if (items[i] === mark) items[i] = Number.NaN;
  } else if (from.itemSize === 4) {
    const items = new Float32Array(buffer, byteOffset, byteLength / 4);
    for (const mark of missing.map(Math.fround))
      for (let i = 0; i < items.length; i++) if (items[i] === mark) items[i] = Number.NaN;
  } else if (from.itemSize === 2) {
    const items = new Uint16Array(buffer, byteOffset, byteLength / 2);
    for (const mark of missing.map(halfBits)) {
      // Both zeros are equal.
      const bits = (mark & 0x7fff) === 0 ? 0x7fff : 0xffff;
      for (let i = 0; i < items.length; i++) if ((items[i]! & bits) === (mark & bits)) items[i] = 0x7e00;
    }
  }
}

function markComplex(
  { buffer, byteOffset, byteLength }: Uint8Array<ArrayBuffer>,
  size: number,
  missing: readonly number[],
) {
  const [real, imaginary] = missing;
  if (real === undefined || imaginary === undefined || size > 8) return;
  const parts =
    size === 4
      ? new Float32Array(buffer, byteOffset, byteLength / 4)
      : new Float64Array(buffer, byteOffset, byteLength / 8);
  const [first, second] = size === 4 ? [Math.fround(real), Math.fround(imaginary)] : [real, imaginary];
  for (let i = 0; i < parts.length; i += 2)
    if (parts[i] === first && parts[i + 1] === second) parts.fill(Number.NaN, i, i + 2);
}

const half = new DataView(new ArrayBuffer(2));

function halfBits(value: number): number {
  writeHalf(half, value, true);
  return half.getUint16(0, true);
}

/** Returns the bytes of an item that its byte order turns round together: half of a complex number, a character of a text. */
export function wordSizeOf({ kind, itemSize, byteOrder }: NumberType & Pick<DataType, "byteOrder">): number {
  if (byteOrder === "|") return 1;
  return kind === "U" ? 4 : kind === "c" ? itemSize / 2 : itemSize;
}
