import { combinations } from "../../collections/combinations.js";
import { ZpublishError } from "../../errors.js";
import { createSlice } from "../../event-loop/cooperative-task.js";
import { elementCount } from "../../model/data-tree.js";
import type { EncodingPlan } from "./encoding-plan.js";
import {
  countChunksOfAxis,
  itemStrides,
  type PickedAxis,
  type PickedPlaces,
  type PointsOfChunk,
  partsOfAxis,
  pickedLength,
} from "./item-pick.js";

/** The chunks that a selection is read from. */
export interface PickedGrid {
  /** Elements per axis. */
  readonly chunkShape: readonly number[];
  /** Decoded bytes of one. */
  readonly chunkBytes: number;
}

/** Refuses a selection that is not inside of an array. @throws ZpublishError `invalid-query` */
export function assertInside(
  { path, shape }: Pick<EncodingPlan, "path" | "shape">,
  selection: readonly PickedAxis[],
): void {
  if (selection.length !== shape.length) {
    const message = `'${path}': expected a selection of ${shape.length} axes, received ${selection.length}`;
    throw new ZpublishError("invalid-query", message);
  }
  for (const [axis, picked] of selection.entries()) {
    const [least, most] = boundsOf(picked);
    if (least >= 0 && most < shape[axis]!) continue;
    throw notInside({ path, shape }, axis, least, most);
  }
}

function notInside(
  { path, shape }: Pick<EncodingPlan, "path" | "shape">,
  axis: number,
  least: number,
  most: number,
): ZpublishError {
  const expected = `expected indexes of axis ${axis} from 0 to ${shape[axis]! - 1}`;
  return new ZpublishError("invalid-query", `'${path}': ${expected}, received ${least} to ${most}`);
}

/** Returns the least and the greatest index; 0 and -1 if there are none. NaN if they are no integers. */
function boundsOf(axis: PickedAxis): [least: number, most: number] {
  if (pickedLength(axis) === 0) return [0, -1];
  if (!("indexes" in axis)) {
    const { begin, count, step } = axis;
    if (![begin, count, step].every(Number.isSafeInteger) || count < 0 || step === 0)
      return [Number.NaN, Number.NaN];
    const last = begin + (count - 1) * step;
    return [Math.min(begin, last), Math.max(begin, last)];
  }
  let [least, most] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (let i = 0; i < axis.indexes.length; i++) {
    const index = axis.indexes[i]!;
    if (!Number.isSafeInteger(index)) return [Number.NaN, Number.NaN];
    least = Math.min(least, index);
    most = Math.max(most, index);
  }
  return [least, most];
}

/** Counts the stored chunks that have selected items. */
export function countChunks({ chunkShape }: PickedGrid, selection: readonly PickedAxis[]): number {
  return selection.reduce((count, axis, at) => count * countChunksOfAxis(axis, chunkShape[at]!), 1);
}

/** Part of a selected axis, and the places of its items in the result. */
interface AxisSlice {
  readonly axis: PickedAxis;
  readonly to: PickedPlaces;
}

/** The work of one task: part of a box, and its place in the result. */
export type Block = readonly AxisSlice[];

/** Bounds of one task: bytes of its result, decoded bytes of its chunks, and their number, so that work ends soon and is spread. */
const MAX_TASK_BYTES = 8 * 2 ** 20;
const MAX_TASK_CHUNK_BYTES = 16 * 2 ** 20;
const MAX_TASK_CHUNKS = 64;

/** Cuts a box into blocks of whole chunks, each as large as a task may be, and none smaller than one chunk. */
export function cutBox(grid: PickedGrid, box: readonly PickedAxis[], itemBytes: number): Block[] {
  const counts = box.map((axis, at) => countChunksOfAxis(axis, grid.chunkShape[at]!));
  const perBlock = counts.map(() => 1);
  let bytes = box.reduce(
    (product, axis, at) => (product * pickedLength(axis)) / Math.max(1, counts[at]!),
    itemBytes,
  );
  let chunks = 1;
  for (let axis = box.length - 1; axis >= 0; axis--) {
    const count = counts[axis]!;
    const most = Math.min(
      MAX_TASK_BYTES / bytes,
      MAX_TASK_CHUNK_BYTES / (chunks * grid.chunkBytes),
      MAX_TASK_CHUNKS / chunks,
    );
    const cuts = Math.ceil(count / Math.max(1, Math.min(count, Math.floor(most))));
    perBlock[axis] = Math.ceil(count / Math.max(1, cuts));
    chunks *= perBlock[axis]!;
    bytes *= perBlock[axis]!;
    if (perBlock[axis]! < count) break;
  }
  return [...combinations(box.map((axis, at) => cutAxis(axis, grid.chunkShape[at]!, perBlock[at]!)))];
}

