import { copyApart } from "./copy";
/** The shortest match, which a token counts as zero. */
const MIN_MATCH: usize = 4;
/** The last bytes of a block are literals (LZ4 block format description, "End of block conditions"). */
const LAST_LITERALS: usize = 5;
/** No match begins in this many last bytes. */
const MATCH_FIND_LIMIT: usize = 12;

const MAX_DISTANCE: usize = 65535;
/** Up to this length positions fit into sixteen bits, and the table holds twice as many. */
const SMALL_LIMIT: usize = 65536 + MATCH_FIND_LIMIT - 1;
/** The search step grows by one for every 2^6 places without a match. */
const SKIP_TRIGGER: u32 = 6;

/** Positions by hash: 4096 of 32 bits, or 8192 of 16. As `TABLE_BYTES` of `wasm-instance.ts`. */
const TABLE_BYTES: usize = 16384;

/** Place in the table. @param small Whether positions have sixteen bits. */
// @ts-ignore: decorator
@inline
function hashAt(position: usize, small: bool): usize {
  if (small) return <usize>((load<u32>(position) * 2654435761) >> 19) << 1;
  // Five bytes: with four there are more false candidates in a larger block.
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
    memory.fill(table, 0, TABLE_BYTES);
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
        // Another match follows at once: a sequence without literals.
        token = to++;
        store<u8>(token, 0);
      }
      if (isSearching) nextHash = hashAt(++position, small);
    }
  }

  to = putLastLiterals(to, limit, anchor, end);
  return to == 0 ? 0 : to - target;
}

/** Number of bytes that are the same from two places on, up to a limit for the later one. */
// @ts-ignore: decorator
@inline
function countSame(position: usize, match: usize, limit: usize): usize {
  const begin = position;
  while (position + 8 <= limit) {
    const difference = load<u64>(position) ^ load<u64>(match);
    if (difference != 0) return position - begin + <usize>(ctz(difference) >> 3);
    position += 8;
    match += 8;
  }
  while (position < limit && load<u8>(position) == load<u8>(match)) {
    position++;
    match++;
  }
  return position - begin;
}

/** Writes the rest of a length that does not fit into the four bits of its token. */
// @ts-ignore: decorator
@inline
function putLength(to: usize, length: usize): usize {
  while (length >= 255) {
    store<u8>(to++, 255);
    length -= 255;
  }
  store<u8>(to, <u8>length);
  return to + 1;
}

/**
 * Writes the last sequence of a block, which has literals only.
 * @returns The place behind it; 0 if it does not fit.
 */
// @ts-ignore: decorator
@inline
function putLastLiterals(to: usize, limit: usize, anchor: usize, end: usize): usize {
  const rest = end - anchor;
  if (to + rest + 1 + (rest + 240) / 255 > limit) return 0;
  if (rest >= 15) {
    store<u8>(to++, 15 << 4);
    to = putLength(to, rest - 15);
  } else store<u8>(to++, <u8>(rest << 4));
  memory.copy(to, anchor, rest);
  return to + rest;
}

/**
 * Encodes one LZ4 block. As in the reference implementation, a table holds one position per hash, so that sizes are the same.
 * @param capacity Bytes at the target; up to 16 more may be written.
 * @param acceleration 1 or more: how fast to skip bytes without a match.
 * @param table Memory of TABLE_BYTES.
 * @returns Encoded bytes; 0 if they exceed the capacity.
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
