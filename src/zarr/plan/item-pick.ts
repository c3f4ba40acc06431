import type { NumberDecoding } from "../../cf/decoded-type.js";
import { combinations } from "../../collections/combinations.js";
import type { DataType } from "../../model/data-type.js";
import type { StoredArray } from "../stored-array.js";
import { createEncodingPlan, storedChunksOf } from "./create-encoding-plan.js";
import { type EncodingPlan, unservable } from "./encoding-plan.js";

/** Indexes of one axis: a range whose step may be negative but not 0, or a list in any order, with repetitions. */
export type PickedAxis =
  | { readonly begin: number; readonly count: number; readonly step: number }
  | { readonly indexes: ArrayLike<number> };

/** Items that a worker gathers from stored chunks in place of a served chunk. Plain data. */
export interface ItemPick {
  /** Items: of a box, in C order, or of points by chunk, one after the other. */
  readonly items: readonly PickedAxis[] | { readonly points: readonly PointsOfChunk[] };
  /** Type of the stored items. */
  readonly dataType: DataType;
  /** Undefined if values stay as stored. */
  readonly decoding: NumberDecoding | undefined;
  /** Byte order of the result. */
  readonly byteOrder: "<" | ">";
}

/** Points in one stored chunk. */
export interface PointsOfChunk {
  readonly coords: readonly number[];
  /** Positions among the items of the decoded chunk, in its own order. */
  readonly places: Uint32Array;
}

/** Sequence of places: `first + i * step`, or a table. */
export type PickedPlaces = { readonly first: number; readonly step: number } | Uint32Array;

/** The part of a picked axis that lies in one chunk. */
export interface PickedPart {
  /** Index of the chunk along the axis. */
  readonly chunk: number;
  readonly length: number;
  /** PickedPlaces in the chunk, from its beginning. */
  readonly from: PickedPlaces;
  /** PickedPlaces in the result. */
  readonly to: PickedPlaces;
}

/** Returns the number of indexes. */
export function pickedLength(axis: PickedAxis): number {
  return "indexes" in axis ? axis.indexes.length : axis.count;
}

/** Returns the number of picked items. */
export function pickedCount({ items }: Pick<ItemPick, "items">): number {
  return "points" in items
    ? items.points.reduce((sum, { places }) => sum + places.length, 0)
    : items.reduce((product, axis) => product * pickedLength(axis), 1);
}

/** Parts a picked axis by chunks, in the order in which they first occur. */
export function* partsOfAxis(axis: PickedAxis, chunkLength: number): Generator<PickedPart> {
  if ("indexes" in axis) {
    yield* partsOfList(axis.indexes, chunkLength);
    return;
  }
  const { begin, count, step } = axis;
  for (let at = 0; at < count; ) {
    const index = begin + at * step;
    const chunk = Math.floor(index / chunkLength);
    const first = index - chunk * chunkLength;
    const left = step > 0 ? chunkLength - 1 - first : first;
    const length = Math.min(count - at, Math.floor(left / Math.abs(step)) + 1);
    yield { chunk, length, from: { first, step }, to: { first: at, step: 1 } };
    at += length;
  }
}

function* partsOfList(indexes: ArrayLike<number>, chunkLength: number): Generator<PickedPart> {
  const positions = new Map<number, number[]>();
  for (let at = 0; at < indexes.length; at++) {
    const chunk = Math.floor(indexes[at]! / chunkLength);
    const found = positions.get(chunk);
    if (found === undefined) positions.set(chunk, [at]);
    else found.push(at);
  }
  for (const [chunk, found] of positions) {
    const to = Uint32Array.from(found);
    yield { chunk, length: to.length, from: to.map((at) => indexes[at]! - chunk * chunkLength), to };
  }
}

/** Returns the items between neighbours along every axis. @param axisOrder From slowest to fastest varying. Default: C order. */
export function itemStrides({
  chunkShape,
  axisOrder = chunkShape.map((_, axis) => axis),
}: {
  readonly chunkShape: readonly number[];
  readonly axisOrder?: readonly number[];
}): number[] {
  const strides = new Array<number>(chunkShape.length).fill(0);
  let stride = 1;
  for (const axis of axisOrder.toReversed()) {
    strides[axis] = stride;
    stride *= chunkShape[axis]!;
  }
  return strides;
}

