import { elementCount } from "../model/data-tree.js";
import type { CoarsenStep, EncodingPlan } from "../zarr/plan/encoding-plan.js";
import { type Blocks, blocksOf, forEachBlockRow } from "./block-rows.js";
import { coarsenBounds } from "./coarsen-bounds.js";
import { copyStrided } from "./copy-strided.js";
import { fillBuffer } from "./fill-buffer.js";
import { openRows, openRowsForWriting } from "./item-rows.js";
import { type KernelMemory, OWN_MEMORY } from "./kernel/kernel-memory.js";
import { createRowReducer } from "./reduce-rows.js";
import { reduceWide } from "./reduce-wide.js";

/** Numbers that are converted at a time: rows of them stay in the first-level cache. */
const MAX_ROW = 2_048;

/**
 * Coarsens a box of items: each block of cells becomes one. Blocks at the edge of the array have fewer cells, as with
 * `coarsen(boundary="pad")` of xarray.
 * @param items The whole box in C order.
 * @param chunkCoords Position of the box in the grid of `plan.served`.
 * @param memory For the result. Default: memory of its own.
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
