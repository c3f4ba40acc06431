import type { CoarsenMethod } from "../zarr/plan/encoding-plan.js";

/**
 * Reduces rows of doubles, in which NaN is missing. A block is one place of each row, or two that are `distance` places apart; one
 * without any value becomes NaN.
 * @param length Places of each row that are used. Of the last block there may be one place only.
 * @param distance 0 for blocks of one place.
 * @param out Takes the results.
 * @returns Number of results.
 */
export type ReduceRows = (
  rows: readonly Float64Array[],
  length: number,
  distance: number,
  out: Float64Array,
) => number;

/**
 * Reduces blocks of four: places of rows `a` and `c`, and of rows `b` and `d` that are `second` places further on.
 * @param run Blocks that lie side by side; after each run there are `second` places of the same blocks.
 */
type ReduceFours = (
  rows: readonly [a: Float64Array, b: Float64Array, c: Float64Array, d: Float64Array],
  second: number,
  run: number,
  count: number,
  out: Float64Array,
) => void;
/** Reduces the values of a block, of which there is at least one. */
type ReduceCells = (cells: Float64Array, count: number) => number;

/** One method: of the blocks that nearly all are, and of any. */
interface Reduction {
  readonly reduceFours: ReduceFours;
  readonly reduceCells: ReduceCells;
}

/** Places of a block at most: of ten halved axes. */
const MAX_CELLS = 1_024;

/**
 * Creates a reducer.
 * @param isReversed Whether values are the greater the less the items are, since their scale factor is negative.
 */
export function createRowReducer(method: Exclude<CoarsenMethod, "nearest">, isReversed: boolean): ReduceRows {
  const { reduceFours, reduceCells } = reductionOf(method, isReversed);
  const cells = new Float64Array(MAX_CELLS);

  function reduceBlock(rows: readonly Float64Array[], first: number, second: number): number {
    let count = 0;
    for (const row of rows) {
      const a = row[first]!;
      if (!Number.isNaN(a)) cells[count++] = a;
      const b = second < 0 ? Number.NaN : row[second]!;
      if (!Number.isNaN(b)) cells[count++] = b;
    }
    return count === 0 ? Number.NaN : reduceCells(cells, count);
  }

  return (rows, length, distance, out) => {
    const paired = distance === 0 ? 0 : Math.floor(length / (2 * distance)) * distance;
    const count = length - paired;
    const [a, b, c, d] = rows as [Float64Array, ...Float64Array[]];
    let done = 0;
    if (rows.length === 2 && b !== undefined && distance > 0) {
      reduceFours([a, a, b, b], distance, distance, paired, out);
      done = paired;
    } else if (rows.length === 4 && b !== undefined && c !== undefined && d !== undefined && distance === 0) {
      reduceFours([a, b, c, d], 0, count, count, out);
      done = count;
    }
    for (let at = done; at < count; at++) {
      const first = at < paired ? at + Math.floor(at / distance) * distance : at + paired;
      out[at] = reduceBlock(rows, first, at < paired ? first + distance : -1);
    }
    return count;
  };
}

function reductionOf(method: Exclude<CoarsenMethod, "nearest">, isReversed: boolean): Reduction {
  if (method === "mean") return MEAN;
  if (method === "mode") return isReversed ? MODE_GREATEST : MODE_LEAST;
  return isReversed ? LEAST : GREATEST;
}

// The loops below are written out for each method: a function that is called for each block would cost more than they do.

const MEAN: Reduction = {
  reduceFours([rowA, rowB, rowC, rowD], second, run, count, out) {
    for (let at = 0, from = 0; at < count; from += second)
      for (let end = at + run; at < end; at++, from++) {
        const a = rowA[from]!;
        const b = rowB[from + second]!;
        const c = rowC[from]!;
        const d = rowD[from + second]!;
        const mean = (a + b + c + d) * 0.25;
        out[at] = Number.isNaN(mean) ? meanOfSome(a, b, c, d) : mean;
      }
  },
  reduceCells(cells, count) {
    let sum = 0;
    for (let i = 0; i < count; i++) sum += cells[i]!;
    return sum / count;
  },
};

