import { itemStrides, type PickedPart, type PickedPlaces } from "../zarr/plan/item-pick.js";
import { type Codec, corrupt } from "./codec.js";

/** One axis of a copy; strides in items. */
interface StridedAxis {
  readonly length: number;
  readonly sourceStride: number;
  readonly targetStride: number;
}

/** Runs of fewer bytes are quicker item by item than as calls into the engine. */
const MIN_RUN_BYTES = 64;
/** Items per side of a tile: a tile of 8-byte items is 8 KiB on both sides, which fits the first-level cache. */
const TILE = 32;

type Words = Uint8Array | Uint16Array | Uint32Array;

/**
 * Copies a box of items between two buffers.
 * @param axes From slowest to fastest varying in the target, neighbours that lie together merged. None: one item.
 * @param sourceOffset In items, as are `targetOffset` and the strides.
 */
export function copyStrided(
  source: Uint8Array,
  sourceOffset: number,
  target: Uint8Array,
  targetOffset: number,
  axes: readonly StridedAxis[],
  itemSize: number,
): void {
  const inner = axes.at(-1) ?? { length: 1, sourceStride: 1, targetStride: 1 };
  const runBytes = inner.length * itemSize;
  if (
    inner.sourceStride === 1 &&
    inner.targetStride === 1 &&
    (runBytes >= MIN_RUN_BYTES || axes.length < 2)
  ) {
    copyRuns(source, sourceOffset, target, targetOffset, axes.slice(0, -1), runBytes, itemSize);
    return;
  }
  const wordSize = wordSizeOf(source, target, itemSize);
  const wordsPerItem = itemSize / wordSize;
  const from = wordsOf(source, wordSize);
  const to = wordsOf(target, wordSize);
  // The two axes of a tile: the fastest of the target, and among the others the fastest of the source.
  const others = axes.slice(0, -1);
  const column = others.length === 0 ? undefined : fastestOfSource(others);
  const rest = others.filter((axis) => axis !== column);
  const columnAxis = column ?? { length: 1, sourceStride: 0, targetStride: 0 };
  forEachOffset(rest, sourceOffset, targetOffset, (sourceAt, targetAt) =>
    copyPlane(from, sourceAt, to, targetAt, columnAxis, inner, wordsPerItem),
  );
}

function copyRuns(
  source: Uint8Array,
  sourceOffset: number,
  target: Uint8Array,
  targetOffset: number,
  outer: readonly StridedAxis[],
  runBytes: number,
  itemSize: number,
): void {
  forEachOffset(outer, sourceOffset, targetOffset, (sourceAt, targetAt) => {
    const from = sourceAt * itemSize;
    target.set(source.subarray(from, from + runBytes), targetAt * itemSize);
  });
}

/** Calls `visit` once per position of the outer axes, not per item. */
function forEachOffset(
  axes: readonly StridedAxis[],
  sourceOffset: number,
  targetOffset: number,
  visit: (sourceOffset: number, targetOffset: number) => void,
): void {
  const counters = new Array<number>(axes.length).fill(0);
  let from = sourceOffset;
  let to = targetOffset;
  for (;;) {
    visit(from, to);
    let depth = axes.length - 1;
    for (; depth >= 0; depth--) {
      const { length, sourceStride, targetStride } = axes[depth]!;
      const count = counters[depth]! + 1;
      from += sourceStride;
      to += targetStride;
      if (count < length) {
        counters[depth] = count;
        break;
      }
      counters[depth] = 0;
      from -= length * sourceStride;
      to -= length * targetStride;
    }
    if (depth < 0) return;
  }
}

function fastestOfSource(axes: readonly StridedAxis[]): StridedAxis {
  return axes.reduce((fastest, axis) =>
    Math.abs(axis.sourceStride) < Math.abs(fastest.sourceStride) ? axis : fastest,
  );
}

/**
 * Copies items tile by tile: a transposition row by row would miss the cache at every item. Items of several words are copied word
 * by word within a tile.
 */
