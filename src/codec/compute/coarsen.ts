import { elementCount } from "../../model/data-tree.js";
import type { CoarsenMethod, CoarsenStep, EncodingPlan } from "../../zarr/plan/encoding-plan.js";
import { copyStrided, fillBuffer } from "../copy-strided.js";
import { openRows, openRowsForWriting, type RowWriter } from "../item-rows.js";
import { type KernelMemory, OWN_MEMORY } from "../kernel/kernel-memory.js";
import { type BlockRow, type Blocks, blocksOf, forEachBlockRow } from "./block-rows.js";

/**
 * Makes the bounds of coarser cells: of the bounds of a block the least and the greatest, in the order that those of its first cell
 * have (CF section 7.1).
 * @param items Two bounds per cell of an axis that is halved.
 */
function coarsenBounds(
  items: Uint8Array,
  out: Uint8Array,
  { inside, outInside }: Blocks,
  { from, packing }: CoarsenStep,
): void {
  const cells = inside[0]!;
  const bounds = new Float64Array(cells * 2);
  openRows(items, from, packing).read(bounds, 0, bounds.length);

  function copy(source: number, target: number): void {
    const item = items.subarray(source * from.itemSize, (source + 1) * from.itemSize);
    out.set(item, target * from.itemSize);
  }

  for (let cell = 0; cell < outInside[0]!; cell++) {
    const first = cell * 4;
    const end = Math.min(first + 4, bounds.length);
    let least = first;
    let greatest = first;
    for (let index = first + 1; index < end; index++) {
      if (bounds[index]! < bounds[least]!) least = index;
      if (bounds[index]! > bounds[greatest]!) greatest = index;
    }
    const descends = bounds[first]! > bounds[first + 1]!;
    copy(descends ? greatest : least, cell * 2);
    copy(descends ? least : greatest, cell * 2 + 1);
  }
}

/**
 * Reduces rows of doubles, in which NaN is missing. A block is one place of each row, or two that are `distance` places apart; one
 * without any value becomes NaN.
 * @param length Places of each row that are used. Of the last block there may be one place only.
 * @param distance 0 for blocks of one place.
 * @param out Takes the results.
 * @returns Number of results.
 */
type ReduceRows = (
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
function createRowReducer(method: Exclude<CoarsenMethod, "nearest">, isReversed: boolean): ReduceRows {
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
function mostFrequent<T extends number | bigint>(values: ArrayLike<T>): T {
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

/**
 * Reduces rows of 64-bit integers that doubles do not hold: slow, and exact.
 * @param rows The rows as doubles, in which NaN is missing.
 * @param isReversed As in `createRowReducer`.
 */
function reduceWide(
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

/** Numbers that are converted at a time: rows of them stay in the first-level cache. */
const MAX_ROW = 2_048;

/**
 * Coarsens a box of items: each block of cells becomes one. Blocks at the edge of the array have fewer cells, as with
 * `coarsen(boundary="pad")` of xarray. Parameters are those of `computeItems`.
 * @returns The items of the coarser chunk in C order, with fill items outside of the array.
 */
export function coarsen(
  items: Uint8Array,
  { shape, served }: EncodingPlan,
  step: CoarsenStep,
  chunkCoords: readonly number[],
  memory: KernelMemory = OWN_MEMORY,
): Uint8Array {
  const blocks = blocksOf(shape, served.chunkShape, step.factors, chunkCoords);
  const out = memory.allocate(elementCount(blocks.outShape) * step.to.itemSize);
  if (blocks.isAtEdge) fillBuffer(out, step.fillItem);
  if (elementCount(blocks.inside) === 0) return out;
  if (step.method === "nearest") takeFirst(items, out, blocks, step);
  else if (step.method === "bounds") coarsenBounds(items, out, blocks, step);
  else return reduceBlocks(items, out, blocks, step, step.method);
  return out;
}

/** Copies the first cell of each block. */
function takeFirst(items: Uint8Array, out: Uint8Array, blocks: Blocks, { factors, to }: CoarsenStep): void {
  const axes = blocks.outInside.map((length, axis) => ({
    length,
    sourceStride: blocks.strides[axis]! * factors[axis]!,
    targetStride: blocks.outStrides[axis]!,
  }));
  copyStrided(items, 0, out, 0, axes, to.itemSize);
}

function reduceBlocks(
  items: Uint8Array,
  out: Uint8Array,
  blocks: Blocks,
  { packing, from, to, missingItem }: CoarsenStep,
  method: "mean" | "max" | "mode",
): Uint8Array {
  const isUnpacked = method === "mean" && to.kind === "f";
  const isRounded = method === "mean" && !isUnpacked;
  const { scale, offset } = packing;
  const isIdentity = scale === 1 && offset === 0;
  const reader = openRows(items, from, packing);
  const writer = openRowsForWriting(out, to, packing, missingItem);
  const reduce = createRowReducer(method, scale < 0);
  const reduced = new Float64Array(MAX_ROW);
  const rows: Float64Array[][] = [];

  forEachBlockRow(blocks, MAX_ROW, (starts, length, distance, outStart) => {
    let rowsNow = rows[starts.length];
    if (rowsNow === undefined) {
      rowsNow = starts.map(() => new Float64Array(MAX_ROW));
      rows[starts.length] = rowsNow;
    }
    let isExact = true;
    for (let r = 0; r < starts.length; r++) {
      isExact = reader.read(rowsNow[r]!, starts[r]!, length) && isExact;
    }
    if (!isExact && !isUnpacked && reader.wide !== undefined) {
      reduceWide(reader.wide, rowsNow, { starts, length, distance, outStart }, method, scale < 0, writer);
      return;
    }
    const count = reduce(rowsNow, length, distance, reduced);
    if (isRounded) roundHalfToEven(reduced, count);
    else if (isUnpacked && !isIdentity) unpack(reduced, count, scale, offset);
    writer.write(reduced, outStart, count);
  });
  return writer.finish();
}

function unpack(row: Float64Array, count: number, scale: number, offset: number): void {
  for (let i = 0; i < count; i++) row[i] = row[i]! * scale + offset;
}

/** Added to a smaller number, it leaves no bits for a fraction: the sum is rounded half to even. */
const ROUNDER = 1.5 * 2 ** 52;
const MAX_ROUNDED = 2 ** 51;

function roundHalfToEven(row: Float64Array, count: number): void {
  for (let i = 0; i < count; i++) {
    const value = row[i]!;
    if (Math.abs(value) < MAX_ROUNDED) row[i] = value + ROUNDER - ROUNDER;
    else if (value % 1 !== 0) row[i] = 2 * Math.round(value / 2);
  }
}