/** Returns the mean of those of four that are there. */
function meanOfSome(a: number, b: number, c: number, d: number): number {
  let sum = 0;
  let count = 0;
  if (!Number.isNaN(a)) {
    sum += a;
    count++;
  }
  if (!Number.isNaN(b)) {
    sum += b;
    count++;
  }
  if (!Number.isNaN(c)) {
    sum += c;
    count++;
  }
  if (!Number.isNaN(d)) {
    sum += d;
    count++;
  }
  return sum / count;
}

/** Returns the greater of two, or the one that is there. */
function greater(a: number, b: number): number {
  return a >= b || Number.isNaN(b) ? a : b;
}

/** Returns the lesser of two, or the one that is there. */
function lesser(a: number, b: number): number {
  return a <= b || Number.isNaN(b) ? a : b;
}

const GREATEST: Reduction = {
  reduceFours([rowA, rowB, rowC, rowD], second, run, count, out) {
    for (let at = 0, from = 0; at < count; from += second)
      for (let end = at + run; at < end; at++, from++)
        out[at] = greater(
          greater(rowA[from]!, rowB[from + second]!),
          greater(rowC[from]!, rowD[from + second]!),
        );
  },
  reduceCells: (cells, count) => cells.subarray(0, count).reduce(greater),
};

const LEAST: Reduction = {
  reduceFours([rowA, rowB, rowC, rowD], second, run, count, out) {
    for (let at = 0, from = 0; at < count; from += second)
      for (let end = at + run; at < end; at++, from++)
        out[at] = lesser(
          lesser(rowA[from]!, rowB[from + second]!),
          lesser(rowC[from]!, rowD[from + second]!),
        );
  },
  reduceCells: (cells, count) => cells.subarray(0, count).reduce(lesser),
};

const MODE_LEAST: Reduction = {
  reduceFours: (rows, second, run, count, out) => modesOfFours(rows, second, run, count, out, lesser),
  reduceCells: (cells, count) => mostFrequent(cells.subarray(0, count).sort()),
};

const MODE_GREATEST: Reduction = {
  reduceFours: (rows, second, run, count, out) => modesOfFours(rows, second, run, count, out, greater),
  reduceCells: (cells, count) => mostFrequent(cells.subarray(0, count).sort().reverse()),
};

/** @param chosen Chooses among values that are equally frequent. */
function modesOfFours(
  [rowA, rowB, rowC, rowD]: Parameters<ReduceFours>[0],
  second: number,
  run: number,
  count: number,
  out: Float64Array,
  chosen: (a: number, b: number) => number,
): void {
  for (let at = 0, from = 0; at < count; from += second)
    for (let end = at + run; at < end; at++, from++) {
      const a = rowA[from]!;
      const b = rowB[from + second]!;
      const c = rowC[from]!;
      const d = rowD[from + second]!;
      if (a === b && a === c && a === d) {
        out[at] = a;
        continue;
      }
      const isPair = a === b || a === c || a === d;
      const isOther = b === c || b === d || c === d;
      const other = b === c || b === d ? b : c;
      if (!isOther) out[at] = isPair ? a : chosen(chosen(a, b), chosen(c, d));
      // Of three equal values one is in both pairs.
      else out[at] = isPair && a !== other ? chosen(a, other) : other;
    }
}

/** Returns the value that occurs most often, the first of several. @param values Equal ones lie together; not empty. */
export function mostFrequent<T extends number | bigint>(values: ArrayLike<T>): T {
  let best = values[0]!;
  let longest = 0;
  for (let begin = 0, end = 0; begin < values.length; begin = end) {
    while (end < values.length && values[end] === values[begin]) end++;
    if (end - begin <= longest) continue;
    longest = end - begin;
    best = values[begin]!;
  }
  return best;
}