/** Cuts an axis where chunks end. @param chunks Chunks per slice. */
function cutAxis(axis: PickedAxis, chunkLength: number, chunks: number): AxisSlice[] {
  if (countChunksOfAxis(axis, chunkLength) <= chunks) return [{ axis, to: { first: 0, step: 1 } }];
  const parts = [...partsOfAxis(axis, chunkLength)];
  const slices: AxisSlice[] = [];
  for (let at = 0; at < parts.length; at += chunks) {
    const lot = parts.slice(at, at + chunks);
    if ("indexes" in axis) {
      const to = Uint32Array.from(lot.flatMap((part) => [...(part.to as Uint32Array)])).sort();
      slices.push({ axis: { indexes: Float64Array.from(to, (each) => axis.indexes[each]!) }, to });
    } else {
      const { to } = lot[0] as { readonly to: { readonly first: number; readonly step: number } };
      const count = lot.reduce((sum, { length }) => sum + length, 0);
      slices.push({ axis: sliceOfAxis(axis, to.first, count), to });
    }
  }
  return slices;
}

/** Part of a selection that is contiguous in C order. */
export interface Slab {
  readonly box: readonly PickedAxis[];
  /** Position of its first item in C order. */
  readonly first: number;
  readonly itemCount: number;
}

/** Largest slab in pieces, unless it is one item: rows of chunks beyond it are decoded more than once. */
const MAX_SLAB_PIECES = 64;

/**
 * Cuts a selection into slabs in C order: whole rows of chunks, as many as fit `slabBytes`. A row that is larger is one slab if its chunks
 * would else be decoded more than once, up to a bound.
 * @param range Items that are wanted; slabs may have some before and after them.
 */
export function* slabsOf(
  { chunkShape }: Pick<PickedGrid, "chunkShape">,
  box: readonly PickedAxis[],
  itemBytes: number,
  slabBytes: number,
  range: { readonly begin: number; readonly end: number },
  axis = 0,
  first = 0,
): Generator<Slab> {
  const itemCount = elementCount(box.slice(axis).map(pickedLength));
  if (itemCount === 0 || first + itemCount <= range.begin || first >= range.end) return;
  const whole = { box, first, itemCount };
  if (itemCount * itemBytes <= slabBytes || axis === box.length) {
    yield whole;
    return;
  }
  const rowItems = itemCount / pickedLength(box[axis]!);
  const rowBytes = rowItems * itemBytes;
  const part = (begin: number, count: number): readonly PickedAxis[] =>
    box.map((picked, at) => (at === axis ? sliceOfAxis(picked, begin, count) : picked));
  // Rows that share no chunk are cut further: no chunk is decoded twice.
  const isApart = countChunksOfAxis(box[axis]!, chunkShape[axis]!) === pickedLength(box[axis]!);
  const mostBytes = MAX_SLAB_PIECES * slabBytes;
  if (rowBytes > mostBytes || (rowBytes > slabBytes && isApart)) {
    const begin = Math.max(0, Math.floor((range.begin - first) / rowItems));
    for (let at = begin; at < pickedLength(box[axis]!); at++) {
      const start = first + at * rowItems;
      if (start >= range.end) return;
      yield* slabsOf({ chunkShape }, part(at, 1), itemBytes, slabBytes, range, axis + 1, start);
    }
    return;
  }
  const most = Math.max(1, Math.floor(mostBytes / rowBytes));
  for (const { begin, count } of runsOfAxis(
    box[axis]!,
    chunkShape[axis]!,
    Math.floor(slabBytes / rowBytes),
    most,
  )) {
    const start = first + begin * rowItems;
    const end = start + count * rowItems;
    if (end <= range.begin) continue;
    if (start >= range.end) return;
    // Rows outside of the range are not read.
    const skipped = Math.max(0, Math.floor((range.begin - start) / rowItems));
    const left = Math.min(count, Math.ceil((range.end - start) / rowItems)) - skipped;
    yield {
      box: part(begin + skipped, left),
      first: start + skipped * rowItems,
      itemCount: left * rowItems,
    };
  }
}

/** Cuts an axis into runs of whole chunks: as many as `wanted` positions hold, at least one chunk, at most `most` positions. */
function* runsOfAxis(axis: PickedAxis, chunkLength: number, wanted: number, most: number) {
  const length = pickedLength(axis);
  const chunkAt = (at: number) =>
    Math.floor(("indexes" in axis ? axis.indexes[at]! : axis.begin + at * axis.step) / chunkLength);
  for (let begin = 0; begin < length; ) {
    let chunkEnd = begin;
    for (let end = begin + 1; end <= Math.min(length, begin + most); end++) {
      if (end < length && chunkAt(end) === chunkAt(end - 1)) continue;
      // A whole chunk ends here.
      if (chunkEnd > begin && end - begin > wanted) break;
      chunkEnd = end;
      if (end - begin >= wanted) break;
    }
    const count = (chunkEnd > begin ? chunkEnd : Math.min(length, begin + most)) - begin;
    yield { begin, count };
    begin += count;
  }
}

