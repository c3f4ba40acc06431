import type { NumericType } from "../zarr/plan/codec-rules.js";
import { corrupt } from "./codec.js";
import { type KernelMemory, OWN_MEMORY } from "./kernel/kernel-memory.js";

/** A typed array of numbers; 64-bit integers are taken as words, see {@link wordsOf}. */
export type NumberView =
  | Int8Array
  | Uint8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | Float32Array
  | Float64Array;

const VIEWS = {
  i1: Int8Array,
  u1: Uint8Array,
  i2: Int16Array,
  u2: Uint16Array,
  i4: Int32Array,
  u4: Uint32Array,
  f4: Float32Array,
  f8: Float64Array,
} as const;

/** Whether this machine writes the least byte of a number first. */
export const IS_LITTLE_ENDIAN = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;

/** Index of the lower word of a 64-bit integer. */
export const LOW_WORD = IS_LITTLE_ENDIAN ? 0 : 1;
/** Index of the higher one. */
export const HIGH_WORD = 1 - LOW_WORD;

/** The type that 64-bit integers are handled as. */
export const WORD: NumericType = Object.freeze({
  kind: "i",
  itemSize: 4,
  isBigEndian: !IS_LITTLE_ENDIAN,
  name: "i4",
});

/** Whether a type is a 64-bit integer, which is handled as two words: `bigint`s are slow. */
export function isWide(type: NumericType): boolean {
  return type.itemSize === 8 && type.kind !== "f";
}

/**
 * Returns items in this machine's byte order, aligned for views: `bytes` itself if it is both.
 * @throws ZpublishError `corrupt-chunk` if the bytes are not a whole number of items.
 */
export function nativeBytes(bytes: Uint8Array, type: NumericType, memory?: KernelMemory): Uint8Array {
  if (bytes.byteOffset % type.itemSize !== 0 || swaps(type)) return copyNativeBytes(bytes, type, memory);
  checkWhole(bytes, type);
  return bytes;
}

/** As {@link nativeBytes}, in a copy that the caller may change. */
export function copyNativeBytes(
  bytes: Uint8Array,
  type: NumericType,
  memory: KernelMemory = OWN_MEMORY,
): Uint8Array {
  checkWhole(bytes, type);
  const copy = memory.allocate(bytes.length);
  copy.set(bytes);
  return swapToOrder(copy, type);
}

/** Swaps items in place if their type's byte order is not this machine's; the same call swaps them back. */
export function swapToOrder(bytes: Uint8Array, type: NumericType): Uint8Array {
  if (swaps(type)) swapWords(bytes, type.itemSize);
  return bytes;
}

/** Turns round the bytes of each word in place. */
export function swapWords(bytes: Uint8Array, wordSize: number): void {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (wordSize === 2) buffer.swap16();
  else if (wordSize === 4) buffer.swap32();
  else if (wordSize === 8) buffer.swap64();
  else if (wordSize > 8)
    for (let at = 0; at < bytes.length; at += wordSize) bytes.subarray(at, at + wordSize).reverse();
}

/** The items of {@link nativeBytes}; not for 64-bit integers. */
export function viewOf(bytes: Uint8Array, type: NumericType): NumberView {
  const View = VIEWS[`${type.kind}${type.itemSize}` as keyof typeof VIEWS];
  return new View(bytes.buffer as ArrayBuffer, bytes.byteOffset, bytes.length / type.itemSize);
}

/** Allocates `count` items; {@link bytesOf} gives their bytes. */
export function allocateItems(count: number, type: NumericType, memory?: KernelMemory): NumberView {
  return viewOf((memory ?? OWN_MEMORY).allocate(count * type.itemSize), type);
}

/** The bytes under a view. */
export function bytesOf(items: NumberView): Uint8Array {
  return new Uint8Array(items.buffer, items.byteOffset, items.byteLength);
}

/** The words of 64-bit integers: two for each, the lower at {@link LOW_WORD}. */
export function wordsOf(bytes: Uint8Array): Int32Array {
  return new Int32Array(bytes.buffer as ArrayBuffer, bytes.byteOffset, bytes.length / 4);
}

function checkWhole(bytes: Uint8Array, type: NumericType): void {
  if (bytes.length % type.itemSize === 0) return;
  throw corrupt(`expected items of ${type.itemSize} bytes, received ${bytes.length} bytes`);
}

function swaps(type: NumericType): boolean {
  return type.itemSize > 1 && type.isBigEndian === IS_LITTLE_ENDIAN;
}
