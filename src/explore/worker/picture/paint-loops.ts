import type { Numbers } from "../array-reader.js";
import {
  ABOVE,
  BELOW,
  type ByteScale,
  FIRST,
  MISSING,
  missingTest,
  SLACK,
  STEPS,
  unpacked,
} from "./byte-scale.js";
import type { ChunkRun } from "./picture-tables.js";

/**
 * Loops over the pixels of one row, which take most of the time of a picture: they call nothing, and read each field once.
 */

/**
 * Writes the bytes of one row of a chunk.
 * @param begin First pixel of the row.
 * @param from Offset of the row's cells in the chunk.
 * @returns Cells that are missing.
 */
export function paintRow(
  pixels: Uint8Array,
  begin: number,
  numbers: Numbers,
  from: number,
  run: ChunkRun,
  scale: ByteScale,
): number {
  const { pixels: xs, offsets, isFirst } = run;
  const count = xs.length;
  const table = scale.tableOf(numbers);
  let missing = 0;
  if (table !== undefined) {
    const mask = table.length - 1;
    for (let index = 0; index < count; index++) {
      const byte = table[numbers[from + offsets[index]!]! & mask]!;
      if (byte === MISSING) missing += isFirst[index]!;
      pixels[begin + xs[index]!] = byte;
    }
    return missing;
  }
  if (!scale.isLinear) {
    for (let index = 0; index < count; index++) {
      const byte = scale.storedByte(numbers[from + offsets[index]!]!);
      if (byte === MISSING) missing += isFirst[index]!;
      pixels[begin + xs[index]!] = byte;
    }
    return missing;
  }
  const { first, second, least, greatest } = missingTest(scale.packing)!;
  const { scale: factor, offset } = scale.packing;
  const low = scale.begin;
  const width = scale.width;
  for (let index = 0; index < count; index++) {
    const stored = numbers[from + offsets[index]!]!;
    let byte = MISSING;
    if (stored >= least && stored <= greatest && stored !== first && stored !== second) {
      const place = ((stored * factor + offset - low) / width) * STEPS;
      // Adding a half and cutting off is rounding, since the place is not negative there.
      byte = place < -SLACK ? BELOW : place > STEPS + SLACK ? ABOVE : (place + (FIRST + 0.5)) | 0;
    } else missing += isFirst[index]!;
    pixels[begin + xs[index]!] = byte;
  }
  return missing;
}

/**
 * Adds the stored numbers of one row of a chunk to sums and counts by pixel.
 * @returns Cells that are missing.
 */
export function addRow(
  sums: Float64Array,
  counts: Uint32Array,
  begin: number,
  numbers: Numbers,
  from: number,
  run: ChunkRun,
  scale: ByteScale,
): number {
  const { pixels: xs, offsets, isFirst } = run;
  const test = missingTest(scale.packing);
  const { first, second, least, greatest } = test ?? { first: 0, second: 0, least: 0, greatest: 0 };
  let missing = 0;
  let pixel = -1;
  let sum = 0;
  let count = 0;
  for (let index = 0; index < xs.length; index++) {
    const x = xs[index]!;
    if (x !== pixel) {
      if (count > 0) {
        sums[begin + pixel] = sums[begin + pixel]! + sum;
        counts[begin + pixel] = counts[begin + pixel]! + count;
      }
      pixel = x;
      sum = 0;
      count = 0;
    }
    const stored = numbers[from + offsets[index]!]!;
    const isValue =
      test === undefined
        ? !Number.isNaN(unpacked(stored, scale.packing))
        : stored >= least && stored <= greatest && stored !== first && stored !== second;
    if (isValue) {
      sum += stored;
      count++;
    } else missing += isFirst[index]!;
  }
  if (count > 0) {
    sums[begin + pixel] = sums[begin + pixel]! + sum;
    counts[begin + pixel] = counts[begin + pixel]! + count;
  }
  return missing;
}
