import { countSame } from "./lz4-sequences";

/** Literals of one run at most; a run's first byte says how many there are. */
const MAX_LITERALS: usize = 32;
const MIN_MATCH: usize = 4;
/** Distances less one; from here on they take two bytes more. */
const FAR_DISTANCE: usize = 8191;
const MAX_DISTANCE: usize = 65535 + FAR_DISTANCE - 1;
/** No match begins in the last so many bytes. */
const MATCH_FIND_LIMIT: usize = 12;
/** Longer lengths take more than the three bits that there are. */
const MAX_SHORT_LENGTH: usize = 6;

const HASH_BITS: u32 = 14;
/** Positions of 32 bits by hash. */
export const BLOSCLZ_TABLE_BYTES: usize = 4 << HASH_BITS;

const PROBE_HASH_BITS: u32 = 12;
/** Positions of 16 bits by hash. */
const PROBE_TABLE_BYTES: usize = 2 << PROBE_HASH_BITS;
const PROBE_BYTES: usize = 4096;

/** By level, how many times shorter the probe must become: the less is to be had, the less it is worth the time. */
const MIN_RATIOS = memory.data<f64>([0, 2, 1.5, 1.2, 1.2, 1.2, 1.2, 1.15, 1.1, 1]);
/** From this ratio on, streams of split blocks are encoded with fewer, longer matches. */
const EASY_RATIO: f64 = 4;

// @ts-ignore: decorator
@inline
function hashOf(bytes: u32, bits: u32): usize {
  return <usize>((bytes * 2654435761) >> (32 - bits));
}

/** @returns Behind the first byte that is not the same from two places on, at most `last`. */
// @ts-ignore: decorator
@inline
function matchEnd(position: usize, match: usize, last: usize): usize {
  while (position + 16 <= last) {
    const same = i8x16.bitmask(i8x16.eq(v128.load(position), v128.load(match)));
    if (same != 0xffff) return position + <usize>ctz(~same) + 1;
    position += 16;
    match += 16;
  }
  return min(position + countSame(position, match, last) + 1, last);
}

/** How many times shorter some of the bytes become, about: what the encoder would do, only counted. */
function probe(source: usize, length: usize, table: usize): f64 {
  if (length <= MATCH_FIND_LIMIT) return 0;
  memory.fill(table, 0, PROBE_TABLE_BYTES);
  const last = source + length - 1;
  const lastStart = source + length - MATCH_FIND_LIMIT;
  let encoded: i32 = 5;
  let literals: usize = 4;
  let position = source;
  while (position < lastStart) {
    const slot = table + (hashOf(load<u32>(position), PROBE_HASH_BITS) << 1);
    const match = source + <usize>load<u16>(slot);
    store<u16>(slot, <u16>(position - source));
    if (match != position && load<u32>(match) == load<u32>(position)) {
      const next = matchEnd(position + MIN_MATCH, match + MIN_MATCH, last) - 3;
      const matched = next - position;
      if (matched >= 3) {
        if (literals == 0) encoded--;
        literals = 0;
        encoded += position - match - 1 < FAR_DISTANCE ? 3 : 5;
        if (matched > MAX_SHORT_LENGTH) encoded += <i32>((matched - 7) / 255) + 1;
        store<u16>(table + (hashOf(load<u32>(next), PROBE_HASH_BITS) << 1), <u16>(next - source));
        position = next + 2;
        continue;
      }
    }
    position++;
    encoded++;
    if (++literals == MAX_LITERALS) {
      literals = 0;
      encoded++;
    }
  }
  return <f64>(position - source) / <f64>encoded;
}

/** Copies up to 32 bytes; up to 15 more are read and written. */
// @ts-ignore: decorator
@inline
function copyLiterals(from: usize, to: usize, count: usize): void {
  v128.store(to, v128.load(from));
  if (count > 16) v128.store(to, v128.load(from, 16), 16);
}