function copyPlane(
  source: Words,
  sourceAt: number,
  target: Words,
  targetAt: number,
  rows: StridedAxis,
  columns: StridedAxis,
  words: number,
): void {
  const sourceStep = columns.sourceStride * words;
  const targetStep = columns.targetStride * words;
  for (let rowBegin = 0; rowBegin < rows.length; rowBegin += TILE) {
    const rowEnd = Math.min(rowBegin + TILE, rows.length);
    for (let columnBegin = 0; columnBegin < columns.length; columnBegin += TILE) {
      const columnEnd = Math.min(columnBegin + TILE, columns.length);
      for (let row = rowBegin; row < rowEnd; row++) {
        for (let word = 0; word < words; word++) {
          let from = (sourceAt + row * rows.sourceStride) * words + columnBegin * sourceStep + word;
          let to = (targetAt + row * rows.targetStride) * words + columnBegin * targetStep + word;
          for (let column = columnBegin; column < columnEnd; column++) {
            target[to] = source[from]!;
            from += sourceStep;
            to += targetStep;
          }
        }
      }
    }
  }
}

/**
 * The widest word that items consist of and both buffers are aligned to. Not 8: a Float64Array may change the payload of
 * a NaN, and `bigint`s are slow.
 */
function wordSizeOf(source: Uint8Array, target: Uint8Array, itemSize: number): 1 | 2 | 4 {
  const bits = itemSize | source.byteOffset | target.byteOffset | source.byteLength | target.byteLength;
  return (bits & 3) === 0 ? 4 : (bits & 1) === 0 ? 2 : 1;
}

function wordsOf(bytes: Uint8Array, wordSize: 1 | 2 | 4): Words {
  if (wordSize === 1) return bytes;
  const View = wordSize === 2 ? Uint16Array : Uint32Array;
  return new View(bytes.buffer as ArrayBuffer, bytes.byteOffset, bytes.byteLength / wordSize);
}

/** A box of items inside a buffer: one chunk. Lengths, order and origin are per axis of the array. */
export interface ChunkBox {
  readonly bytes: Uint8Array;
  /** Place of the chunk's first item in the array. */
  readonly origin: readonly number[];
  readonly chunkShape: readonly number[];
  /** Axes from slowest to fastest varying. */
  readonly axisOrder: readonly number[];
}

/**
 * Copies the items that two chunks have in common from one to the other; their axis orders may differ.
 * @param end First place along each axis that is not copied, such as the shape of the array: what lies behind it is padding.
 * @param begin First place along each axis that is copied. Default 0.
 */
export function gather(
  source: ChunkBox,
  target: ChunkBox,
  end: readonly number[],
  itemSize: number,
  begin?: readonly number[],
): void {
  copyCommon(source, target, end, itemSize, itemStrides(source), begin);
}

/**
 * Writes the fill item to the places that an absent chunk would have been copied to.
 * @param region The absent chunk.
 * @param end As for {@link gather}, as is `begin`.
 */
export function gatherFill(
  region: Omit<ChunkBox, "bytes">,
  target: ChunkBox,
  end: readonly number[],
  item: Uint8Array,
  begin?: readonly number[],
): void {
  // With strides of zero, every place reads the one item.
  const strides = end.map(() => 0);
  const { origin, chunkShape, axisOrder } = region;
  copyCommon({ bytes: item, origin, chunkShape, axisOrder }, target, end, item.length, strides, begin);
}

function copyCommon(
  source: ChunkBox,
  target: ChunkBox,
  bounds: readonly number[],
  itemSize: number,
  sourceStrides: readonly number[],
  firsts: readonly number[] | undefined,
): void {
  const targetStrides = itemStrides(target);
  const order = target.axisOrder;
  const parts = order.map((axis) => {
    const [sourceOrigin, targetOrigin] = [source.origin[axis]!, target.origin[axis]!];
    const begin = Math.max(sourceOrigin, targetOrigin, firsts?.[axis] ?? 0);
    const sourceEnd = sourceOrigin + source.chunkShape[axis]!;
    const end = Math.min(sourceEnd, targetOrigin + target.chunkShape[axis]!, bounds[axis]!);
    const from = { first: begin - sourceOrigin, step: 1 };
    return { length: Math.max(0, end - begin), from, to: { first: begin - targetOrigin, step: 1 } };
  });
  const inOrder = (strides: readonly number[]) => order.map((axis) => strides[axis]!);
  copyPlaces(source.bytes, inOrder(sourceStrides), target.bytes, inOrder(targetStrides), parts, itemSize);
}

/**
 * Copies items between places along every axis: the picked items of one chunk.
 * @param sourceStrides Items between neighbours along every axis; all 0 if the source is one item for all places.
 * @param parts One per axis, from slowest to fastest varying in the target.
 */
