import type { CoarsenMethod } from "../zarr/plan/compute-step.js";

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

/** Joins two rows, place by place; NaN where the places do not decide, as where one is missing. */
type JoinRows = (a: Float64Array, b: Float64Array, length: number, out: Float64Array) => void;
/** Joins the two halves of each pair of a row. */
type JoinPairs = (row: Float64Array, pairs: number, distance: number, out: Float64Array) => void;
/** Reduces the values of a block, of which there is at least one. */
type ReduceCells = (cells: Float64Array, count: number) => number;

interface Reduction {
  readonly joinRows: JoinRows;
  readonly joinPairs: JoinPairs;
  readonly reduceCells: ReduceCells;
}

/** Places of a block at most: of ten halved axes. */
const MAX_CELLS = 1_024;

/**
 * Creates a reducer. It joins whole rows, which decides about most blocks, and takes the others apart.
 * @param isReversed Whether values are the greater the less the items are, since their scale factor is negative.
 */
export function createRowReducer(method: Exclude<CoarsenMethod, "nearest">, isReversed: boolean): ReduceRows {
  const { joinRows, joinPairs, reduceCells } = reductionOf(method, isReversed);
  const cells = new Float64Array(MAX_CELLS);
  let joined = new Float64Array(0);

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
    if (joined.length < length) joined = new Float64Array(length);
    let column = rows[0]!;
    for (let r = 1; r < rows.length; r++) {
      joinRows(column, rows[r]!, length, joined);
      column = joined;
    }
    const pairs = distance === 0 ? 0 : Math.floor(length / (2 * distance));
    const paired = pairs * distance;
    const count = length - paired;
    joinPairs(column, pairs, distance, out);
    for (let at = paired; at < count; at++) out[at] = column[at + paired]!;
    if (method === "mean") {
      scale(out, 0, paired, 0.5 / rows.length);
      scale(out, paired, count, 1 / rows.length);
    }
    for (let at = 0; at < count; at++) {
      if (!Number.isNaN(out[at])) continue;
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

function scale(row: Float64Array, begin: number, end: number, factor: number): void {
  if (factor === 1) return;
  for (let at = begin; at < end; at++) row[at] = row[at]! * factor;
}

const MEAN: Reduction = {
  joinRows(a, b, length, out) {
    for (let i = 0; i < length; i++) out[i] = a[i]! + b[i]!;
  },
  joinPairs(row, pairs, distance, out) {
    for (let p = 0, at = 0, from = 0; p < pairs; p++, from += distance)
      for (let w = 0; w < distance; w++, at++, from++) out[at] = row[from]! + row[from + distance]!;
  },
  reduceCells(cells, count) {
    let sum = 0;
    for (let i = 0; i < count; i++) sum += cells[i]!;
    return sum / count;
  },
};

const GREATEST: Reduction = {
  joinRows(a, b, length, out) {
    for (let i = 0; i < length; i++) out[i] = Math.max(a[i]!, b[i]!);
  },
  joinPairs(row, pairs, distance, out) {
    for (let p = 0, at = 0, from = 0; p < pairs; p++, from += distance)
      for (let w = 0; w < distance; w++, at++, from++) out[at] = Math.max(row[from]!, row[from + distance]!);
  },
  reduceCells(cells, count) {
    let greatest = cells[0]!;
    for (let i = 1; i < count; i++) greatest = Math.max(greatest, cells[i]!);
    return greatest;
  },
};

const LEAST: Reduction = {
  joinRows(a, b, length, out) {
    for (let i = 0; i < length; i++) out[i] = Math.min(a[i]!, b[i]!);
  },
  joinPairs(row, pairs, distance, out) {
    for (let p = 0, at = 0, from = 0; p < pairs; p++, from += distance)
      for (let w = 0; w < distance; w++, at++, from++) out[at] = Math.min(row[from]!, row[from + distance]!);
  },
  reduceCells(cells, count) {
    let least = cells[0]!;
    for (let i = 1; i < count; i++) least = Math.min(least, cells[i]!);
    return least;
  },
};

const MODE_LEAST: Reduction = {
  joinRows(a, b, length, out) {
    for (let i = 0; i < length; i++) out[i] = a[i] === b[i] ? a[i]! : Number.NaN;
  },
  joinPairs(row, pairs, distance, out) {
    for (let p = 0, at = 0, from = 0; p < pairs; p++, from += distance)
      for (let w = 0; w < distance; w++, at++, from++)
        out[at] = row[from] === row[from + distance] ? row[from]! : Number.NaN;
  },
  reduceCells: (cells, count) => mostFrequent(cells.subarray(0, count).sort()),
};

const MODE_GREATEST: Reduction = {
  ...MODE_LEAST,
  reduceCells: (cells, count) => mostFrequent(cells.subarray(0, count).sort().reverse()),
};

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
