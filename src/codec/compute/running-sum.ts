import type { NumericType } from "../../zarr/plan/codec-rules.js";
import { HIGH_WORD, LOW_WORD, wordsOf } from "../item-reader.js";

// The loops below are written out, one per class of typed array: V8 runs a loop that has met several of them some fifty times
// slower, even if each is a closure of its own. Signed arrays stand for unsigned ones too, since two's complement makes the
// arithmetic the same.

/**
 * Replaces every item by the sum of it and all before it, in place and in the type's arithmetic: integers wrap around, floats
 * round at every step.
 * @param bytes Whole items in this machine's byte order, aligned to their size.
 */
export function sumUp(bytes: Uint8Array, type: NumericType): void {
  const { buffer, byteOffset } = bytes as Uint8Array<ArrayBuffer>;
  const length = bytes.length / type.itemSize;
  if (type.kind === "f") {
    if (type.itemSize === 4) sumFloats(new Float32Array(buffer, byteOffset, length));
    else sumDoubles(new Float64Array(buffer, byteOffset, length));
  } else if (type.itemSize === 1) sumBytes(new Int8Array(buffer, byteOffset, length));
  else if (type.itemSize === 2) sumShorts(new Int16Array(buffer, byteOffset, length));
  else if (type.itemSize === 4) sumWords(new Int32Array(buffer, byteOffset, length));
  else sumWordPairs(wordsOf(bytes));
}

/** Replaces every integer but the first by its difference to the one before, in place; {@link sumUp} undoes it. */
export function takeDifferences(bytes: Uint8Array, type: NumericType): void {
  const { buffer, byteOffset } = bytes as Uint8Array<ArrayBuffer>;
  const length = bytes.length / type.itemSize;
  if (type.itemSize === 1) subtractBytes(new Int8Array(buffer, byteOffset, length));
  else if (type.itemSize === 2) subtractShorts(new Int16Array(buffer, byteOffset, length));
  else if (type.itemSize === 4) subtractWords(new Int32Array(buffer, byteOffset, length));
  else subtractWordPairs(wordsOf(bytes));
}

/** Unrolled by four, which is twice as fast for small items. */
function sumBytes(items: Int8Array): void {
  const whole = items.length & ~3;
  let sum = 0;
  let i = 0;
  for (; i < whole; i += 4) {
    sum = (sum + items[i]!) | 0;
    items[i] = sum;
    sum = (sum + items[i + 1]!) | 0;
    items[i + 1] = sum;
    sum = (sum + items[i + 2]!) | 0;
    items[i + 2] = sum;
    sum = (sum + items[i + 3]!) | 0;
    items[i + 3] = sum;
  }
  for (; i < items.length; i++) {
    sum = (sum + items[i]!) | 0;
    items[i] = sum;
  }
}

function sumShorts(items: Int16Array): void {
  const whole = items.length & ~3;
  let sum = 0;
  let i = 0;
  for (; i < whole; i += 4) {
    sum = (sum + items[i]!) | 0;
    items[i] = sum;
    sum = (sum + items[i + 1]!) | 0;
    items[i + 1] = sum;
    sum = (sum + items[i + 2]!) | 0;
    items[i + 2] = sum;
    sum = (sum + items[i + 3]!) | 0;
    items[i + 3] = sum;
  }
  for (; i < items.length; i++) {
    sum = (sum + items[i]!) | 0;
    items[i] = sum;
  }
}

function sumWords(items: Int32Array): void {
  let sum = 0;
  for (let i = 0; i < items.length; i++) {
    sum = (sum + items[i]!) | 0;
    items[i] = sum;
  }
}

function sumWordPairs(words: Int32Array): void {
  // V8 looks up constants of another module at every item.
  const [atLow, atHigh] = [LOW_WORD, HIGH_WORD];
  let low = 0;
  let high = 0;
  for (let i = 0; i < words.length; i += 2) {
    const addend = words[i + atLow]!;
    const sum = (low + addend) | 0;
    // The carry without a branch, which noise would mispredict: both top bits, or one that the sum has lost.
    const carry = ((low & addend) | ((low | addend) & ~sum)) >>> 31;
    high = (high + words[i + atHigh]! + carry) | 0;
    low = sum;
    words[i + atLow] = low;
    words[i + atHigh] = high;
  }
}

/** Starts with the first item, not with zero, so that a negative zero stays negative. */
function sumFloats(items: Float32Array): void {
  let sum = items.length === 0 ? 0 : items[0]!;
  for (let i = 1; i < items.length; i++) {
    sum = Math.fround(sum + items[i]!);
    items[i] = sum;
  }
  if (Number.isNaN(sum)) fillNaN(items);
}

function sumDoubles(items: Float64Array): void {
  let sum = items.length === 0 ? 0 : items[0]!;
  for (let i = 1; i < items.length; i++) {
    sum += items[i]!;
    items[i] = sum;
  }
  if (Number.isNaN(sum)) fillNaN(items);
}

/**
 * Gives all NaNs from the second item on one bit pattern. Which of the many comes out of a sum depends on the processor, and on whether V8 has
 * compiled the loop; the same chunk must be the same bytes.
 */
function fillNaN(items: Float32Array | Float64Array): void {
  items.fill(Number.NaN, Math.max(1, items.findIndex(Number.isNaN)));
}

function subtractBytes(items: Int8Array): void {
  const whole = items.length & ~3;
  let before = 0;
  let i = 0;
  for (; i < whole; i += 4) {
    const a = items[i]!;
    const b = items[i + 1]!;
    const c = items[i + 2]!;
    const d = items[i + 3]!;
    items[i] = a - before;
    items[i + 1] = b - a;
    items[i + 2] = c - b;
    items[i + 3] = d - c;
    before = d;
  }
  for (; i < items.length; i++) {
    const item = items[i]!;
    items[i] = item - before;
    before = item;
  }
}

function subtractShorts(items: Int16Array): void {
  const whole = items.length & ~3;
  let before = 0;
  let i = 0;
  for (; i < whole; i += 4) {
    const a = items[i]!;
    const b = items[i + 1]!;
    const c = items[i + 2]!;
    const d = items[i + 3]!;
    items[i] = a - before;
    items[i + 1] = b - a;
    items[i + 2] = c - b;
    items[i + 3] = d - c;
    before = d;
  }
  for (; i < items.length; i++) {
    const item = items[i]!;
    items[i] = item - before;
    before = item;
  }
}

function subtractWords(items: Int32Array): void {
  let before = 0;
  for (let i = 0; i < items.length; i++) {
    const item = items[i]!;
    items[i] = item - before;
    before = item;
  }
}

function subtractWordPairs(words: Int32Array): void {
  const [atLow, atHigh] = [LOW_WORD, HIGH_WORD];
  let low = 0;
  let high = 0;
  for (let i = 0; i < words.length; i += 2) {
    const nextLow = words[i + atLow]!;
    const nextHigh = words[i + atHigh]!;
    const difference = (nextLow - low) | 0;
    const borrow = ((~nextLow & low) | ((~nextLow | low) & difference)) >>> 31;
    words[i + atLow] = difference;
    words[i + atHigh] = nextHigh - high - borrow;
    low = nextLow;
    high = nextHigh;
  }
}
