import { copyApart } from "./copy";
import {
  countSame,
  LAST_LITERALS,
  MATCH_FIND_LIMIT,
  MIN_MATCH,
  putLastLiterals,
  putLength,
} from "./lz4-sequences";

const MAX_DISTANCE: usize = 65535;
/** Up to here positions fit into sixteen bits, and the table holds twice as many. */
const SMALL_LIMIT: usize = 65536 + MATCH_FIND_LIMIT - 1;
/** A step grows by one for every so many (2^6) places without a match. */
const SKIP_TRIGGER: u32 = 6;

/** Positions by hash: 4096 of 32 bits, or 8192 of 16. */
export const LZ4_TABLE_BYTES: usize = 16384;

/** @param small Whether positions are of sixteen bits. */
// @ts-ignore: decorator
@inline
function hashAt(position: usize, small: bool): usize {
  if (small) return <usize>((load<u32>(position) * 2654435761) >> 19) << 1;
  // Of five bytes: of four there are more false candidates in a larger block.
  return <usize>(((load<u64>(position) << 24) * 889523592379) >> 52) << 2;
}

// @ts-ignore: decorator
@inline
function candidateAt(table: usize, hash: usize, small: bool): usize {
  return small ? <usize>load<u16>(table + hash) : <usize>load<u32>(table + hash);
}

// @ts-ignore: decorator
@inline
function putCandidate(table: usize, hash: usize, index: usize, small: bool): void {
  if (small) store<u16>(table + hash, <u16>index);
  else store<u32>(table + hash, <u32>index);
}

// @ts-ignore: decorator
@inline
function encode(
  source: usize,
  length: usize,
  target: usize,
  capacity: usize,
  acceleration: u32,
  table: usize,
  small: bool,
): usize {
  const end = source + length;
  const limit = target + capacity;
  let to = target;
  let anchor = source;

  if (length > MATCH_FIND_LIMIT) {
    memory.fill(table, 0, LZ4_TABLE_BYTES);
    const lastStart = end - MATCH_FIND_LIMIT + 1;
    const matchLimit = end - LAST_LITERALS;
    let position = source;
    putCandidate(table, hashAt(position, small), 0, small);
    position++;
    let nextHash = hashAt(position, small);

    let isSearching = true;
    while (isSearching) {
      let match: usize = 0;
      let next = position;
      let step: usize = 1;
      let attempts = acceleration << SKIP_TRIGGER;
      while (true) {
        const hash = nextHash;
        position = next;
        next += step;
        step = <usize>(attempts++ >> SKIP_TRIGGER);
        if (next > lastStart) {
          isSearching = false;
          break;
        }
        const index = position - source;
        const candidate = candidateAt(table, hash, small);
        nextHash = hashAt(next, small);
        putCandidate(table, hash, index, small);
        match = source + candidate;
        if (!small && candidate + MAX_DISTANCE < index) continue;
        if (load<u32>(match) == load<u32>(position)) break;
      }

      if (!isSearching) break;

      while (position > anchor && match > source && load<u8>(position - 1) == load<u8>(match - 1)) {
        position--;
        match--;
      }

      const literals = position - anchor;
      let token = to++;
      if (to + literals + (2 + 1 + LAST_LITERALS) + literals / 255 > limit) return 0;
      if (literals >= 15) {
        store<u8>(token, 15 << 4);
        to = putLength(to, literals - 15);
      } else store<u8>(token, <u8>(literals << 4));
      copyApart(anchor, to, literals);
      to += literals;

      while (true) {
        store<u16>(to, <u16>(position - match));
        to += 2;
        const extra = countSame(position + MIN_MATCH, match + MIN_MATCH, matchLimit);
        position += extra + MIN_MATCH;
        if (to + (1 + LAST_LITERALS) + (extra + 240) / 255 > limit) return 0;
        if (extra >= 15) {
          store<u8>(token, load<u8>(token) + 15);
          to = putLength(to, extra - 15);
        } else store<u8>(token, load<u8>(token) + <u8>extra);
        anchor = position;
        if (position >= lastStart) {
          isSearching = false;
          break;
        }

        putCandidate(table, hashAt(position - 2, small), position - 2 - source, small);
        const hash = hashAt(position, small);
        const index = position - source;
        const candidate = candidateAt(table, hash, small);
        putCandidate(table, hash, index, small);
        match = source + candidate;
        if ((!small && candidate + MAX_DISTANCE < index) || load<u32>(match) != load<u32>(position)) break;
        // Another match right behind: a sequence without literals.
        token = to++;
        store<u8>(token, 0);
      }
      if (isSearching) nextHash = hashAt(++position, small);
    }
  }

  to = putLastLiterals(to, limit, anchor, end);
  return to == 0 ? 0 : to - target;
}

/**
 * Encodes one LZ4 block: matches are looked for with a table of one position per hash, as the reference implementation
 * does, so that sizes are the same.
 * @param capacity Bytes at the target; up to 16 more may be written.
 * @param acceleration 1 or more: how quickly to skip where no match is found.
 * @param table Memory of LZ4_TABLE_BYTES.
 * @returns Encoded bytes; 0: they would be more than the capacity.
 */
export function encodeLz4(
  source: usize,
  length: usize,
  target: usize,
  capacity: usize,
  acceleration: u32,
  table: usize,
): usize {
  return length < SMALL_LIMIT
    ? encode(source, length, target, capacity, acceleration, table, true)
    : encode(source, length, target, capacity, acceleration, table, false);
}
