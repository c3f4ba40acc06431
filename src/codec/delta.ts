import { filterTypes } from "../zarr/numeric-filter-rules.js";
import type { NumericType } from "../zarr/numeric-type.js";
import type { Codec } from "./codec.js";
import {
  allocateItems,
  isWide,
  itemBytes,
  type NumberView,
  readItems,
  type WideView,
} from "./numeric-view.js";

/**
 * `delta` of numcodecs: the first item, then differences, in the arithmetic of `dtype` (integers wrap around, single
 * floats round after every step), stored as `astype`.
 */
export const delta: Codec = {
  decode(bytes, { codec }) {
    const { dtype, astype } = filterTypes(codec);
    if (sameWideTypes(dtype, astype)) return runWide(bytes, dtype, astype, addWide);
    const encoded = readItems(bytes, astype);
    const decoded = allocateItems(encoded.length, dtype);
    if (isWide(dtype) || isWide(astype)) addMixed(encoded, decoded);
    else addNumbers(encoded as NumberView, decoded as NumberView);
    return itemBytes(decoded, dtype);
  },
  encode(bytes, { codec }) {
    const { dtype, astype } = filterTypes(codec);
    if (sameWideTypes(dtype, astype)) return runWide(bytes, dtype, astype, subtractWide);
    const decoded = readItems(bytes, dtype);
    const encoded = allocateItems(decoded.length, astype);
    // Differences wrap around in `dtype` before they widen to `astype`.
    if (isWide(dtype) || isWide(astype)) subtractMixed(decoded, encoded, dtype);
    else subtractNumbers(decoded as NumberView, encoded as NumberView, allocateItems(1, dtype) as NumberView);
    return itemBytes(encoded, astype);
  },
};

/** Two's complement makes signed and unsigned one arithmetic. */
function sameWideTypes(a: NumericType, b: NumericType): boolean {
  return isWide(a) && isWide(b);
}

/** Typed arrays wrap integers and round floats when they store, as numpy does. */
function addNumbers(from: NumberView, to: NumberView): void {
  if (from.length === 0) return;
  to[0] = from[0]!;
  for (let i = 1; i < from.length; i++) to[i] = to[i - 1]! + from[i]!;
}

function subtractNumbers(from: NumberView, to: NumberView, wrapped: NumberView): void {
  if (from.length === 0) return;
  to[0] = from[0]!;
  for (let i = 1; i < from.length; i++) {
    wrapped[0] = from[i]! - from[i - 1]!;
    to[i] = wrapped[0]!;
  }
}

/** 64-bit integers as two words each: an order of magnitude quicker than `bigint`s. */
function runWide(
  bytes: Uint8Array,
  fromType: NumericType,
  toType: NumericType,
  run: (from: Uint32Array, to: Uint32Array) => void,
): Uint8Array {
  const from = readItems(bytes, fromType);
  const to = allocateItems(from.length, toType);
  run(wordsOf(from), wordsOf(to));
  return itemBytes(to, toType);
}

function wordsOf(items: NumberView | WideView): Uint32Array {
  return new Uint32Array(items.buffer as ArrayBuffer, items.byteOffset, items.byteLength / 4);
}

/** Which word of an item is the lower one. */
const LOW = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1 ? 0 : 1;
const HIGH = 1 - LOW;

function addWide(from: Uint32Array, to: Uint32Array): void {
  let low = 0;
  let high = 0;
  for (let i = 0; i < from.length; i += 2) {
    const sum = low + from[i + LOW]!;
    low = sum >>> 0;
    high = (high + from[i + HIGH]! + (sum > 0xffffffff ? 1 : 0)) >>> 0;
    to[i + LOW] = low;
    to[i + HIGH] = high;
  }
}

function subtractWide(from: Uint32Array, to: Uint32Array): void {
  let low = 0;
  let high = 0;
  for (let i = 0; i < from.length; i += 2) {
    const nextLow = from[i + LOW]!;
    const nextHigh = from[i + HIGH]!;
    to[i + LOW] = nextLow - low;
    to[i + HIGH] = nextHigh - high - (nextLow < low ? 1 : 0);
    low = nextLow;
    high = nextHigh;
  }
}

/** Integers of which one side has 64 bits. */
function addMixed(from: NumberView | WideView, to: NumberView | WideView): void {
  let sum = 0n;
  for (let i = 0; i < from.length; i++) {
    sum += BigInt(from[i]!);
    setWrapped(to, i, sum);
    sum = BigInt(to[i]!);
  }
}

function subtractMixed(from: NumberView | WideView, to: NumberView | WideView, dtype: NumericType): void {
  const bits = dtype.itemSize * 8;
  let previous = 0n;
  for (let i = 0; i < from.length; i++) {
    const item = BigInt(from[i]!);
    const difference = item - previous;
    setWrapped(
      to,
      i,
      dtype.kind === "u" ? BigInt.asUintN(bits, difference) : BigInt.asIntN(bits, difference),
    );
    previous = item;
  }
}

function setWrapped(to: NumberView | WideView, index: number, value: bigint): void {
  if (to instanceof BigInt64Array || to instanceof BigUint64Array) to[index] = value;
  else to[index] = Number(BigInt.asIntN(32, value));
}