/** @returns Where the next byte goes; 0: the match does not fit. */
// @ts-ignore: decorator
@inline
function putMatch(to: usize, limit: usize, length: usize, distance: usize): usize {
  const isFar = distance >= FAR_DISTANCE;
  const far = isFar ? distance - FAR_DISTANCE : 0;
  const high: usize = isFar ? 31 : distance >> 8;
  if (length <= MAX_SHORT_LENGTH) {
    if (to + (isFar ? 4 : 2) > limit) return 0;
    store<u8>(to++, <u8>((length << 5) | high));
  } else {
    const extra = length - 7;
    if (to + 1 + extra / 255 + (isFar ? 4 : 2) > limit) return 0;
    store<u8>(to++, <u8>((7 << 5) | high));
    for (length = extra; length >= 255; length -= 255) store<u8>(to++, 255);
    store<u8>(to++, <u8>length);
  }
  if (!isFar) {
    store<u8>(to++, <u8>distance);
    return to;
  }
  store<u8>(to, 255);
  store<u8>(to, <u8>(far >> 8), 1);
  store<u8>(to, <u8>far, 2);
  return to + 3;
}

/**
 * Encodes one BloscLZ stream. Whether it is worth it at all, by a probe, and every match are as in c-blosc 1.21, so that
 * sizes are the same.
 * @param capacity Bytes at the target; up to 16 more may be written.
 * @param level 1 to 9.
 * @param isSplit Whether the stream is one of several of its block.
 * @param table Memory of BLOSCLZ_TABLE_BYTES.
 * @returns Encoded bytes; 0: they would be more than the capacity, or hardly fewer than there are.
 */
export function encodeBlosclz(
  source: usize,
  length: usize,
  target: usize,
  capacity: usize,
  level: u32,
  isSplit: bool,
  table: usize,
): usize {
  const probed = min(length / 4, PROBE_BYTES);
  const ratio = probe(source + length - length / 4, probed, table);
  if (ratio < load<f64>(MIN_RATIOS + (<usize>level << 3))) return 0;
  if (length < 16 || capacity < 66) return 0;

  // Of what matches, so many bytes at the end are left to what comes next; one of them is the one that does not.
  const held: usize = isSplit && ratio >= EASY_RATIO ? 4 : 3;
  const hashBits = level < 3 ? HASH_BITS - 3 + level : HASH_BITS;
  memory.fill(table, 0, <usize>4 << hashBits);

  const limit = target + capacity;
  const last = source + length - 1;
  const lastStart = source + length - MATCH_FIND_LIMIT;
  // Where the run of literals is announced, and where it begins.
  let control = target;
  let anchor = source;
  let position = source + 4;

  while (position < lastStart) {
    const bytes = load<u32>(position);
    const slot = table + (hashOf(bytes, hashBits) << 2);
    const match = source + <usize>load<u32>(slot);
    store<u32>(slot, <u32>(position - source));
    const distance = position - match - 1;
    if (distance < MAX_DISTANCE - 1 && load<u32>(match) == bytes) {
      const next = matchEnd(position + MIN_MATCH, match + MIN_MATCH, last) - held;
      const matched = next - position;
      if (matched >= held && (matched > 5 || distance < FAR_DISTANCE)) {
        const literals = position - anchor;
        let to = control;
        if (literals > 0) {
          if (to + literals + 2 > limit) return 0;
          store<u8>(to++, <u8>(literals - 1));
          copyLiterals(anchor, to, literals);
          to += literals;
        }
        to = putMatch(to, limit, matched, distance);
        if (to == 0 || to + 1 > limit) return 0;
        control = to;
        store<u32>(table + (hashOf(load<u32>(next), hashBits) << 2), <u32>(next - source));
        if (level == 9) {
          const shifted = load<u32>(next) >> 8;
          store<u32>(table + (hashOf(shifted, hashBits) << 2), <u32>(next + 1 - source));
        }
        anchor = position = next + 2;
        continue;
      }
    }
    position++;
    if (position - anchor == MAX_LITERALS) {
      if (control + MAX_LITERALS + 2 > limit) return 0;
      store<u8>(control, MAX_LITERALS - 1);
      copyLiterals(anchor, control + 1, MAX_LITERALS);
      control += 1 + MAX_LITERALS;
      anchor = position;
    }
  }

  const end = last + 1;
  while (anchor < end) {
    const literals = min(end - anchor, MAX_LITERALS);
    if (control + literals + 2 > limit) return 0;
    store<u8>(control, <u8>(literals - 1));
    memory.copy(control + 1, anchor, literals);
    control += 1 + literals;
    anchor += literals;
  }
  // The top bits of the first byte say the format's level.
  store<u8>(target, load<u8>(target) | (1 << 5));
  return control - target;
}
