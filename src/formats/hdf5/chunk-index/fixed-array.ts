import { createSlotOrder } from "./chunk-geometry.js";
import { addressAt, damaged } from "./index-blocks.js";
import { createChunkEntries, type IndexWalk } from "./index-walk.js";

const HEADER_BYTES = 28;
/** Signature, version, client, and the address of the header. */
const PREFIX_BYTES = 14;
const CHECKSUM_BYTES = 4;
/** Pages that are skipped between two looks at the clock. */
const PAGES_PER_PAUSE = 4096;

/** Reads a fixed array (HDF5 File Format Specification, VII.C): an entry for each chunk of the maximum shape, in pages if there are many. */
export async function readFixedArray(walk: IndexWalk): Promise<void> {
  const { blocks, geometry } = walk;
  const header = await blocks.readChecked(walk.address, HEADER_BYTES, "FAHD", "header of a fixed array");
  if (header.getUint8(4) !== 0) {
    throw damaged(`expected a fixed array of version 0, received ${header.getUint8(4)}`);
  }
  const entries = createChunkEntries(walk, header.getUint8(5) === 1, header.getUint8(6));
  const pageSlots = 2 ** header.getUint8(7);
  const slots = header.getUint32(8, true) + header.getUint32(12, true) * 2 ** 32;
  const expected = geometry.maxGrid.reduce((product, length) => product * length, 1);
  if (slots !== expected) throw damaged(`expected a fixed array of ${expected} entries, received ${slots}`);
  const address = addressAt(header, 16);
  if (address === null) return;

  const order = createSlotOrder(geometry, 0);
  const coords = new Float64Array(geometry.grid.length);
  function addSlots(view: DataView, at: number, from: number, to: number): void {
    for (let slot = from; slot < Math.min(to, order.usedSlots); slot++) {
      if (order.locate(slot, coords)) entries.add(view, at + (slot - from) * entries.byteLength, coords);
    }
  }

  const what = "data block of a fixed array";
  if (slots <= pageSlots) {
    const byteLength = PREFIX_BYTES + slots * entries.byteLength + CHECKSUM_BYTES;
    addSlots(await blocks.readChecked(address, byteLength, "FADB", what), PREFIX_BYTES, 0, slots);
    return;
  }
  const pages = Math.ceil(slots / pageSlots);
  const prefixBytes = PREFIX_BYTES + Math.ceil(pages / 8) + CHECKSUM_BYTES;
  const prefix = await blocks.readChecked(address, prefixBytes, "FADB", what);
  for (let page = 0; page * pageSlots < order.usedSlots; page++) {
    const isWritten = (prefix.getUint8(PREFIX_BYTES + (page >>> 3)) & (0x80 >>> (page & 7))) !== 0;
    if (page % PAGES_PER_PAUSE === 0) await blocks.pause();
    if (!isWritten) continue;
    const from = page * pageSlots;
    const to = Math.min(from + pageSlots, slots);
    const pageAddress = address + prefixBytes + page * (pageSlots * entries.byteLength + CHECKSUM_BYTES);
    const byteLength = (to - from) * entries.byteLength + CHECKSUM_BYTES;
    addSlots(await blocks.readChecked(pageAddress, byteLength, "", "page of a fixed array"), 0, from, to);
  }
}
