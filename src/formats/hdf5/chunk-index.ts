import { elementCount } from "../../model/data-tree.js";
import type { FileBlocks } from "../file-format.js";
import { NODE_TYPE, readBTree1, readBTree2 } from "./b-trees.js";
import { type ByteCursor, Hdf5Input, isPowerOfTwo } from "./bytes.js";
import {
  type ChunkGeometry,
  type ChunkList,
  checkIndex,
  chunkGeometry,
  createChunkList,
  type Hdf5Chunks,
} from "./chunk-list.js";
import type { Hdf5ChunkedLayout } from "./hdf5-model.js";

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
    // The blocks of an index do not overlap, so together they are not longer than the file.
    const input = new Hdf5Input(file, baseAddress, file.byteLength);
    // The address of the index is an offset in the file, those inside of it are not.
    await WALKS[index.kind]({ input, geometry, layout, address: address - baseAddress, chunks });
  }
  return chunks.finish();
}

/** What the readers of all kinds of indexes get. */
interface IndexWalk {
  readonly input: Hdf5Input;
  readonly geometry: ChunkGeometry;
  readonly layout: Hdf5ChunkedLayout;
  /** Address of the index: its header, its root, or its only chunk. */
  readonly address: number;
  readonly chunks: ChunkList;
}

const WALKS: Readonly<Record<Hdf5ChunkedLayout["index"]["kind"], (walk: IndexWalk) => Promise<void>>> = {
  "b-tree-1": walkBTree1,
  single: readSingle,
  implicit: readImplicit,
  "fixed-array": readFixedArray,
  "extensible-array": readExtensibleArray,
  "b-tree-2": walkBTree2,
};

/** Adds the only chunk of a dataset; the layout message says all about it. */
async function readSingle({ layout, geometry, address, chunks }: IndexWalk): Promise<void> {
  if (layout.index.kind !== "single") return;
  const { byteLength, filterMask } = layout.index;
  const isConsistent = (byteLength !== null) === geometry.filterCount > 0;
  checkIndex(isConsistent, "the stored length of a filtered chunk only", byteLength ?? "none");
  const coords = geometry.grid.map(() => 0);
  chunks.add(coords, address, byteLength ?? geometry.chunkByteLength, filterMask);
}

/** Adds chunks that lie one behind the other, unfiltered, in the order of the maximum shape. */
async function readImplicit({ input, geometry, address, chunks }: IndexWalk): Promise<void> {
  const { chunkByteLength, filterCount, grid } = geometry;
  checkIndex(filterCount === 0, "chunks without filters", `${filterCount} filters`);
  const { slotOf } = createSlotOrder(geometry, 0);
  const coords = new Float64Array(grid.length);
  for (;;) {
    chunks.add(coords, address + slotOf(coords) * chunkByteLength, chunkByteLength, 0);
    let axis = grid.length - 1;
    while (axis >= 0 && ++coords[axis]! === grid[axis]) coords[axis--] = 0;
    if (axis < 0) return;
    const pause = input.pause();
    if (pause !== undefined) await pause;
  }
}

/** Reads a version 1 B-tree. A key has the length of a chunk, its filter mask, and its offset per axis and inside of the item. */
async function walkBTree1({ input, geometry, address, chunks }: IndexWalk): Promise<void> {
  const { chunkShape } = geometry;
  const rank = chunkShape.length;
  const coords = new Float64Array(rank);
  const keyBytes = 8 + 8 * (rank + 1);
  await readBTree1(input, address, NODE_TYPE.chunks, keyBytes, (entry) => {
    const { view, at } = entry;
    for (let axis = 0; axis < rank; axis++) {
      const place = at + 8 + 8 * axis;
      const offset = view.getUint32(place + 4, true) * 2 ** 32 + view.getUint32(place, true);
      coords[axis] = offset / chunkShape[axis]!;
      if (!Number.isInteger(coords[axis]))
        checkIndex(false, `a chunk at multiples of ${chunkShape.join(" x ")}`, "another place");
    }
    const high = view.getUint32(at + keyBytes + 4, true);
    const low = view.getUint32(at + keyBytes, true);
    // All bits are set in an undefined address.
    if ((high & low) === -1) return;
    chunks.add(coords, high * 2 ** 32 + low, view.getUint32(at, true), view.getUint32(at + 4, true));
  });
}

