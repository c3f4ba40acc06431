/** For distances 0 to 15, the sixteen bytes that follow a repeated pattern of that length; for 16, the bytes themselves. */
const PATTERNS = memory.data<u8>([
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1,
  0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0,
  0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3,
  0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0,
  0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5, 0, 1, 2, 3,
  0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5, 6, 0, 1,
  0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7,
  0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 2, 3, 4, 5, 6,
  0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5,
  0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0, 1, 2, 3, 4,
  0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0, 1, 2, 3,
  0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0, 1, 2,
  0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 0, 1,
  0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0,
  0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
]);

/** The sixteen bytes behind those. */
const NEXT_PATTERNS = memory.data<u8>([
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1,
  1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1,
  0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3,
  1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1,
  4, 5, 0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5, 0, 1,
  2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3,
  0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7,
  7, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 2, 3, 4,
  6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1,
  5, 6, 7, 8, 9, 10, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9,
  4, 5, 6, 7, 8, 9, 10, 11, 0, 1, 2, 3, 4, 5, 6, 7,
  3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0, 1, 2, 3, 4, 5,
  2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 0, 1, 2, 3,
  1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0, 1,
  0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
]);

/** For distances 0 to 15, the number of bytes, at most sixteen, that are whole patterns. */
const STEPS = memory.data<u8>([16, 16, 16, 15, 16, 15, 12, 14, 16, 9, 10, 11, 12, 13, 14, 15]);

/** Above this many bytes, the engine's own copy is faster than a loop. */
const LONG_COPY: usize = 512;

/**
 * Copies `length` bytes to a higher address, at least 16 above, or to another buffer. Reads and writes up to 16 bytes
 * more. If both overlap, the pattern repeats.
 */
// @ts-ignore: decorator
@inline
export function copyForward(from: usize, to: usize, length: usize): void {
  const end = to + length;
  do {
    v128.store(to, v128.load(from));
    from += 16;
    to += 16;
  } while (to < end);
}

/** Copies 64 bytes to at least 16 above, which is faster than a branch on how many are needed. */
// @ts-ignore: decorator
@inline
function copy64(from: usize, to: usize): void {
  v128.store(to, v128.load(from));
  v128.store(to, v128.load(from, 16), 16);
  v128.store(to, v128.load(from, 32), 32);
  v128.store(to, v128.load(from, 48), 48);
}

/** Repeats the `distance` bytes before `to`, 1 to 15 of them, over `length` bytes. Writes up to 16 bytes more. */
// @ts-ignore: decorator
@inline
function repeatShort(to: usize, distance: usize, length: usize): void {
  const pattern = i8x16.swizzle(v128.load(to - distance), v128.load(PATTERNS + (distance << 4)));
  // Whole patterns only, so that the next sixteen bytes begin where the pattern does.
  const step = <usize>load<u8>(STEPS + distance);
  const end = to + length;
  do {
    v128.store(to, pattern);
    to += step;
  } while (to < end);
}

/**
 * Repeats the `distance` bytes before `to`, 16 to 64 of them, over `length` bytes. Writes up to 64 bytes more.
 *
 * Reads the pattern once: a load that spans two recent stores waits for both, which would slow long runs to half a gigabyte a
 * second.
 */
function repeatLong(to: usize, distance: usize, length: usize): void {
  const from = to - distance;
  const a = v128.load(from);
  const b = v128.load(from, 16);
  const c = v128.load(from, 32);
  const d = v128.load(from, 48);
  const end = to + length;
  do {
    // The next pattern overwrites what lies behind this one.
    v128.store(to, a);
    v128.store(to, b, 16);
    if (distance > 32) {
      v128.store(to, c, 32);
      v128.store(to, d, 48);
    }
    to += distance;
  } while (to < end);
}

/**
 * Copies 32 bytes from `distance` bytes before, for any distance and without a branch, which would be mispredicted.
 */
// @ts-ignore: decorator
@inline
export function copyMatch32(to: usize, distance: usize): void {
  const isShort = distance < 16;
  const row = (isShort ? distance : 16) << 4;
  const from = to - distance;
  v128.store(to, i8x16.swizzle(v128.load(from), v128.load(PATTERNS + row)));
  // The bytes just written hold at least one whole short pattern.
  const next = isShort ? to : from + 16;
  v128.store(to, i8x16.swizzle(v128.load(next), v128.load(NEXT_PATTERNS + row)), 16);
}

/** Copies between buffers that do not overlap. Reads and writes up to 16 bytes more. */
// @ts-ignore: decorator
@inline
export function copyApart(from: usize, to: usize, length: usize): void {
  if (length > LONG_COPY) memory.copy(to, from, length);
  else copyForward(from, to, length);
}

/** Bytes that the copies above may read or write too many. */
export const OVERRUN: usize = 64;

/**
 * Copies `length` bytes to `to` from `distance` bytes before it, as in LZ77: if both overlap, the pattern repeats. Never writes
 * beyond `room` bytes, which are at least the length.
 */
// @ts-ignore: decorator
@inline
export function copyMatch(to: usize, distance: usize, length: usize, room: usize): void {
  const end = to + length;
  // Byte by byte if there is no room for a copy that overruns.
  const bulk: usize = room >= length + OVERRUN ? length : room > OVERRUN ? room - OVERRUN : 0;
  if (bulk > 0) {
    if (distance < 16) repeatShort(to, distance, bulk);
    else if (bulk <= 64) copy64(to - distance, to);
    else if (distance <= 64) repeatLong(to, distance, bulk);
    else copyForward(to - distance, to, bulk);
    to += bulk;
  }
  for (let from = to - distance; to < end; ) store<u8>(to++, load<u8>(from++));
}
