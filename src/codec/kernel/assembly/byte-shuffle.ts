import {
  high8,
  high16,
  LANES,
  low8,
  low16,
  storeItems8,
  storePlanes,
  transpose4,
} from "./interleave";

/**
 * Byte shuffle: byte `b` of item `i` goes to position `b * count + i`, so that bytes of equal weight lie together. Bytes
 * behind the last whole item stay. Source and target must not overlap.
 */
export function shuffleBytes(source: usize, target: usize, length: usize, itemSize: usize): void {
  const count = length / itemSize;
  const byVector = count & ~(LANES - 1);
  if (itemSize == 2) shuffle2(source, target, count);
  else if (itemSize == 4) shuffle4(source, target, count);
  else if (itemSize == 8) shuffle8(source, target, count);
  else if (itemSize > 4) shuffleGroups(source, target, count, itemSize);

  const vectorBytes = bytesByVector(itemSize);
  for (let byte: usize = 0; byte < itemSize; byte++) {
    const first = byte < vectorBytes ? byVector : 0;
    let to = target + byte * count + first;
    const end = source + count * itemSize;
    for (let from = source + first * itemSize + byte; from < end; from += itemSize) {
      store<u8>(to++, load<u8>(from));
    }
  }
  memory.copy(target + count * itemSize, source + count * itemSize, length - count * itemSize);
}

/** The opposite of {@link shuffleBytes}. */
export function unshuffleBytes(source: usize, target: usize, length: usize, itemSize: usize): void {
  const count = length / itemSize;
  const byVector = count & ~(LANES - 1);
  if (itemSize == 2) unshuffle2(source, target, count);
  else if (itemSize == 4) unshuffle4(source, target, count);
  else if (itemSize == 8) unshuffle8(source, target, count);
  else if (itemSize > 4) unshuffleGroups(source, target, count, itemSize);

  const vectorBytes = bytesByVector(itemSize);
  for (let byte: usize = 0; byte < itemSize; byte++) {
    const first = byte < vectorBytes ? byVector : 0;
    let from = source + byte * count + first;
    const end = target + count * itemSize;
    for (let to = target + first * itemSize + byte; to < end; to += itemSize) {
      store<u8>(to, load<u8>(from++));
    }
  }
  memory.copy(target + count * itemSize, source + count * itemSize, length - count * itemSize);
}

/** Turns round the bytes of words of 2, 4 or 8 bytes in place. Those behind the last whole vector stay. */
export function swapWords(place: usize, length: usize, wordSize: usize): void {
  const order =
    wordSize == 2
      ? i8x16(1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14)
      : wordSize == 4
        ? i8x16(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12)
        : i8x16(7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8);
  const end = place + (length & ~(LANES - 1));
  for (let at = place; at < end; at += LANES) v128.store(at, v128.swizzle(v128.load(at), order));
}

/** Number of bytes of an item, from its first, that the vector loops move. */
function bytesByVector(itemSize: usize): usize {
  return itemSize == 2 ? 2 : itemSize & ~3;
}

function shuffle2(source: usize, target: usize, count: usize): void {
  const high = target + count;
  for (let i: usize = 0; i + LANES <= count; i += LANES) {
    const a = v128.load(source + 2 * i);
    const b = v128.load(source + 2 * i, 16);
    v128.store(target + i, v128.shuffle<u8>(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30));
    v128.store(high + i, v128.shuffle<u8>(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31));
  }
}

function unshuffle2(source: usize, target: usize, count: usize): void {
  const high = source + count;
  for (let i: usize = 0; i + LANES <= count; i += LANES) {
    const a = v128.load(source + i);
    const b = v128.load(high + i);
    v128.store(target + 2 * i, low8(a, b));
    v128.store(target + 2 * i, high8(a, b), 16);
  }
}

function shuffle4(source: usize, target: usize, count: usize): void {
  for (let i: usize = 0; i + LANES <= count; i += LANES) {
    const from = source + 4 * i;
    const a = transpose4(v128.load(from));
    const b = transpose4(v128.load(from, 16));
    const c = transpose4(v128.load(from, 32));
    const d = transpose4(v128.load(from, 48));
    storePlanes(target + i, count, a, b, c, d);
  }
}

function unshuffle4(source: usize, target: usize, count: usize): void {
  const plane1 = source + count;
  const plane2 = plane1 + count;
  const plane3 = plane2 + count;
  for (let i: usize = 0; i + LANES <= count; i += LANES) {
    const a = v128.load(source + i);
    const b = v128.load(plane1 + i);
    const c = v128.load(plane2 + i);
    const d = v128.load(plane3 + i);
    const abLow = low8(a, b);
    const abHigh = high8(a, b);
    const cdLow = low8(c, d);
    const cdHigh = high8(c, d);
    const to = target + 4 * i;
    v128.store(to, low16(abLow, cdLow));
    v128.store(to, high16(abLow, cdLow), 16);
    v128.store(to, low16(abHigh, cdHigh), 32);
    v128.store(to, high16(abHigh, cdHigh), 48);
  }
}