/** Types of records: places in the grid, without and with length and filter mask. */
const CHUNK_RECORDS = [10, 11] as const;
const FILTERED_RECORDS = 11;

/** Reads a version 2 B-tree, whose records are entries followed by a place in the grid. */
async function walkBTree2(walk: IndexWalk): Promise<void> {
  const rank = walk.geometry.grid.length;
  const coords = new Float64Array(rank);
  let entries: ChunkEntries | undefined;
  const minBytes = ADDRESS_BYTES + 8 * rank;
  await readBTree2(walk.input, walk.address, CHUNK_RECORDS, minBytes, (record, type, recordBytes) => {
    entries ??= createChunkEntries(walk, type === FILTERED_RECORDS, recordBytes - 8 * rank);
    const start = record.at;
    record.skip(entries.byteLength);
    for (let axis = 0; axis < rank; axis++) coords[axis] = record.u64();
    record.at = start;
    entries.add(record, coords);
  });
}

const CHECKSUM_BYTES = 4;
const ADDRESS_BYTES = 8;
const MASK_BYTES = 4;

type ChunkEntries = ReturnType<typeof createChunkEntries>;

/**
 * Creates the reader of the entries that fixed arrays, extensible arrays and B-trees of version 2 have for chunks.
 * @param isFiltered Whether entries have a length and a filter mask, as the header of the index says.
 * @param byteLength Bytes of an entry without what follows the mask. The width of lengths results from it: it depends on the
 * version of the layout (HDF5 File Format Specification, VII.B and VII.C).
 */
function createChunkEntries({ chunks, geometry }: IndexWalk, isFiltered: boolean, byteLength: number) {
  const { chunkByteLength, filterCount } = geometry;
  const expected = `entries of ${filterCount > 0 ? "filtered" : "unfiltered"} chunks`;
  checkIndex(isFiltered === filterCount > 0, expected, "the other kind");
  const lengthBytes = byteLength - ADDRESS_BYTES - MASK_BYTES;
  const isSane = isFiltered ? lengthBytes >= 1 && lengthBytes <= 8 : byteLength === ADDRESS_BYTES;
  checkIndex(isSane, `entries of ${isFiltered ? "13 to 20" : "8"} bytes`, byteLength);
  return {
    byteLength,
    /** Reads an entry, and adds its chunk unless its address is undefined. */
    add(cursor: ByteCursor, coords: ArrayLike<number>): void {
      const address = cursor.optional();
      if (!isFiltered) {
        if (address !== null) chunks.add(coords, address, chunkByteLength, 0);
      } else if (address === null) cursor.skip(lengthBytes + MASK_BYTES);
      else chunks.add(coords, address, cursor.uint(lengthBytes), cursor.u32());
    },
  };
}

type SlotArray = ReturnType<typeof createSlotArray>;

/**
 * Creates a fixed or extensible array: an entry for each slot, in the order of the maximum shape.
 * @param pageSlots Slots of a page.
 * @param firstAxis Axis that varies slowest.
 */
function createSlotArray(
  { input, geometry }: IndexWalk,
  entries: ChunkEntries,
  pageSlots: number,
  firstAxis: number,
) {
  const { usedSlots, locate } = createSlotOrder(geometry, firstAxis);
  const coords = new Float64Array(geometry.grid.length);
  return {
    input,
    usedSlots,
    entryBytes: entries.byteLength,
    pageSlots,
    /** Reads the entries of slots. The cursor is at the first. */
    addSlots(cursor: ByteCursor, from: number, count: number): void {
      const end = Math.min(from + count, usedSlots);
      for (let slot = from; slot < end; slot++) {
        if (locate(slot, coords)) entries.add(cursor, coords);
        else cursor.skip(entries.byteLength);
      }
    },
  };
}

