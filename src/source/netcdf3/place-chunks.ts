import type { FileChunkTable } from "../formats/file-index.js";
import type { RecordsRecipe } from "./gather-records.js";

/** Length up to which items are put in one chunk. */
const CHUNK_BYTES = 2 ** 20;
/** Length from which a record is a chunk of its own, though chunks of several records would be closer to 1 MiB. */
const LARGE_RECORD_BYTES = 64 * 1024;
/** Bytes that may be read for a chunk of gathered records, if a read of its own costs as much as the bytes of the second bound. */
const GATHERED_READ_BYTES = 256 * 2 ** 20;
const SINGLE_READ_BYTES = 32 * 1024;

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

const NO_CHUNKS: FileChunkTable = {
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
 * Places the chunks of an array whose first axis counts records that lie apart. Large records are chunks, or cut into them; small
 * ones are gathered.
 * @param stride Bytes from one record to the next.
 */
export function placeRecords(items: PlacedItems, stride: number): PlacedChunks {
  const { begin, shape, itemSize } = items;
  const [count = 0, ...recordShape] = shape;
  const cut = cutChunks(recordShape, itemSize, false);
  if (count === 0) return { chunkShape: [1, ...cut.chunkShape], chunks: NO_CHUNKS };
  const recordBytes = recordShape.reduce((bytes, length) => bytes * length, itemSize);
  if (recordBytes >= LARGE_RECORD_BYTES) {
    const chunkShape = [1, ...cut.chunkShape];
    const itemStrides = [stride, ...stridesOf(recordShape, itemSize)];
    return { chunkShape, chunks: stridedChunks(items, chunkShape, itemStrides, cut.axis + 1) };
  }
  const readBytes = Math.min(stride, SINGLE_READ_BYTES);
  const most = Math.floor(Math.min(CHUNK_BYTES / recordBytes, GATHERED_READ_BYTES / readBytes));
  const recipe: RecordsRecipe = { begin, stride, recordBytes, count, chunkRecords: Math.min(count, most) };
  return { chunkShape: [recipe.chunkRecords, ...recordShape], chunks: { kind: "made", recipe } };
}

/**
 * Returns the shape of chunks of up to 1 MiB: whole along the last axes, a part along one axis, one entry along those before.
 * @returns `axis` is the one that is cut; -1 if one chunk has all.
 */
function cutChunks(
  shape: readonly number[],
  itemSize: number,
  isGrowing: boolean,
): { readonly chunkShape: readonly number[]; readonly axis: number } {
  const chunkShape = shape.map(() => 1);
  let bytes = itemSize;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const length = shape[axis] as number;
    if (bytes * length > CHUNK_BYTES) {
      const most = Math.floor(CHUNK_BYTES / bytes);
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
function stridesOf(shape: readonly number[], itemSize: number): number[] {
  const strides = shape.map(() => itemSize);
  for (let axis = shape.length - 2; axis >= 0; axis--)
    strides[axis] = (strides[axis + 1] as number) * (shape[axis + 1] as number);
  return strides;
}

/** @param cutAxis The one that is cut; negative if none is. */
function stridedChunks(
  { begin, shape, itemSize }: PlacedItems,
  chunkShape: readonly number[],
  itemStrides: readonly number[],
  cutAxis: number,
): FileChunkTable {
  const rest = cutAxis < 0 ? 0 : (shape[cutAxis] as number) % (chunkShape[cutAxis] as number);
  return {
    kind: "strided",
    start: begin,
    strides: itemStrides.map((stride, axis) => stride * (chunkShape[axis] as number)),
    byteLength: chunkShape.reduce((bytes, length) => bytes * length, itemSize),
    ...(rest > 0 && { last: { axis: cutAxis, byteLength: rest * (itemStrides[cutAxis] as number) } }),
  };
}
