/** The shortest match, which a token counts as zero. */
export const MIN_MATCH: usize = 4;
/** The last bytes of a block are literals (LZ4 block format description, "End of block conditions"). */
export const LAST_LITERALS: usize = 5;
/** No match begins in the last so many bytes. */
export const MATCH_FIND_LIMIT: usize = 12;

/** How many bytes are the same from two places on, up to a limit for the later one. */
// @ts-ignore: decorator
@inline
export function countSame(position: usize, match: usize, limit: usize): usize {
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

/** The rest of a length that does not fit into its four bits of the token. */
// @ts-ignore: decorator
@inline
export function putLength(to: usize, length: usize): usize {
  while (length >= 255) {
    store<u8>(to++, 255);
    length -= 255;
  }
  store<u8>(to, <u8>length);
  return to + 1;
}

/**
 * The last sequence of a block, of literals only.
 * @returns Behind it; 0: it does not fit.
 */
// @ts-ignore: decorator
@inline
export function putLastLiterals(to: usize, limit: usize, anchor: usize, end: usize): usize {
  const rest = end - anchor;
  if (to + rest + 1 + (rest + 240) / 255 > limit) return 0;
  if (rest >= 15) {
    store<u8>(to++, 15 << 4);
    to = putLength(to, rest - 15);
  } else store<u8>(to++, <u8>(rest << 4));
  memory.copy(to, anchor, rest);
  return to + rest;
}
