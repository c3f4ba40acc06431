import type { FileChunkTable, StridedChunks } from "./file-index.js";

/** Length up to which items are put in one chunk. */
export const CHUNK_BYTES = 2 ** 20;

/** Items of an array, in C order. */
export interface PlacedItems {
  readonly begin: number;
  readonly shape: readonly number[];
  readonly itemSize: number;
}

/** Chunks of an array, and where they are. */
export interface PlacedChunks {
  readonly chunkShape: readonly number[];
  readonly chunks: FileChunkTable;
}

/** A table without any chunk. */
export const NO_CHUNKS: FileChunkTable = {
  kind: "listed",
  numbers: new Float64Array(0),
  offsets: new Float64Array(0),
  byteLengths: new Uint32Array(0),
};

/**
 * Cuts an array whose items adjoin into chunks of up to 1 MiB, along its first axes.
 * @param isGrowing True if the first axis may get longer: full chunks stay the same then.
 */
export function placeItems({ begin, shape, itemSize }: PlacedItems, isGrowing: boolean): PlacedChunks {
  const { chunkShape, axis } = cutChunks(shape, itemSize, isGrowing);
  if (shape.includes(0)) return { chunkShape, chunks: NO_CHUNKS };
  const itemStrides = stridesOf(shape, itemSize);
  return { chunkShape, chunks: stridedChunks({ begin, shape, itemSize }, chunkShape, itemStrides, axis) };
}

/**
 * Returns the shape of chunks of up to 1 MiB: whole along the last axes, a part along one axis, one entry along those before.
 * @returns `axis` is the one that is cut; -1 if one chunk has all.
 */
export function cutChunks(
  shape: readonly number[],
  itemSize: number,
  isGrowing: boolean,
): { readonly chunkShape: readonly number[]; readonly axis: number } {
  const chunkShape = shape.map(() => 1);
  let bytes = itemSize;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const length = shape[axis] as number;
    if (bytes * length > CHUNK_BYTES) {
      const most = Math.max(1, Math.floor(CHUNK_BYTES / bytes));
      // Chunks of equal length leave little padding in the last one.
      chunkShape[axis] = isGrowing ? most : Math.ceil(length / Math.ceil(length / most));
      return { chunkShape, axis };
    }
    bytes *= length;
    chunkShape[axis] = Math.max(1, length);
  }
  return { chunkShape, axis: -1 };
}

/** Returns the bytes from one index to the next, per axis. */
export function stridesOf(shape: readonly number[], itemSize: number): number[] {
  const strides = shape.map(() => itemSize);
  for (let axis = shape.length - 2; axis >= 0; axis--)
    strides[axis] = (strides[axis + 1] as number) * (shape[axis + 1] as number);
  return strides;
}

/**
 * Places chunks that lie at regular places.
 * @param itemStrides Bytes from one index to the next, per axis.
 * @param cutAxis The axis that is cut; negative if none is.
 */
export function stridedChunks(
  { begin, shape, itemSize }: PlacedItems,
  chunkShape: readonly number[],
  itemStrides: readonly number[],
  cutAxis: number,
): StridedChunks {
  const rest = cutAxis < 0 ? 0 : (shape[cutAxis] as number) % (chunkShape[cutAxis] as number);
  return {
    kind: "strided",
    start: begin,
    strides: itemStrides.map((stride, axis) => stride * (chunkShape[axis] as number)),
    byteLength: chunkShape.reduce((bytes, length) => bytes * length, itemSize),
    ...(rest > 0 && { last: { axis: cutAxis, byteLength: rest * (itemStrides[cutAxis] as number) } }),
  };
}
