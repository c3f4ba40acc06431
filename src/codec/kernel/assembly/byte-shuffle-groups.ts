import { shuffle16, unshuffle16 } from "./byte-shuffle-16";
import { high8, high16, LANES, low8, low16, storePlanes, transpose4 } from "./interleave";

/** Byte shuffle of items of any size above 4: sixteen bytes of them at a time, then four. The last bytes are left out. */
export function shuffleGroups(source: usize, target: usize, count: usize, itemSize: usize): void {
  let byte: usize = 0;
  for (; byte + 16 <= itemSize; byte += 16) {
    shuffle16(source + byte, target + byte * count, count, itemSize);
  }
  for (; byte + 4 <= itemSize; byte += 4) {
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
export function unshuffleGroups(source: usize, target: usize, count: usize, itemSize: usize): void {
  let byte: usize = 0;
  for (; byte + 16 <= itemSize; byte += 16) {
    unshuffle16(source + byte * count, target + byte, count, itemSize);
  }
  for (; byte + 4 <= itemSize; byte += 4) {
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