/**
 * Reads the pages of slots that were written.
 * @param address That of the first page.
 * @param slots Slots of all pages; the last page may be shorter.
 */
async function readPages(
  { input, usedSlots, entryBytes, pageSlots, addSlots }: SlotArray,
  address: number,
  firstSlot: number,
  slots: number,
  isWritten: (page: number) => boolean,
): Promise<void> {
  for (let page = 0; page * pageSlots < slots && firstSlot + page * pageSlots < usedSlots; page++) {
    if (!isWritten(page)) {
      const pause = input.pause();
      if (pause !== undefined) await pause;
      continue;
    }
    const count = Math.min(pageSlots, slots - page * pageSlots);
    const pageAddress = address + page * (pageSlots * entryBytes + CHECKSUM_BYTES);
    const byteLength = count * entryBytes + CHECKSUM_BYTES;
    const cursor = await input.readChecked(pageAddress, byteLength, "", "page of an index of chunks");
    addSlots(cursor, firstSlot + page * pageSlots, count);
  }
}

/** Returns whether a bit of a bitmap is set, the highest bit of a byte first. */
function bitOf(bitmap: Uint8Array, bit: number): boolean {
  return (bitmap[bit >>> 3]! & (0x80 >>> (bit & 7))) !== 0;
}

/** Bytes of blocks before their own fields: signature, version, client, and the address of the header. */
const BLOCK_PREFIX_BYTES = 14;
const FIXED_HEADER_BYTES = 28;

/** Reads a fixed array (VII.C): an entry for each chunk of the maximum shape, in pages if there are many. */
async function readFixedArray(walk: IndexWalk): Promise<void> {
  const { input, geometry } = walk;
  const header = await input.readChecked(walk.address, FIXED_HEADER_BYTES, "FAHD", "header of a fixed array");
  header.version(0, 0);
  const entries = createChunkEntries(walk, header.u8() === 1, header.u8());
  const pageSlots = 2 ** header.u8();
  const slots = header.u64();
  const expected = elementCount(geometry.maxGrid);
  checkIndex(slots === expected, `an array of ${expected} entries`, slots);
  const address = header.optional();
  if (address === null) return;
  const array = createSlotArray(walk, entries, pageSlots, 0);
  const isPaged = slots > pageSlots;
  const ownBytes = isPaged ? Math.ceil(Math.ceil(slots / pageSlots) / 8) : slots * entries.byteLength;
  const byteLength = BLOCK_PREFIX_BYTES + ownBytes + CHECKSUM_BYTES;
  const block = await input.readChecked(address, byteLength, "FADB", "data block of a fixed array");
  block.at = BLOCK_PREFIX_BYTES;
  if (!isPaged) return array.addSlots(block, 0, slots);
  const bitmap = block.take(ownBytes);
  await readPages(array, address + byteLength, 0, slots, (page) => bitOf(bitmap, page));
}

const EXTENSIBLE_HEADER_BYTES = 72;

/**
 * Reads an extensible array (VII.D). The first entries lie in the index block, the next ones in data blocks that it names, the rest
 * in data blocks that super blocks name. Data blocks of many entries consist of pages.
 */
