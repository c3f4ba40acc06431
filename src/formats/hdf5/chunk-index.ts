import type { FileBlocks } from "../file-format.js";
import { readBTree1 } from "./chunk-index/b-tree-1.js";
import { readBTree2 } from "./chunk-index/b-tree-2.js";
import { chunkGeometry, createSlotOrder } from "./chunk-index/chunk-geometry.js";
import { createChunkList, type Hdf5Chunks } from "./chunk-index/chunk-list.js";
import { readExtensibleArray } from "./chunk-index/extensible-array.js";
import { readFixedArray } from "./chunk-index/fixed-array.js";
import { createIndexBlocks, damaged } from "./chunk-index/index-blocks.js";
import type { IndexWalk } from "./chunk-index/index-walk.js";
import type { Hdf5ChunkedLayout } from "./hdf5-model.js";

export type { Hdf5Chunks };

/**
 * Reads which chunks of a dataset are stored, and where.
 * @param maxShape Null along axes without limit.
 * @param filterCount Number of filters in the dataset's pipeline.
 * @throws ZpublishError `invalid-metadata` if the index is damaged, or names chunks that are not inside the file; else as
 * `FileBlocks.read`.
 */
export async function readChunkIndex(
  file: FileBlocks,
  layout: Hdf5ChunkedLayout,
  shape: readonly number[],
  maxShape: readonly (number | null)[],
  filterCount: number,
): Promise<Hdf5Chunks> {
  const { address, baseAddress, index } = layout;
  const geometry = chunkGeometry(layout, shape, maxShape, filterCount);
  const chunks = createChunkList(geometry, file.byteLength, baseAddress);
  if (address !== null && !geometry.grid.includes(0)) {
    const blocks = createIndexBlocks(file, baseAddress);
    // The address of the index is an offset in the file, those inside of it are not.
    await WALKS[index.kind]({ blocks, geometry, layout, address: address - baseAddress, chunks });
  }
  return chunks.finish();
}

/** Chunks of a row between two looks at the clock. */
const CHUNKS_PER_PAUSE = 4096;

const WALKS: Readonly<Record<Hdf5ChunkedLayout["index"]["kind"], (walk: IndexWalk) => Promise<void>>> = {
  "b-tree-1": readBTree1,
  single: readSingle,
  implicit: readImplicit,
  "fixed-array": readFixedArray,
  "extensible-array": readExtensibleArray,
  "b-tree-2": readBTree2,
};

/** Adds the only chunk of a dataset; the layout message says all about it. */
async function readSingle({ layout, geometry, address, chunks }: IndexWalk): Promise<void> {
  if (layout.index.kind !== "single") return;
  const { byteLength, filterMask } = layout.index;
  if ((byteLength !== null) !== geometry.filterCount > 0) {
    throw damaged(`expected the stored length of a filtered chunk only, received ${byteLength ?? "none"}`);
  }
  const coords = geometry.grid.map(() => 0);
  chunks.add(coords, address, byteLength ?? geometry.chunkByteLength, filterMask);
}

/** Adds chunks that lie one behind the other, unfiltered, in the order of the maximum shape. */
async function readImplicit({ blocks, geometry, address, chunks }: IndexWalk): Promise<void> {
  const { chunkByteLength, filterCount, grid } = geometry;
  if (filterCount > 0) throw damaged(`expected chunks without filters, received ${filterCount} filters`);
  const { slotOf } = createSlotOrder(geometry, 0);
  const coords = new Float64Array(grid.length);
  for (;;) {
    chunks.add(coords, address + slotOf(coords) * chunkByteLength, chunkByteLength, 0);
    let axis = grid.length - 1;
    while (axis >= 0 && ++coords[axis]! === grid[axis]) coords[axis--] = 0;
    if (axis < 0) return;
    if (axis < grid.length - 1 || coords[axis]! % CHUNKS_PER_PAUSE === 0) await blocks.pause();
  }
}
