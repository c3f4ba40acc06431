/** Items that the vector loops take at a time. */
export const LANES: usize = 16;

/** Interleaves the lower halves of two vectors by lanes of 8 bits. */
// @ts-ignore: decorator
@inline
export function low8(a: v128, b: v128): v128 {
  return v128.shuffle<u8>(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}

/** Interleaves the upper halves of two vectors by lanes of 8 bits. */
// @ts-ignore: decorator
@inline
export function high8(a: v128, b: v128): v128 {
  return v128.shuffle<u8>(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}

/** Interleaves the lower halves of two vectors by lanes of 16 bits. */
// @ts-ignore: decorator
@inline
export function low16(a: v128, b: v128): v128 {
  return v128.shuffle<u16>(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
}

/** Interleaves the upper halves of two vectors by lanes of 16 bits. */
// @ts-ignore: decorator
@inline
export function high16(a: v128, b: v128): v128 {
  return v128.shuffle<u16>(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}

/** Interleaves the lower halves of two vectors by lanes of 32 bits. */
// @ts-ignore: decorator
@inline
export function low32(a: v128, b: v128): v128 {
  return v128.shuffle<u32>(a, b, 0, 4, 1, 5);
}

/** Interleaves the upper halves of two vectors by lanes of 32 bits. */
// @ts-ignore: decorator
@inline
export function high32(a: v128, b: v128): v128 {
  return v128.shuffle<u32>(a, b, 2, 6, 3, 7);
}

/** Interleaves the lower halves of two vectors by lanes of 64 bits. */
// @ts-ignore: decorator
@inline
export function low64(a: v128, b: v128): v128 {
  return v128.shuffle<u64>(a, b, 0, 2);
}

/** Interleaves the upper halves of two vectors by lanes of 64 bits. */
// @ts-ignore: decorator
@inline
export function high64(a: v128, b: v128): v128 {
  return v128.shuffle<u64>(a, b, 1, 3);
}

/** Stores sixteen items of eight bytes, from eight vectors that hold one byte of every item each. */
// @ts-ignore: decorator
@inline
export function storeItems8(
  to: usize,
  a: v128,
  b: v128,
  c: v128,
  d: v128,
  e: v128,
  f: v128,
  g: v128,
  h: v128,
): void {
  storeHalf8(to, low8(a, b), low8(c, d), low8(e, f), low8(g, h));
  storeHalf8(to + 64, high8(a, b), high8(c, d), high8(e, f), high8(g, h));
}

/** Eight items of eight bytes, from pairs of their bytes. */
// @ts-ignore: decorator
@inline
function storeHalf8(to: usize, ab: v128, cd: v128, ef: v128, gh: v128): void {
  const abcdLow = low16(ab, cd);
  const abcdHigh = high16(ab, cd);
  const efghLow = low16(ef, gh);
  const efghHigh = high16(ef, gh);
  v128.store(to, low32(abcdLow, efghLow));
  v128.store(to, high32(abcdLow, efghLow), 16);
  v128.store(to, low32(abcdHigh, efghHigh), 32);
  v128.store(to, high32(abcdHigh, efghHigh), 48);
}

/** Stores sixteen bytes of each of four planes, from four vectors whose lanes are planes. */
// @ts-ignore: decorator
@inline
export function storePlanes(to: usize, count: usize, a: v128, b: v128, c: v128, d: v128): void {
  const low1 = low32(a, b);
  const low2 = low32(c, d);
  const high1 = high32(a, b);
  const high2 = high32(c, d);
  v128.store(to, low64(low1, low2));
  v128.store((to += count), high64(low1, low2));
  v128.store((to += count), low64(high1, high2));
  v128.store(to + count, high64(high1, high2));
}

/**
 * Four items of four bytes: every lane becomes one byte of all of them. A swizzle: V8 keeps its pattern in a
 * register, but makes that of a shuffle again each time.
 */
// @ts-ignore: decorator
@inline
export function transpose4(items: v128): v128 {
  return i8x16.swizzle(items, i8x16(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
}