async function readExtensibleArray(walk: IndexWalk): Promise<void> {
  const array = await readExtensibleHeader(walk);
  if (array === undefined) return;
  const { input, maxBits, inlineSlots, minSlots, minPointers, entryBytes, usedSlots } = array;
  // Super block u has 2^floor(u/2) data blocks. The index block names those of the first super blocks itself.
  const superBlocks = 1 + maxBits - Math.log2(minSlots);
  const inlineSuperBlocks = 2 * Math.log2(minPointers);
  const pointers = 2 * (minPointers - 1) + Math.max(0, superBlocks - inlineSuperBlocks);
  const byteLength =
    BLOCK_PREFIX_BYTES + inlineSlots * entryBytes + pointers * ADDRESS_BYTES + CHECKSUM_BYTES;
  const structure = "index block of an extensible array";
  const index = await input.readChecked(array.indexAddress, byteLength, "EAIB", structure);
  index.at = BLOCK_PREFIX_BYTES;
  array.addSlots(index, 0, inlineSlots);
  index.at = BLOCK_PREFIX_BYTES + inlineSlots * entryBytes;
  let firstSlot = inlineSlots;
  for (let u = 0; u < superBlocks && firstSlot < usedSlots; u++) {
    const count = 2 ** Math.floor(u / 2);
    const blockSlots = 2 ** Math.ceil(u / 2) * minSlots;
    if (u >= inlineSuperBlocks) {
      const address = index.optional();
      if (address !== null) await readSuperBlock(array, address, count, firstSlot, blockSlots);
    } else {
      checkIndex(blockSlots <= array.pageSlots, "data blocks without pages in the index block", "others");
      // HDF5 writes other numbers of slots into blocks that the index block names.
      await readDataBlocks(array, addressesAt(index, count), firstSlot, blockSlots, false);
    }
    firstSlot += count * blockSlots;
  }
}

type ExtensibleArray = NonNullable<Awaited<ReturnType<typeof readExtensibleHeader>>>;

/** Reads the header of an extensible array; undefined if nothing was written. */
async function readExtensibleHeader(walk: IndexWalk) {
  const structure = "header of an extensible array";
  const header = await walk.input.readChecked(walk.address, EXTENSIBLE_HEADER_BYTES, "EAHD", structure);
  header.version(0, 0);
  const entries = createChunkEntries(walk, header.u8() === 1, header.u8());
  const maxBits = header.u8();
  // Slots whose entries are in the index block.
  const inlineSlots = header.u8();
  const minSlots = header.u8();
  const minPointers = header.u8();
  const pageSlots = 2 ** header.u8();
  const isSane = maxBits >= 1 && maxBits <= 64 && isPowerOfTwo(minSlots) && isPowerOfTwo(minPointers);
  const received = `${maxBits} bits, ${minSlots} entries and ${minPointers} pointers at least`;
  checkIndex(isSane, "at most 64 bits and powers of two", received);
  // Statistics, which only writers need.
  header.skip(48);
  const indexAddress = header.optional();
  if (indexAddress === null) return undefined;
  const { maxGrid } = walk.geometry;
  const unlimited = [...maxGrid.keys()].filter((axis) => maxGrid[axis] === Infinity);
  checkIndex(unlimited.length === 1, "one axis without limit", unlimited.length);
  const slots = createSlotArray(walk, entries, pageSlots, unlimited[0]!);
  return { ...slots, maxBits, inlineSlots, minSlots, minPointers, indexAddress };
}

async function readSuperBlock(
  array: ExtensibleArray,
  address: number,
  count: number,
  firstSlot: number,
  blockSlots: number,
): Promise<void> {
  const isPaged = blockSlots > array.pageSlots;
  const bitmapBytes = isPaged ? count * Math.ceil(blockSlots / array.pageSlots / 8) : 0;
  const ownBytes = bitmapBytes + count * ADDRESS_BYTES;
  const block = await readNumberedBlock(array, address, ownBytes, "EASB", firstSlot);
  // One stream of bits over all data blocks, although each has whole bytes in the length of the bitmap.
  const bitmap = block.take(bitmapBytes);
  const isWritten = isPaged ? (page: number) => bitOf(bitmap, page) : undefined;
  await readDataBlocks(array, addressesAt(block, count), firstSlot, blockSlots, true, isWritten);
}

/**
 * Reads data blocks of equal size that follow each other.
 * @param isWritten Tells if a page is written, counted over all of the blocks; undefined if blocks have no pages.
 */
