import t from "tap";
import { readItems } from "../../../src/formats/hdf5/attributes.js";
import { Hdf5Input } from "../../../src/formats/hdf5/bytes.js";
import type { Hdf5Type } from "../../../src/formats/hdf5/hdf5-model.js";
import { GlobalHeap } from "../../../src/formats/hdf5/heaps.js";
import { memoryBlocks } from "./memory-blocks.js";

const TEXT: Hdf5Type = { kind: "vlen-string", size: 16, charset: "utf-8" };
const BYTE: Hdf5Type = {
  kind: "integer",
  size: 1,
  isSigned: false,
  byteOrder: "<",
  precision: 8,
  bitOffset: 0,
};
const BUDGET = { items: 100, bytes: 1000 };

/** A heap whose only collection, at address 64, has one object: 32 bytes. */
function heapOf(object: Uint8Array): GlobalHeap {
  const file = Buffer.alloc(64 + 16 + 16 + 32 + 16);
  file.write("GCOL\x01", 64, "latin1");
  file.writeBigUInt64LE(80n, 64 + 8);
  file.writeUInt16LE(1, 64 + 16);
  file.writeBigUInt64LE(32n, 64 + 24);
  file.set(object, 64 + 32);
  return new GlobalHeap(new Hdf5Input(memoryBlocks(file), 0));
}

function vlenItem(length: number, address = 64, index = 1): Buffer {
  const bytes = Buffer.alloc(16);
  bytes.writeUInt32LE(length, 0);
  bytes.writeBigUInt64LE(BigInt(address), 4);
  bytes.writeUInt32LE(index, 12);
  return bytes;
}

t.test("strings of variable length come from the heap, empty ones from nowhere", async (t) => {
  const bytes = Buffer.concat([vlenItem(5), vlenItem(0), vlenItem(3), vlenItem(4, 0)]);
  const items = await readItems(heapOf(Buffer.from("Größe")), TEXT, bytes, 4, { ...BUDGET });
  t.same(items, ["Grö\ufffd", "", "Gr\ufffd", ""]);
});

t.test("lists of lists are found level by level", async (t) => {
  const lists: Hdf5Type = { kind: "vlen", size: 16, base: { kind: "vlen", size: 16, base: BYTE } };
  const items = await readItems(heapOf(vlenItem(3)), lists, vlenItem(1), 1, { ...BUDGET });
  t.same(items, [[[3, 0, 0]]]);
});

t.test("an object that is not in the heap is a failure, not an empty string", async (t) => {
  const heap = heapOf(Buffer.from("abc"));
  const wrong = [vlenItem(3, 64, 2), vlenItem(33), vlenItem(3, 8), vlenItem(3, 1000)];
  for (const item of wrong) {
    await t.rejects(async () => readItems(heap, TEXT, item, 1, { ...BUDGET }), { code: "invalid-metadata" });
  }
});

t.test("what one object is repeated to is bounded", async (t) => {
  const heap = heapOf(Buffer.alloc(32, "x"));
  const bytes = Buffer.concat(Array.from({ length: 40 }, () => vlenItem(32)));
  await t.rejects(async () => readItems(heap, TEXT, bytes, 40, { ...BUDGET }), { code: "unsupported" });
  const list: Hdf5Type = { kind: "vlen", size: 16, base: BYTE };
  await t.rejects(async () => readItems(heap, list, bytes, 4, { items: 100, bytes: 1000 }), {
    code: "unsupported",
  });
});

t.test("integers of some bits keep their sign", async (t) => {
  const type: Hdf5Type = { ...BYTE, size: 2, isSigned: true, precision: 12, bitOffset: 3 };
  const stored = [-1, -2048, 2047].map((value) => (value << 3) & 0x7fff);
  const bytes = Buffer.from(Uint16Array.from(stored).buffer);
  t.same(await readItems(heapOf(Buffer.of()), type, bytes, 3, { ...BUDGET }), [-1, -2048, 2047]);
});
