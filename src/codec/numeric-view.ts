import type { NumericType } from "../zarr/numeric-type.js";
import { corrupt } from "./codec.js";

/** A typed array over items of up to 32 bits, or floats. */
export type NumberView =
  | Int8Array
  | Uint8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | Float32Array
  | Float64Array;

/** A typed array over 64-bit integers. */
export type WideView = BigInt64Array | BigUint64Array;

const VIEWS = {
  i1: Int8Array,
  u1: Uint8Array,
  i2: Int16Array,
  u2: Uint16Array,
  i4: Int32Array,
  u4: Uint32Array,
  f4: Float32Array,
  f8: Float64Array,
  i8: BigInt64Array,
  u8: BigUint64Array,
} as const;

const IS_LITTLE_ENDIAN = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;

/** Whether a type's items are 64-bit integers, which are `bigint`s in a typed array. */
export function isWide(type: NumericType): boolean {
  return type.itemSize === 8 && type.kind !== "f";
}

/**
 * The items of `bytes` in this machine's byte order: a view of `bytes` where it can be one, else of a copy.
 * @throws ZpublishError `corrupt-chunk` where the bytes are no whole number of items.
 */
export function readItems(bytes: Uint8Array, type: NumericType): NumberView | WideView {
  if (bytes.length % type.itemSize !== 0) {
    throw corrupt(`expected items of ${type.itemSize} bytes, received ${bytes.length} bytes`);
  }
  const mustSwap = swaps(type);
  const isView = bytes.byteOffset % type.itemSize === 0 && !mustSwap;
  const own = isView ? bytes : new Uint8Array(bytes);
  if (mustSwap) swapBytes(own, type.itemSize);
  return viewOf(own, type);
}

/** Room for items of a type, in this machine's byte order; {@link itemBytes} turns it into bytes. */
export function allocateItems(count: number, type: NumericType): NumberView | WideView {
  return viewOf(new Uint8Array(count * type.itemSize), type);
}

/** The bytes behind {@link allocateItems} in the type's byte order. Swaps in place: call it once. */
export function itemBytes(items: NumberView | WideView, type: NumericType): Uint8Array {
  const bytes = new Uint8Array(items.buffer, items.byteOffset, items.byteLength);
  if (swaps(type)) swapBytes(bytes, type.itemSize);
  return bytes;
}

function viewOf(bytes: Uint8Array, type: NumericType): NumberView | WideView {
  const View = VIEWS[`${type.kind}${type.itemSize}` as keyof typeof VIEWS];
  return new View(bytes.buffer as ArrayBuffer, bytes.byteOffset, bytes.length / type.itemSize);
}

function swaps(type: NumericType): boolean {
  return type.itemSize > 1 && type.isBigEndian === IS_LITTLE_ENDIAN;
}

function swapBytes(bytes: Uint8Array, itemSize: number): void {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (itemSize === 2) buffer.swap16();
  else if (itemSize === 4) buffer.swap32();
  else buffer.swap64();
}
