import { copyApart } from "./copy";
import { LAST_LITERALS, MATCH_FIND_LIMIT, MIN_MATCH, putLastLiterals, putLength } from "./lz4-sequences";
import { beginSearch, findFirst, findLonger, foundMatch, foundStart } from "./lz4hc-search";

/** A token has no room for a longer match: 14 and the four of every match. */
const MAX_TOKEN_MATCH: usize = 18;

/** @returns Where the next sequence begins; 0: this one does not fit. */
// @ts-ignore: decorator
@inline
function putSequence(
  to: usize,
  limit: usize,
  anchor: usize,
  position: usize,
  length: usize,
  match: usize,
): usize {
  const literals = position - anchor;
  const extra = length - MIN_MATCH;
  const token = to++;
  if (to + literals + (2 + 1 + LAST_LITERALS) + literals / 255 > limit) return 0;
  if (literals >= 15) to = putLength(to, literals - 15);
  copyApart(anchor, to, literals);
  to += literals;
  store<u16>(to, <u16>(position - match));
  to += 2;
  if (to + (1 + LAST_LITERALS) + extra / 255 > limit) return 0;
  if (extra >= 15) to = putLength(to, extra - 15);
  store<u8>(token, <u8>((min<usize>(literals, 15) << 4) | min<usize>(extra, 15)));
  return to;
}

/**
 * Encodes one LZ4 block thoroughly: matches are looked for along chains of places with the same hash, and taken only
 * where the next two that overlap them are no better. Search and choice are those of the reference implementation's
 * levels 1 to 9, so that sizes are the same.
 * @param capacity Bytes at the target; up to 16 more may be written.
 * @param level 1 to 9; the last does 256 attempts for a match.
 * @param tables Memory of LZ4HC_TABLE_BYTES, below the source.
 * @returns Encoded bytes; 0: they would be more than the capacity.
 */
export function encodeLz4hc(
  source: usize,
  length: usize,
  target: usize,
  capacity: usize,
  level: u32,
  tables: usize,
): usize {
  const end = source + length;
  const limit = target + capacity;
  let to = target;
  let anchor = source;

  if (length > MATCH_FIND_LIMIT) {
    beginSearch(source, end - LAST_LITERALS, level < 3 ? 2 : 1 << (level - 1), tables);
    const lastStart = end - MATCH_FIND_LIMIT;

    let start1 = source;
    while (start1 <= lastStart) {
      let length1 = findFirst(start1);
      if (length1 < MIN_MATCH) {
        start1++;
        continue;
      }
      let match1 = foundMatch;
      // The first match as it was, in case what takes its place leaves room for it.
      let start0 = start1;
      let match0 = match1;
      let length0 = length1;
      let start2: usize = 0;
      let match2: usize = 0;
      let length2: usize = 0;
      let hasSecond = false;

      while (true) {
        if (!hasSecond) {
          length2 = start1 + length1 <= lastStart ? findLonger(start1 + length1 - 2, start1, length1) : length1;
          if (length2 == length1) {
            to = putSequence(to, limit, anchor, start1, length1, match1);
            if (to == 0) return 0;
            start1 = anchor = start1 + length1;
            break;
          }
          start2 = foundStart;
          match2 = foundMatch;
          if (start0 < start1 && start2 < start1 + length0) {
            start1 = start0;
            match1 = match0;
            length1 = length0;
          }
          if (start2 - start1 < 3) {
            // Too little is left of the first.
            start1 = start2;
            match1 = match2;
            length1 = length2;
            continue;
          }
          hasSecond = true;
        }

        // The first goes on into the second as far as its length is for nothing.
        if (start2 - start1 < MAX_TOKEN_MATCH) {
          const kept = min(min(length1, MAX_TOKEN_MATCH), start2 - start1 + length2 - MIN_MATCH);
          if (start1 + kept > start2) {
            const less = start1 + kept - start2;
            start2 += less;
            match2 += less;
            length2 -= less;
          }
        }

        const length3 =
          start2 + length2 <= lastStart ? findLonger(start2 + length2 - 3, start2, length2) : length2;
        if (length3 == length2) {
          to = putSequence(to, limit, anchor, start1, min(length1, start2 - start1), match1);
          if (to == 0) return 0;
          anchor = start1 + min(length1, start2 - start1);
          to = putSequence(to, limit, anchor, start2, length2, match2);
          if (to == 0) return 0;
          start1 = anchor = start2 + length2;
          break;
        }
        const start3 = foundStart;
        const match3 = foundMatch;

        if (start3 < start1 + length1 + 3) {
          if (start3 >= start1 + length1) {
            // Nothing is left between the first and the third.
            if (start2 < start1 + length1) {
              const less = start1 + length1 - start2;
              start2 += less;
              match2 += less;
              length2 -= less;
              if (<isize>length2 < <isize>MIN_MATCH) {
                start2 = start3;
                match2 = match3;
                length2 = length3;
              }
            }
            to = putSequence(to, limit, anchor, start1, length1, match1);
            if (to == 0) return 0;
            anchor = start1 + length1;
            start0 = start2;
            match0 = match2;
            length0 = length2;
            start1 = start3;
            match1 = match3;
            length1 = length3;
            hasSecond = false;
            continue;
          }
          start2 = start3;
          match2 = match3;
          length2 = length3;
          continue;
        }

        if (start2 < start1 + length1) {
          if (start2 - start1 < MAX_TOKEN_MATCH) {
            length1 = min(min(length1, MAX_TOKEN_MATCH), start2 - start1 + length2 - MIN_MATCH);
            if (start1 + length1 > start2) {
              const less = start1 + length1 - start2;
              start2 += less;
              match2 += less;
              length2 -= less;
            }
          } else length1 = start2 - start1;
        }
        to = putSequence(to, limit, anchor, start1, length1, match1);
        if (to == 0) return 0;
        anchor = start1 + length1;
        start1 = start2;
        match1 = match2;
        length1 = length2;
        start2 = start3;
        match2 = match3;
        length2 = length3;
      }
    }
  }

  to = putLastLiterals(to, limit, anchor, end);
  return to == 0 ? 0 : to - target;
}
