import { countSame, MIN_MATCH } from "./lz4-sequences";

const MAX_DISTANCE: usize = 65535;
/** From so many attempts on, runs of one byte are stepped over, which would use up all of them. */
const MIN_RUN_ATTEMPTS: u32 = 256;

const HASH_BITS: u32 = 15;
/** The last place of each hash, 32 bits. */
const HASH_TABLE_BYTES: usize = 4 << HASH_BITS;
/** Of each of the last 65,536 places, how far before it its predecessor in the chain is, 16 bits. */
const CHAIN_BYTES: usize = 2 << 16;
/** Hash table and chains. */
export const LZ4HC_TABLE_BYTES: usize = HASH_TABLE_BYTES + CHAIN_BYTES;

/** Of the block that is searched. */
let hashTable: usize = 0;
let sourceBegin: usize = 0;
/** No match reaches beyond. */
let matchLimit: usize = 0;
let maxAttempts: u32 = 0;
/** Where the places begin that are in no chain yet. */
let nextInsert: usize = 0;

/** Where the match begins that the last search found, where it found one. */
export let foundStart: usize = 0;
/** What it is a match of. */
export let foundMatch: usize = 0;

/**
 * Begins to search a block.
 * @param limit No match reaches beyond.
 * @param attempts Places to look at for a match, at most.
 * @param tables Memory of LZ4HC_TABLE_BYTES.
 */
export function beginSearch(source: usize, limit: usize, attempts: u32, tables: usize): void {
  hashTable = tables;
  memory.fill(tables, 0, HASH_TABLE_BYTES);
  sourceBegin = source;
  nextInsert = source;
  matchLimit = limit;
  maxAttempts = attempts;
}

// @ts-ignore: decorator
@inline
function hashSlot(table: usize, bytes: u32): usize {
  return table + (<usize>((bytes * 2654435761) >> (32 - HASH_BITS)) << 2);
}

// @ts-ignore: decorator
@inline
function chainSlot(table: usize, place: usize): usize {
  return table + HASH_TABLE_BYTES + ((place & 0xffff) << 1);
}

/** Puts all places before this one into the chains. */
// @ts-ignore: decorator
@inline
function insertBefore(position: usize, table: usize): void {
  let place = nextInsert;
  while (place < position) {
    const slot = hashSlot(table, load<u32>(place));
    // An empty slot is zero, which is too far from anywhere: it ends a chain, too.
    store<u16>(chainSlot(table, place), <u16>min(place - <usize>load<u32>(slot), MAX_DISTANCE));
    store<u32>(slot, <u32>place);
    place++;
  }
  nextInsert = place;
}

/** How many bytes from a place on are the same, up to the end of all matches. */
function countRun(place: usize, byte: v128): usize {
  const begin = place;
  for (; place + 16 <= matchLimit; place += 16) {
    const same = i8x16.bitmask(i8x16.eq(v128.load(place), byte));
    if (same != 0xffff) return place - begin + <usize>ctz(~same);
  }
  while (place < matchLimit && load<u8>(place) == <u8>i8x16.extract_lane_u(byte, 0)) place++;
  return place - begin;
}

/** How many bytes before a place are the same, down to `lowest`. */
function countRunBefore(place: usize, lowest: usize, byte: v128): usize {
  const end = place;
  for (; place >= lowest + 16; place -= 16) {
    const same = i8x16.bitmask(i8x16.eq(v128.load(place - 16), byte));
    if (same != 0xffff) return end - place + <usize>(clz(~(same << 16)));
  }
  while (place > lowest && load<u8>(place - 1) == <u8>i8x16.extract_lane_u(byte, 0)) place--;
  return end - place;
}

// @ts-ignore: decorator
@inline
function search(position: usize, low: usize, longest: usize): usize {
  const table = hashTable;
  const begin = sourceBegin;
  const limit = matchLimit;
  insertBefore(position, table);
  const bytes = load<u32>(position);
  const lookBack = position - low;
  const lowest = position - begin > MAX_DISTANCE ? position - MAX_DISTANCE : begin;
  let match = <usize>load<u32>(hashSlot(table, bytes));
  let run: usize = 0;
  let attempts = maxAttempts;
  const mayRun = attempts >= MIN_RUN_ATTEMPTS && bytes == rotl<u32>(bytes, 8);

  // A longer match has four bytes here, too: at the end that it has to have, or from the place on.
  let tail: usize = max(longest, lookBack + 3) - lookBack - 3;
  let tailBytes = load<u32>(position + tail);

  for (; attempts > 0 && match >= lowest; attempts--) {
    if (load<u32>(match + tail) == tailBytes && load<u32>(match) == bytes) {
      const after = countSame(position + MIN_MATCH, match + MIN_MATCH, limit) + MIN_MATCH;
      let before: usize = 0;
      const maxBefore = min(lookBack, match - begin);
      while (before < maxBefore && load<u8>(position - before - 1) == load<u8>(match - before - 1)) before++;
      if (after + before > longest) {
        longest = after + before;
        foundStart = position - before;
        foundMatch = match - before;
        if (before == lookBack && position + after == limit) break;
        tail = max(longest, lookBack + 3) - lookBack - 3;
        tailBytes = load<u32>(position + tail);
      }
    }
    const delta = <usize>load<u16>(chainSlot(table, match));
    if (mayRun && delta == 1 && match > lowest && load<u32>(match - 1) == bytes) {
      // Inside a run of the same byte every place is in the chain.
      const byte = i32x4.splat(bytes);
      if (run == 0) run = countRun(position + MIN_MATCH, byte) + MIN_MATCH;
      match--;
      const after = countRun(match + MIN_MATCH, byte) + MIN_MATCH;
      const before = countRunBefore(match, lowest, byte);
      if (after <= run && after + before >= run) {
        // Both runs end together: what follows may match, too.
        match -= run - after;
        continue;
      }
      match -= before;
      if (lookBack == 0) {
        const length = min(after + before, run);
        if (length > longest) {
          longest = length;
          foundStart = position;
          foundMatch = match;
          tail = longest - 3;
          tailBytes = load<u32>(position + tail);
        }
        match -= <usize>load<u16>(chainSlot(table, match));
      }
    } else match -= delta;
  }
  return longest;
}

/**
 * Looks along the chain of a place for a match that is longer than one there is. It may begin before the place.
 * @param low No match begins before this.
 * @param longest Length that a match has to exceed.
 * @returns Its length; `longest` where there is none.
 */
export function findLonger(position: usize, low: usize, longest: usize): usize {
  return search(position, low, longest);
}

/** Looks along the chain of a place for the longest match from there on. @returns Its length; below four: there is none. */
export function findFirst(position: usize): usize {
  return search(position, position, MIN_MATCH - 1);
}
