import { shuffleBytes, unshuffleBytes } from "./byte-shuffle";
import { high8, low8, storeItems8 } from "./interleave";

/** Bytes that the vector loops take at a time. */
const BLOCK_BYTES: usize = 128;

/**
 * Blosc's bit shuffle: row `8 * b + k` of the target holds bit `k` of byte `b` of every item, eight items to a byte.
 * If the number of items is not a multiple of eight, all bytes stay, as those behind the last whole item do.
 * @param scratch Memory of the same length.
 */
export function shuffleBits(source: usize, target: usize, length: usize, itemSize: usize, scratch: usize): void {
  const count = length / itemSize;
  if ((count & 7) != 0) {
    memory.copy(target, source, length);
    return;
  }
  let planes = source;
  if (itemSize > 1) {
    shuffleBytes(source, scratch, length, itemSize);
    planes = scratch;
  }
  const whole = count * itemSize;
  for (let begin: usize = 0; begin < whole; begin += count) splitBits(planes + begin, target + begin, count);
  memory.copy(target + whole, source + whole, length - whole);
}

/** The opposite of {@link shuffleBits}. */
export function unshuffleBits(source: usize, target: usize, length: usize, itemSize: usize, scratch: usize): void {
  const count = length / itemSize;
  if ((count & 7) != 0) {
    memory.copy(target, source, length);
    return;
  }
  const whole = count * itemSize;
  const planes = itemSize > 1 ? scratch : target;
  for (let begin: usize = 0; begin < whole; begin += count) joinBits(source + begin, planes + begin, count);
  if (itemSize > 1) unshuffleBytes(planes, target, whole, itemSize);
  memory.copy(target + whole, source + whole, length - whole);
}

/**
 * Splits the bits of one plane of bytes (one byte of every item): row `k` of the target holds bit `k` of each, eight to a
 * byte.
 * @param count Bytes of the plane, a multiple of 8.
 */
function splitBits(source: usize, target: usize, count: usize): void {
  const rowLength = count >> 3;
  let i: usize = 0;
  for (; i + BLOCK_BYTES <= count; i += BLOCK_BYTES) {
    let from = source + i;
    let a = v128.load(from);
    let b = v128.load(from, 16);
    let c = v128.load(from, 32);
    let d = v128.load(from, 48);
    let e = v128.load(from, 64);
    let f = v128.load(from, 80);
    let g = v128.load(from, 96);
    let h = v128.load(from, 112);
    // Every round is a rotation of what bytes are numbered with: vector (3 bits), place in it (4). After four, bytes
    // whose numbers end alike are in one vector.
    for (let round = 0; round < 4; round++) {
      const a2 = low8(a, e);
      const b2 = high8(a, e);
      const c2 = low8(b, f);
      const d2 = high8(b, f);
      const e2 = low8(c, g);
      const f2 = high8(c, g);
      const g2 = low8(d, h);
      const h2 = high8(d, h);
      a = a2;
      b = b2;
      c = c2;
      d = d2;
      e = e2;
      f = f2;
      g = g2;
      h = h2;
    }
    const a4 = lowerBits(a, e, 4, 0x0f);
    const e4 = upperBits(a, e, 4, 0x0f);
    const b4 = lowerBits(b, f, 4, 0x0f);
    const f4 = upperBits(b, f, 4, 0x0f);
    const c4 = lowerBits(c, g, 4, 0x0f);
    const g4 = upperBits(c, g, 4, 0x0f);
    const d4 = lowerBits(d, h, 4, 0x0f);
    const h4 = upperBits(d, h, 4, 0x0f);
    const to = target + (i >> 3);
    storeRows(to, rowLength, a4, b4, c4, d4);
    storeRows(to + 4 * rowLength, rowLength, e4, f4, g4, h4);
  }
  for (; i < count; i += 8) {
    let bits = v128.load_zero<u64>(source + i);
    let to = target + 7 * rowLength + (i >> 3);
    // The sign bits are the eighth; every shift to the left brings up the one below.
    for (let k = 0; k < 8; k++) {
      store<u8>(to, <u8>i8x16.bitmask(bits));
      bits = i8x16.add(bits, bits);
      to -= rowLength;
    }
  }
}

