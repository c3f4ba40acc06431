import type { Hdf5ChunkedLayout } from "../hdf5-model.js";
import type { ChunkGeometry } from "./chunk-geometry.js";
import type { ChunkList } from "./chunk-list.js";
import { addressAt, damaged, type IndexBlocks, uintAt } from "./index-blocks.js";

/** What the readers of all kinds of indexes get. */
export interface IndexWalk {
  readonly blocks: IndexBlocks;
  readonly geometry: ChunkGeometry;
  readonly layout: Hdf5ChunkedLayout;
  /** Address of the index: its header, its root, or its only chunk. */
  readonly address: number;
  readonly chunks: ChunkList;
}

/** Reader of the entries that fixed arrays, extensible arrays and B-trees of version 2 have for chunks. */
export interface ChunkEntries {
  /** Bytes of an entry. */
  readonly byteLength: number;
  /** Adds the chunk of an entry unless its address is undefined. */
  add(view: DataView, at: number, coords: ArrayLike<number>): void;
}

const ADDRESS_BYTES = 8;
const MASK_BYTES = 4;

/**
 * Creates a reader of entries.
 * @param isFiltered Whether entries have a length and a filter mask, as the header of the index says.
 * @param byteLength Bytes of an entry without what follows the mask. The width of lengths results from it: it depends on the
 * version of the layout (HDF5 File Format Specification, VII.B and VII.C).
 * @throws ZpublishError `invalid-metadata` if it does not go with the dataset.
 */
export function createChunkEntries(
  { chunks, geometry }: IndexWalk,
  isFiltered: boolean,
  byteLength: number,
): ChunkEntries {
  const { chunkByteLength, filterCount } = geometry;
  if (isFiltered !== filterCount > 0) {
    throw damaged(
      `expected entries of ${filterCount > 0 ? "filtered" : "unfiltered"} chunks, received the other kind`,
    );
  }
  const lengthBytes = byteLength - ADDRESS_BYTES - MASK_BYTES;
  if (isFiltered ? !(lengthBytes >= 1 && lengthBytes <= 8) : byteLength !== ADDRESS_BYTES) {
    throw damaged(`expected entries of ${isFiltered ? "13 to 20" : "8"} bytes, received ${byteLength}`);
  }
  return {
    byteLength,
    add(view, at, coords) {
      const address = addressAt(view, at);
      if (address === null) return;
      if (!isFiltered) chunks.add(coords, address, chunkByteLength, 0);
      else {
        const maskAt = at + ADDRESS_BYTES + lengthBytes;
        const stored = uintAt(view, at + ADDRESS_BYTES, lengthBytes);
        chunks.add(coords, address, stored, view.getUint32(maskAt, true));
      }
    },
  };
}