function shuffle8(source: usize, target: usize, count: usize): void {
  for (let i: usize = 0; i + LANES <= count; i += LANES) {
    const from = source + 8 * i;
    const a = transpose8(v128.load(from));
    const b = transpose8(v128.load(from, 16));
    const c = transpose8(v128.load(from, 32));
    const d = transpose8(v128.load(from, 48));
    const e = transpose8(v128.load(from, 64));
    const f = transpose8(v128.load(from, 80));
    const g = transpose8(v128.load(from, 96));
    const h = transpose8(v128.load(from, 112));
    const to = target + i;
    storePlanes(to, count, low16(a, b), low16(c, d), low16(e, f), low16(g, h));
    storePlanes(to + 4 * count, count, high16(a, b), high16(c, d), high16(e, f), high16(g, h));
  }
}

function unshuffle8(source: usize, target: usize, count: usize): void {
  for (let i: usize = 0; i + LANES <= count; i += LANES) {
    let plane = source + i;
    const a = v128.load(plane);
    const b = v128.load((plane += count));
    const c = v128.load((plane += count));
    const d = v128.load((plane += count));
    const e = v128.load((plane += count));
    const f = v128.load((plane += count));
    const g = v128.load((plane += count));
    const h = v128.load((plane += count));
    storeItems8(target + 8 * i, a, b, c, d, e, f, g, h);
  }
}

/** Two items of eight bytes: every lane becomes one byte of both. */
// @ts-ignore: decorator
@inline
function transpose8(items: v128): v128 {
  return i8x16.swizzle(items, i8x16(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15));
}

/** Byte shuffle of items of any size above 4, four bytes of sixteen items at a time. The last bytes are left out. */
function shuffleGroups(source: usize, target: usize, count: usize, itemSize: usize): void {
  for (let byte: usize = 0; byte + 4 <= itemSize; byte += 4) {
    for (let i: usize = 0; i + LANES <= count; i += LANES) {
      let from = source + i * itemSize + byte;
      const a = transpose4(gather4(from, itemSize));
      from += 4 * itemSize;
      const b = transpose4(gather4(from, itemSize));
      from += 4 * itemSize;
      const c = transpose4(gather4(from, itemSize));
      from += 4 * itemSize;
      const d = transpose4(gather4(from, itemSize));
      storePlanes(target + byte * count + i, count, a, b, c, d);
    }
  }
}

/** The opposite of {@link shuffleGroups}. */
function unshuffleGroups(source: usize, target: usize, count: usize, itemSize: usize): void {
  for (let byte: usize = 0; byte + 4 <= itemSize; byte += 4) {
    for (let i: usize = 0; i + LANES <= count; i += LANES) {
      let plane = source + byte * count + i;
      const a = v128.load(plane);
      const b = v128.load((plane += count));
      const c = v128.load((plane += count));
      const d = v128.load((plane += count));
      const abLow = low8(a, b);
      const abHigh = high8(a, b);
      const cdLow = low8(c, d);
      const cdHigh = high8(c, d);
      let to = target + i * itemSize + byte;
      to = scatter4(to, itemSize, low16(abLow, cdLow));
      to = scatter4(to, itemSize, high16(abLow, cdLow));
      to = scatter4(to, itemSize, low16(abHigh, cdHigh));
      scatter4(to, itemSize, high16(abHigh, cdHigh));
    }
  }
}

/** Loads four bytes of each of four items. */
// @ts-ignore: decorator
@inline
function gather4(from: usize, itemSize: usize): v128 {
  let lanes = v128.load_zero<u32>(from);
  lanes = v128.load_lane<u32>((from += itemSize), lanes, 1);
  lanes = v128.load_lane<u32>((from += itemSize), lanes, 2);
  return v128.load_lane<u32>(from + itemSize, lanes, 3);
}

/** Stores four bytes of each of four items. @returns The place of the fifth item. */
// @ts-ignore: decorator
@inline
function scatter4(to: usize, itemSize: usize, lanes: v128): usize {
  v128.store_lane<u32>(to, lanes, 0);
  v128.store_lane<u32>((to += itemSize), lanes, 1);
  v128.store_lane<u32>((to += itemSize), lanes, 2);
  v128.store_lane<u32>((to += itemSize), lanes, 3);
  return to + itemSize;
}