/** Calls `visit` for each combination of places along the axes, in the order of the parts. Offsets are sums of places times strides. */
export function forEachPlace(
  parts: readonly Omit<PickedPart, "chunk">[],
  sourceStrides: readonly number[],
  targetStrides: readonly number[],
  visit: (source: number, target: number) => void,
  axis = 0,
  source = 0,
  target = 0,
): void {
  const part = parts[axis];
  if (part === undefined) {
    visit(source, target);
    return;
  }
  const [sourceStride, targetStride] = [sourceStrides[axis]!, targetStrides[axis]!];
  for (let i = 0; i < part.length; i++) {
    const from = source + placeAt(part.from, i) * sourceStride;
    const to = target + placeAt(part.to, i) * targetStride;
    forEachPlace(parts, sourceStrides, targetStrides, visit, axis + 1, from, to);
  }
}

function placeAt(places: PickedPlaces, i: number): number {
  return places instanceof Uint32Array ? places[i]! : places.first + i * places.step;
}

/** Counts the chunks along an axis that have picked items. */
export function countChunksOfAxis(axis: PickedAxis, chunkLength: number): number {
  if ("indexes" in axis) {
    const chunks = new Set<number>();
    for (let at = 0; at < axis.indexes.length; at++) chunks.add(Math.floor(axis.indexes[at]! / chunkLength));
    return chunks.size;
  }
  const { begin, count, step } = axis;
  if (count === 0) return 0;
  if (Math.abs(step) >= chunkLength) return count;
  const last = begin + (count - 1) * step;
  return Math.abs(Math.floor(last / chunkLength) - Math.floor(begin / chunkLength)) + 1;
}

/** Returns the first chunk with picked items, which names a task; the first of all if there are none. */
export function firstChunkOf(
  { items }: Pick<ItemPick, "items">,
  chunkShape: readonly number[],
): readonly number[] {
  if ("points" in items) return items.points[0]?.coords ?? [];
  const firstOf = (axis: PickedAxis) => ("indexes" in axis ? (axis.indexes[0] ?? 0) : axis.begin);
  return items.map((axis, at) => Math.floor(firstOf(axis) / chunkShape[at]!));
}

/** Lists the stored chunks behind a task: of picked items, or of a served chunk. */
export function storedChunksOfTask({
  plan,
  chunkCoords,
  pick,
}: {
  readonly plan: EncodingPlan;
  readonly chunkCoords: readonly number[];
  readonly pick?: ItemPick;
}): number[][] {
  if (pick === undefined) return storedChunksOf(plan, chunkCoords);
  const { items } = pick;
  if ("points" in items) return items.points.map(({ coords }) => [...coords]);
  const axes = items.map((axis, at) =>
    Array.from(partsOfAxis(axis, plan.stored.chunkShape[at]!), ({ chunk }) => chunk),
  );
  return [...combinations(axes)];
}

/**
 * Plans the reading of an array's items, raw or as their variable-length filter writes them.
 * @returns The plan, and that filter.
 * @throws ZpublishError `unsupported`, naming the array, if its chunks cannot be decoded
 */
export function createItemPlan(
  stored: StoredArray,
  maxChunkBytes: number | undefined,
): { readonly plan: EncodingPlan; readonly filter: string | undefined } {
  const isVariable = stored.dataType.kind === "O";
  // With chunks of one item every stored chunk is decoded, whatever it is asked for.
  const asked = isVariable
    ? { compressor: null }
    : { chunkShape: stored.shape.map(() => 1), compressor: null, filters: null };
  const { plan, document } = createEncodingPlan(stored, asked, { maxChunkBytes });
  const [filter, ...others] = isVariable ? (document.filters ?? []) : [];
  if (isVariable && (others.length > 0 || !/^vlen-(?:utf8|bytes)$/.test(filter?.id ?? "")))
    throw unservable(stored, `expected items that are texts or bytes, received ${filter?.id ?? "objects"}`);
  return { plan: Object.freeze({ ...plan, kind: "rechunk", absentIsAbsent: false }), filter: filter?.id };
}
