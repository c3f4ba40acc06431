import { copyStrided, type StridedAxis } from "./copy-strided.js";

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
  if (itemSize === 0) return;
  const targetStrides = itemStrides(target);
  const axes: StridedAxis[] = [];
  let sourceOffset = 0;
  let targetOffset = 0;
  for (const axis of target.axisOrder) {
    const sourceOrigin = source.origin[axis]!;
    const targetOrigin = target.origin[axis]!;
    const begin = Math.max(sourceOrigin, targetOrigin, firsts?.[axis] ?? 0);
    const end = Math.min(
      sourceOrigin + source.chunkShape[axis]!,
      targetOrigin + target.chunkShape[axis]!,
      bounds[axis]!,
    );
    if (begin >= end) return;
    const sourceStride = sourceStrides[axis]!;
    const targetStride = targetStrides[axis]!;
    sourceOffset += (begin - sourceOrigin) * sourceStride;
    targetOffset += (begin - targetOrigin) * targetStride;
    appendAxis(axes, { length: end - begin, sourceStride, targetStride });
  }
  copyStrided(source.bytes, sourceOffset, target.bytes, targetOffset, axes, itemSize);
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

/** Items between neighbours along every axis. */
function itemStrides({ chunkShape, axisOrder }: ChunkBox): number[] {
  const strides = new Array<number>(chunkShape.length).fill(0);
  let stride = 1;
  for (const axis of axisOrder.toReversed()) {
    strides[axis] = stride;
    stride *= chunkShape[axis]!;
  }
  return strides;
}