async function readDataBlocks(
  array: ExtensibleArray,
  addresses: readonly (number | null)[],
  firstSlot: number,
  blockSlots: number,
  areNumbered: boolean,
  isWritten?: (page: number) => boolean,
): Promise<void> {
  const { input, usedSlots, entryBytes, pageSlots } = array;
  const headBytes = BLOCK_PREFIX_BYTES + Math.ceil(array.maxBits / 8) + CHECKSUM_BYTES;
  const known = addresses.map((address) => address ?? 0);
  for (const [i, address] of addresses.entries()) {
    const slot = firstSlot + i * blockSlots;
    if (slot >= usedSlots) return;
    if (address === null) continue;
    await input.prefetch(known, i, headBytes);
    const ownBytes = isWritten === undefined ? blockSlots * entryBytes : 0;
    const block = await readNumberedBlock(array, address, ownBytes, "EADB", areNumbered ? slot : undefined);
    if (isWritten === undefined) array.addSlots(block, slot, blockSlots);
    else {
      const pages = blockSlots / pageSlots;
      await readPages(array, address + headBytes, slot, blockSlots, (page) => isWritten(i * pages + page));
    }
  }
}

/**
 * Reads a block of an extensible array, which says which slot it begins with, not counting those of the index block.
 * @param ownBytes Bytes between this number and the checksum.
 * @param slot Expected slot; undefined for any.
 */
async function readNumberedBlock(
  { input, maxBits, inlineSlots }: ExtensibleArray,
  address: number,
  ownBytes: number,
  signature: string,
  slot: number | undefined,
): Promise<ByteCursor> {
  const structure = `${signature === "EASB" ? "super" : "data"} block of an extensible array`;
  const numberBytes = Math.ceil(maxBits / 8);
  const byteLength = BLOCK_PREFIX_BYTES + numberBytes + ownBytes + CHECKSUM_BYTES;
  const block = await input.readChecked(address, byteLength, signature, structure);
  block.at = BLOCK_PREFIX_BYTES;
  const received = block.uint(numberBytes);
  const expected = slot === undefined ? received : slot - inlineSlots;
  checkIndex(received === expected, `a ${structure} at entry ${expected}`, received);
  return block;
}

function addressesAt(cursor: ByteCursor, count: number): (number | null)[] {
  checkIndex(count * ADDRESS_BYTES <= cursor.left, `${count} addresses of blocks`, `${cursor.left} bytes`);
  return Array.from({ length: count }, () => cursor.optional());
}

/**
 * Creates the order in which fixed and extensible arrays number the chunks of the maximum shape.
 * @param firstAxis Axis that varies slowest; the others follow in their order.
 */
function createSlotOrder({ grid, maxGrid }: ChunkGeometry, firstAxis: number) {
  const axes = [firstAxis, ...grid.keys()].filter((axis, i) => i === 0 || axis !== firstAxis);
  const slotOf = (coords: ArrayLike<number>): number =>
    axes.reduce((slot, axis, i) => (i === 0 ? 0 : slot * maxGrid[axis]!) + coords[axis]!, 0);
  const usedSlots = slotOf(grid.map((length) => length - 1)) + 1;
  checkIndex(usedSlots <= Number.MAX_SAFE_INTEGER, "less than 2^53 slots", usedSlots);
  return {
    /** Number of slots up to the last one of the current shape; the rest belongs to no chunk. */
    usedSlots,
    slotOf,
    /** Puts the position of a slot in the grid into `coords`. @returns False if it is outside of the current shape. */
    locate(slot: number, coords: Float64Array): boolean {
      let rest = slot;
      for (let i = axes.length - 1; i > 0; i--) {
        const axis = axes[i]!;
        const length = maxGrid[axis]!;
        const above = Math.floor(rest / length);
        coords[axis] = rest - above * length;
        if (coords[axis]! >= grid[axis]!) return false;
        rest = above;
      }
      coords[firstAxis] = rest;
      return rest < grid[firstAxis]!;
    },
  };
}