/** Returns part of a picked axis: every `step`-th index from a position on. */
export function sliceOfAxis(axis: PickedAxis, begin: number, count: number, step = 1): PickedAxis {
  if ("indexes" in axis) {
    const indexes = new Float64Array(count);
    for (let i = 0; i < count; i++) indexes[i] = axis.indexes[begin + i * step]!;
    return { indexes };
  }
  return { begin: axis.begin + begin * axis.step, count, step: axis.step * step };
}

/** Points that are looked at between two looks at the clock. */
const POINTS_PER_STEP = 1_024;

/**
 * Finds the chunks that points lie in. The event loop is free in between.
 * @param points One row of indexes per point.
 * @returns Coordinates of the chunks in the order in which they first occur, and the place of each point's chunk in that list; -1 for
 * points with a negative index.
 * @throws ZpublishError `invalid-query` if a point is not inside of the array
 */
export async function chunksOfPoints(
  points: ArrayLike<number>,
  plan: Pick<EncodingPlan, "path" | "shape">,
  chunkShape: readonly number[],
): Promise<{ readonly chunks: readonly (readonly number[])[]; readonly numbers: Int32Array }> {
  const { shape } = plan;
  const rank = shape.length;
  const grid = shape.map((length, axis) => Math.ceil(length / chunkShape[axis]!));
  const strides = itemStrides({ chunkShape: grid });
  const chunks: number[][] = [];
  const numbers = new Int32Array(points.length / rank);
  const known = new Map<number, number>();
  const slice = createSlice();
  for (let point = 0; point < numbers.length; point++) {
    if (point % POINTS_PER_STEP === 0 && slice.isOver()) await slice.next();
    let [key, isMissing] = [0, false];
    for (let axis = 0; axis < rank; axis++) {
      const index = points[point * rank + axis]!;
      if (!(index < shape[axis]! && Number.isSafeInteger(index))) throw notInside(plan, axis, index, index);
      isMissing ||= index < 0;
      key += Math.floor(index / chunkShape[axis]!) * strides[axis]!;
    }
    const found = isMissing ? -1 : known.get(key);
    numbers[point] = found ?? chunks.length;
    if (found !== undefined) continue;
    known.set(key, chunks.length);
    chunks.push(chunkShape.map((length, axis) => Math.floor(points[point * rank + axis]! / length)));
  }
  return { chunks, numbers };
}

/** Points of a task: by chunk, and the positions of these among all points, in the same order. */
interface PointGroup {
  readonly chunks: PointsOfChunk[];
  readonly positions: Uint32Array;
}

/**
 * Groups points by stored chunk, and chunks by task. The event loop is free in between.
 * @returns The groups, and the positions of points with a negative index.
 * @throws ZpublishError `invalid-query` if a point is not inside of the array
 */
export async function groupPoints(
  points: ArrayLike<number>,
  plan: Pick<EncodingPlan, "path" | "shape" | "stored">,
  { chunkBytes }: Pick<PickedGrid, "chunkBytes">,
): Promise<{ readonly groups: PointGroup[]; readonly missing: number[] }> {
  const { chunkShape } = plan.stored;
  const rank = chunkShape.length;
  const strides = itemStrides(plan.stored);
  const { chunks, numbers } = await chunksOfPoints(points, plan, chunkShape);
  // Where the points of each chunk begin, and where the next one of it belongs.
  const begins = new Uint32Array(chunks.length + 1);
  for (const number of numbers) if (number >= 0) begins[number + 1]! += 1;
  for (let at = 1; at < begins.length; at++) begins[at]! += begins[at - 1]!;
  const next = begins.slice();
  const positions = new Uint32Array(begins.at(-1)!);
  const places = new Uint32Array(positions.length);
  const missing: number[] = [];
  const slice = createSlice();
  for (let point = 0; point < numbers.length; point++) {
    if (point % POINTS_PER_STEP === 0 && slice.isOver()) await slice.next();
    const number = numbers[point]!;
    if (number < 0) {
      missing.push(point);
      continue;
    }
    let place = 0;
    for (let axis = 0; axis < rank; axis++)
      place += (points[point * rank + axis]! - chunks[number]![axis]! * chunkShape[axis]!) * strides[axis]!;
    const at = next[number]!++;
    positions[at] = point;
    places[at] = place;
  }
  const perTask = Math.max(1, Math.min(MAX_TASK_CHUNKS, Math.floor(MAX_TASK_CHUNK_BYTES / chunkBytes)));
  const groups: PointGroup[] = [];
  for (let first = 0; first < chunks.length; first += perTask) {
    const own = chunks.slice(first, first + perTask).map((coords, at) => ({
      coords,
      places: places.slice(begins[first + at], begins[first + at + 1]),
    }));
    groups.push({ chunks: own, positions: positions.subarray(begins[first], begins[first + own.length]) });
  }
  return { groups, missing };
}
