import { createSlotOrder } from "./chunk-geometry.js";
import { addressAt, damaged, uintAt } from "./index-blocks.js";
import { createChunkEntries, type IndexWalk } from "./index-walk.js";

const HEADER_BYTES = 72;
/** Signature, version, client, and the address of the header. */
const PREFIX_BYTES = 14;
const CHECKSUM_BYTES = 4;
const ADDRESS_BYTES = 8;
/** Pages that are skipped between two looks at the clock. */
const PAGES_PER_PAUSE = 4096;

/** Data blocks of equal size that follow each other. */
interface DataBlocks {
  readonly addresses: readonly (number | null)[];
  /** Slot that the first block begins with. */
  readonly firstSlot: number;
  readonly blockSlots: number;
  /** Whether each block says which slot it begins with; HDF5 writes other numbers into those that the index block names. */
  readonly areNumbered: boolean;
  /** Tells if a page is written, counted over all of the blocks; undefined if blocks have no pages. */
  readonly isWritten?: (page: number) => boolean;
}

/**
 * Reads an extensible array (HDF5 File Format Specification, VII.D). The first entries lie in the index block, the next ones in data
 * blocks that it names, the rest in data blocks that super blocks name. Data blocks of many entries consist of pages.
 */
export async function readExtensibleArray(walk: IndexWalk): Promise<void> {
  const { blocks, geometry } = walk;
  const header = await blocks.readChecked(
    walk.address,
    HEADER_BYTES,
    "EAHD",
    "header of an extensible array",
  );
  if (header.getUint8(4) !== 0) {
    throw damaged(`expected an extensible array of version 0, received ${header.getUint8(4)}`);
  }
  const entries = createChunkEntries(walk, header.getUint8(5) === 1, header.getUint8(6));
  const maxBits = header.getUint8(7);
  const inlineSlots = header.getUint8(8);
  const minSlots = header.getUint8(9);
  const minPointers = header.getUint8(10);
  const pageSlots = 2 ** header.getUint8(11);
  if (!(maxBits >= 1 && maxBits <= 64 && isPowerOfTwo(minSlots) && isPowerOfTwo(minPointers))) {
    throw damaged(
      `expected at most 64 bits and powers of two, received ${maxBits} bits, ${minSlots} entries and ${minPointers} pointers at least`,
    );
  }
  const indexAddress = addressAt(header, 60);
  if (indexAddress === null) return;

  const unlimited = [...geometry.maxGrid.keys()].filter((axis) => geometry.maxGrid[axis] === Infinity);
  if (unlimited.length !== 1) {
    throw damaged(`expected one axis without limit, received ${unlimited.length}`);
  }
  const order = createSlotOrder(geometry, unlimited[0]!);
  const coords = new Float64Array(geometry.grid.length);
  const offsetBytes = Math.ceil(maxBits / 8);

  function addSlots(view: DataView, at: number, from: number, count: number): void {
    for (let slot = from; slot < Math.min(from + count, order.usedSlots); slot++) {
      if (order.locate(slot, coords)) entries.add(view, at + (slot - from) * entries.byteLength, coords);
    }
  }

  /** Reads a block, which says which slot it begins with, not counting those of the index block. */
  async function readBlock(
    address: number,
    byteLength: number,
    signature: string,
    slot: number,
    isNumbered = true,
  ): Promise<DataView> {
    const what = `${signature === "EASB" ? "super" : "data"} block of an extensible array`;
    const view = await blocks.readChecked(address, byteLength, signature, what);
    const received = uintAt(view, PREFIX_BYTES, offsetBytes);
    if (!isNumbered || received === slot - inlineSlots) return view;
    throw damaged(`expected a ${what} at entry ${slot - inlineSlots}, received ${received}`);
  }

  async function readDataBlocks({
    addresses,
    firstSlot,
    blockSlots,
    areNumbered,
    isWritten,
  }: DataBlocks): Promise<void> {
    const headBytes = PREFIX_BYTES + offsetBytes;
    const known = addresses.map((address) => address ?? 0);
    for (const [i, address] of addresses.entries()) {
      const slot = firstSlot + i * blockSlots;
      if (slot >= order.usedSlots) return;
      if (address === null) continue;
      await blocks.prefetch(known, i, headBytes + CHECKSUM_BYTES);
      if (isWritten === undefined) {
        const byteLength = headBytes + blockSlots * entries.byteLength + CHECKSUM_BYTES;
        addSlots(
          await readBlock(address, byteLength, "EADB", slot, areNumbered),
          headBytes,
          slot,
          blockSlots,
        );
        continue;
      }
      await readBlock(address, headBytes + CHECKSUM_BYTES, "EADB", slot);
      const pageBytes = pageSlots * entries.byteLength + CHECKSUM_BYTES;
      const pages = blockSlots / pageSlots;
      for (let page = 0; page < pages && slot + page * pageSlots < order.usedSlots; page++) {
        if (page % PAGES_PER_PAUSE === 0) await blocks.pause();
        if (!isWritten(i * pages + page)) continue;
        const pageAddress = address + headBytes + CHECKSUM_BYTES + page * pageBytes;
        const view = await blocks.readChecked(pageAddress, pageBytes, "", "page of an extensible array");
        addSlots(view, 0, slot + page * pageSlots, pageSlots);
      }
    }
  }

  // Super block u has 2^floor(u/2) data blocks. The index block names those of the first super blocks itself.
  const superBlocks = 1 + maxBits - Math.log2(minSlots);
  const inlineSuperBlocks = 2 * Math.log2(minPointers);
  const inlineDataBlocks = 2 * (minPointers - 1);
  const superAddresses = Math.max(0, superBlocks - inlineSuperBlocks);
  const dataAt = PREFIX_BYTES + inlineSlots * entries.byteLength;
  const superAt = dataAt + inlineDataBlocks * ADDRESS_BYTES;
  const indexBytes = superAt + superAddresses * ADDRESS_BYTES + CHECKSUM_BYTES;
  const index = await blocks.readChecked(
    indexAddress,
    indexBytes,
    "EAIB",
    "index block of an extensible array",
  );
  addSlots(index, PREFIX_BYTES, 0, inlineSlots);

  let firstSlot = inlineSlots;
  let namedAt = dataAt;
  for (let u = 0; u < superBlocks && firstSlot < order.usedSlots; u++) {
    const count = 2 ** Math.floor(u / 2);
    const blockSlots = 2 ** Math.ceil(u / 2) * minSlots;
    const isPaged = blockSlots > pageSlots;
    if (u < inlineSuperBlocks) {
      if (isPaged) throw damaged(`expected data blocks without pages in the index block, received others`);
      await readDataBlocks({
        addresses: addressesAt(index, namedAt, count),
        firstSlot,
        blockSlots,
        areNumbered: false,
      });
      namedAt += count * ADDRESS_BYTES;
    } else {
      const address = addressAt(index, superAt + (u - inlineSuperBlocks) * ADDRESS_BYTES);
      if (address !== null) {
        const bitmapAt = PREFIX_BYTES + offsetBytes;
        const bitmapBytes = isPaged ? count * Math.ceil(blockSlots / pageSlots / 8) : 0;
        const addressesBytes = count * ADDRESS_BYTES;
        const byteLength = bitmapAt + bitmapBytes + addressesBytes + CHECKSUM_BYTES;
        const view = await readBlock(address, byteLength, "EASB", firstSlot);
        // One stream of bits over all data blocks, although each has whole bytes in the length of the bitmap.
        const isWritten = (page: number): boolean =>
          (view.getUint8(bitmapAt + Math.floor(page / 8)) & (0x80 >>> (page % 8))) !== 0;
        await readDataBlocks({
          addresses: addressesAt(view, bitmapAt + bitmapBytes, count),
          firstSlot,
          blockSlots,
          areNumbered: true,
          ...(isPaged ? { isWritten } : {}),
        });
      }
    }
    firstSlot += count * blockSlots;
  }
}

function addressesAt(view: DataView, at: number, count: number): (number | null)[] {
  return Array.from({ length: count }, (_, i) => addressAt(view, at + i * ADDRESS_BYTES));
}

function isPowerOfTwo(value: number): boolean {
  return value >= 1 && Number.isInteger(Math.log2(value));
}
