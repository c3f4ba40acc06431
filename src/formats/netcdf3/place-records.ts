import {
  CHUNK_BYTES,
  cutChunks,
  NO_CHUNKS,
  type PlacedChunks,
  type PlacedItems,
  stridedChunks,
  stridesOf,
} from "../file-index.js";
import type { RecordsRecipe } from "./gather-records.js";

/** Length from which a record is a chunk of its own, though chunks of several records would be closer to 1 MiB. */
const LARGE_RECORD_BYTES = 64 * 1024;
/** Bytes that may be read for a chunk of gathered records, if a read of its own costs as much as the bytes of the second bound. */
const GATHERED_READ_BYTES = 256 * 2 ** 20;
const SINGLE_READ_BYTES = 32 * 1024;

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