/** Rows of bits, from vectors that hold half of each. */
// @ts-ignore: decorator
@inline
function storeRows(to: usize, rowLength: usize, a: v128, b: v128, c: v128, d: v128): void {
  const a2 = lowerBits(a, c, 2, 0x33);
  const c2 = upperBits(a, c, 2, 0x33);
  const b2 = lowerBits(b, d, 2, 0x33);
  const d2 = upperBits(b, d, 2, 0x33);
  v128.store(to, lowerBits(a2, b2, 1, 0x55));
  v128.store((to += rowLength), upperBits(a2, b2, 1, 0x55));
  v128.store((to += rowLength), lowerBits(c2, d2, 1, 0x55));
  v128.store(to + rowLength, upperBits(c2, d2, 1, 0x55));
}

/** Bits of the mask stay; the others come from the same places of `b`, moved up. */
// @ts-ignore: decorator
@inline
function lowerBits(a: v128, b: v128, by: i32, mask: i8): v128 {
  return v128.xor(a, i64x2.shl(swappedBits(a, b, by, mask), by));
}

/** Bits above the mask stay; the others come from `a`, moved down. */
// @ts-ignore: decorator
@inline
function upperBits(a: v128, b: v128, by: i32, mask: i8): v128 {
  return v128.xor(b, swappedBits(a, b, by, mask));
}

// @ts-ignore: decorator
@inline
function swappedBits(a: v128, b: v128, by: i32, mask: i8): v128 {
  return v128.and(v128.xor(i64x2.shr_u(a, by), b), i8x16.splat(mask));
}

/** The opposite of {@link splitBits}. */
function joinBits(source: usize, target: usize, count: usize): void {
  const rowLength = count >> 3;
  let group: usize = 0;
  for (; group + 16 <= rowLength; group += 16) {
    let row = source + group;
    const a1 = v128.load(row);
    const b1 = v128.load((row += rowLength));
    const c1 = v128.load((row += rowLength));
    const d1 = v128.load((row += rowLength));
    const e1 = v128.load((row += rowLength));
    const f1 = v128.load((row += rowLength));
    const g1 = v128.load((row += rowLength));
    const h1 = v128.load((row += rowLength));
    const a2 = lowerBits(a1, e1, 4, 0x0f);
    const e2 = upperBits(a1, e1, 4, 0x0f);
    const b2 = lowerBits(b1, f1, 4, 0x0f);
    const f2 = upperBits(b1, f1, 4, 0x0f);
    const c2 = lowerBits(c1, g1, 4, 0x0f);
    const g2 = upperBits(c1, g1, 4, 0x0f);
    const d2 = lowerBits(d1, h1, 4, 0x0f);
    const h2 = upperBits(d1, h1, 4, 0x0f);
    const a3 = lowerBits(a2, c2, 2, 0x33);
    const c3 = upperBits(a2, c2, 2, 0x33);
    const b3 = lowerBits(b2, d2, 2, 0x33);
    const d3 = upperBits(b2, d2, 2, 0x33);
    const e3 = lowerBits(e2, g2, 2, 0x33);
    const g3 = upperBits(e2, g2, 2, 0x33);
    const f3 = lowerBits(f2, h2, 2, 0x33);
    const h3 = upperBits(f2, h2, 2, 0x33);
    const a = lowerBits(a3, b3, 1, 0x55);
    const b = upperBits(a3, b3, 1, 0x55);
    const c = lowerBits(c3, d3, 1, 0x55);
    const d = upperBits(c3, d3, 1, 0x55);
    const e = lowerBits(e3, f3, 1, 0x55);
    const f = upperBits(e3, f3, 1, 0x55);
    const g = lowerBits(g3, h3, 1, 0x55);
    const h = upperBits(g3, h3, 1, 0x55);
    storeItems8(target + (group << 3), a, b, c, d, e, f, g, h);
  }
  for (; group < rowLength; group++) {
    let row = source + group;
    let rows: u64 = 0;
    for (let k: u64 = 0; k < 64; k += 8) {
      rows |= <u64>load<u8>(row) << k;
      row += rowLength;
    }
    store<u64>(target + (group << 3), transposeBits(rows));
  }
}

/** Transposes eight by eight bits (Hacker's Delight, 7-3): bit `i` of byte `k` becomes bit `k` of byte `i`. */
// @ts-ignore: decorator
@inline
function transposeBits(x: u64): u64 {
  let swap = (x ^ (x >> 7)) & 0x00aa00aa00aa00aa;
  x ^= swap ^ (swap << 7);
  swap = (x ^ (x >> 14)) & 0x0000cccc0000cccc;
  x ^= swap ^ (swap << 14);
  swap = (x ^ (x >> 28)) & 0x00000000f0f0f0f0;
  return x ^ swap ^ (swap << 28);
}