export function copyPlaces(
  source: Uint8Array,
  sourceStrides: readonly number[],
  target: Uint8Array,
  targetStrides: readonly number[],
  parts: readonly Omit<PickedPart, "chunk">[],
  itemSize: number,
): void {
  if (itemSize === 0) return;
  const axes: StridedAxis[] = [];
  let sourceOffset = 0;
  let targetOffset = 0;
  for (const [axis, { length, from, to }] of parts.entries()) {
    if (length === 0) return;
    if (from instanceof Uint32Array || to instanceof Uint32Array) {
      copyTables(source, sourceStrides, target, targetStrides, parts, itemSize);
      return;
    }
    sourceOffset += from.first * sourceStrides[axis]!;
    targetOffset += to.first * targetStrides[axis]!;
    const sourceStride = from.step * sourceStrides[axis]!;
    appendAxis(axes, { length, sourceStride, targetStride: to.step * targetStrides[axis]! });
  }
  copyStrided(source, sourceOffset, target, targetOffset, axes, itemSize);
}

/** As {@link copyPlaces}, if places are no sequences along all axes. */
function copyTables(
  source: Uint8Array,
  sourceStrides: readonly number[],
  target: Uint8Array,
  targetStrides: readonly number[],
  parts: readonly Omit<PickedPart, "chunk">[],
  itemSize: number,
): void {
  const wordSize = wordSizeOf(source, target, itemSize);
  const words = itemSize / wordSize;
  const from = wordsOf(source, wordSize);
  const to = wordsOf(target, wordSize);
  const tables = parts.map(({ length, from, to }, axis) => ({
    sources: offsetsOf(from, length, sourceStrides[axis]! * words),
    targets: offsetsOf(to, length, targetStrides[axis]! * words),
  }));
  const inner = tables.pop()!;
  const copyRow = (sourceAt: number, targetAt: number) => {
    const { sources, targets } = inner;
    for (let i = 0; i < sources.length; i++)
      for (let word = 0; word < words; word++)
        to[targetAt + targets[i]! + word] = from[sourceAt + sources[i]! + word]!;
  };
  const visit = (axis: number, sourceAt: number, targetAt: number): void => {
    const table = tables[axis];
    if (table === undefined) {
      copyRow(sourceAt, targetAt);
      return;
    }
    for (let i = 0; i < table.sources.length; i++)
      visit(axis + 1, sourceAt + table.sources[i]!, targetAt + table.targets[i]!);
  };
  visit(0, 0, 0);
}

/** Returns offsets of places. @param stride Between neighbouring places. */
function offsetsOf(places: PickedPlaces, length: number, stride: number): Float64Array {
  return Float64Array.from({ length }, (_, i) =>
    places instanceof Uint32Array ? places[i]! * stride : (places.first + i * places.step) * stride,
  );
}

/** Adds an axis, merged with the last one if both lie together in source and target: long runs are faster. */
function appendAxis(axes: StridedAxis[], axis: StridedAxis): void {
  if (axis.length === 1) return;
  const outer = axes.at(-1);
  if (
    outer !== undefined &&
    outer.sourceStride === axis.sourceStride * axis.length &&
    outer.targetStride === axis.targetStride * axis.length
  ) {
    axes[axes.length - 1] = { ...axis, length: outer.length * axis.length };
  } else axes.push(axis);
}

/**
 * Fills a buffer with one item over and over.
 * @param item One item; null: zero bytes. The buffer's length is a multiple of its length.
 */
export function fillBuffer(target: Uint8Array, item: Uint8Array | null): void {
  if (isZero(item) || item === null) {
    target.fill(0);
    return;
  }
  if (target.length === 0 || item.length === 0) return;
  target.set(item.subarray(0, target.length));
  // Every copy doubles the filled part.
  for (let filled = item.length; filled < target.length; filled *= 2) {
    target.copyWithin(filled, 0, Math.min(filled, target.length - filled));
  }
}

/** Whether a fill item is all zeros, as fresh memory is. */
export function isZero(item: Uint8Array | null): boolean {
  return item === null || item.every((byte) => byte === 0);
}

/** Chunks that are stored shorter than the others, as the last strip of a TIFF is: zero bytes are appended. */
export const pad: Codec = {
  decode(bytes, { codec, decodedByteLength }) {
    const byteLength = Number(codec.byteLength);
    if (bytes.length !== byteLength) {
      throw corrupt(`pad: expected ${byteLength} bytes before they are padded, received ${bytes.length}`);
    }
    const whole = new Uint8Array(decodedByteLength ?? byteLength);
    whole.set(bytes);
    return whole;
  },
};
