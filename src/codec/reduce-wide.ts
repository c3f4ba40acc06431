import type { BlockRow } from "./block-rows.js";
import type { RowWriter } from "./item-rows.js";
import { mostFrequent } from "./reduce-rows.js";

/**
 * Reduces rows of 64-bit integers that doubles do not hold: slow, and exact.
 * @param rows The rows as doubles, in which NaN is missing.
 * @param isReversed As in `createRowReducer`.
 */
export function reduceWide(
  items: BigInt64Array | BigUint64Array,
  rows: readonly Float64Array[],
  { starts, length, distance, outStart }: BlockRow,
  method: "mean" | "max" | "mode",
  isReversed: boolean,
  writer: RowWriter,
): void {
  const group = Math.max(1, 2 * distance);
  let out = outStart;
  for (let begin = 0; begin < length; begin += group)
    for (let w = 0; w < Math.max(1, distance) && begin + w < length; w++, out++) {
      const cells: bigint[] = [];
      for (const [r, start] of starts.entries())
        for (const at of distance === 0 ? [begin] : [begin + w, begin + w + distance])
          if (at < length && !Number.isNaN(rows[r]![at]!)) cells.push(items[start + at]!);
      writer.writeWide(out, cells.length === 0 ? undefined : reduceCells(cells, method, isReversed));
    }
}

function reduceCells(cells: bigint[], method: "mean" | "max" | "mode", isReversed: boolean): bigint {
  if (method === "mean") return meanOf(cells);
  const sign = isReversed ? -1 : 1;
  cells.sort((a, b) => (a < b ? -sign : a > b ? sign : 0));
  return method === "mode" ? mostFrequent(cells) : cells.at(-1)!;
}

/** Returns the mean, rounded half to even. */
function meanOf(cells: readonly bigint[]): bigint {
  const count = BigInt(cells.length);
  const sum = cells.reduce((a, b) => a + b, 0n);
  const rest = ((sum % count) + count) % count;
  const below = (sum - rest) / count;
  const twice = 2n * rest;
  return twice < count || (twice === count && below % 2n === 0n) ? below : below + 1n;
}
