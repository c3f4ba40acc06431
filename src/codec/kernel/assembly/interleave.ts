// `low…` and `high…` interleave the lower, or the upper, halves of two vectors by lanes of so many bits: the steps of a
// transposition.

// @ts-ignore: decorator
@inline
export function low8(a: v128, b: v128): v128 {
  return v128.shuffle<u8>(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}

// @ts-ignore: decorator
@inline
export function high8(a: v128, b: v128): v128 {
  return v128.shuffle<u8>(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}

// @ts-ignore: decorator
@inline
export function low16(a: v128, b: v128): v128 {
  return v128.shuffle<u16>(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
}

// @ts-ignore: decorator
@inline
export function high16(a: v128, b: v128): v128 {
  return v128.shuffle<u16>(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}

// @ts-ignore: decorator
@inline
export function low32(a: v128, b: v128): v128 {
  return v128.shuffle<u32>(a, b, 0, 4, 1, 5);
}

// @ts-ignore: decorator
@inline
export function high32(a: v128, b: v128): v128 {
  return v128.shuffle<u32>(a, b, 2, 6, 3, 7);
}

// @ts-ignore: decorator
@inline
export function low64(a: v128, b: v128): v128 {
  return v128.shuffle<u64>(a, b, 0, 2);
}

// @ts-ignore: decorator
@inline
export function high64(a: v128, b: v128): v128 {
  return v128.shuffle<u64>(a, b, 1, 3);
}

/** Stores sixteen items of eight bytes: of each, its byte in every one of the eight vectors. */
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
