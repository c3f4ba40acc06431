import t from "tap";
import { readHeapItems } from "../../../src/formats/hdf5/attributes.js";
import { ByteCursor, Hdf5Input } from "../../../src/formats/hdf5/bytes.js";
import { mapType, parseDatatype } from "../../../src/formats/hdf5/datatypes.js";
import type { Hdf5Type } from "../../../src/formats/hdf5/hdf5-model.js";
import { GlobalHeap } from "../../../src/formats/hdf5/heaps.js";
import { memoryBlocks } from "../memory-blocks.js";
import { FLOAT64, INT32, TEXT } from "./model.js";

const FLOAT_32 = [0x11, 0x20, 31, 0, 4, 0, 0, 0, 0, 0, 32, 0, 23, 8, 0, 23, 127, 0, 0, 0];
const INT_16 = [0x10, 0x08, 0, 0, 2, 0, 0, 0, 0, 0, 16, 0];

function parse(bytes: readonly number[]): Hdf5Type {
  const cursor = new ByteCursor(Uint8Array.from(bytes), "datatype");
  const type = parseDatatype(cursor);
  t.equal(cursor.left, 0, "everything is parsed");
  return type;
}

t.test("bit fields are integers without a sign", async (t) => {
  const common = { kind: "integer", size: 2, isSigned: false, precision: 16, bitOffset: 0 };
  t.same(parse(INT_16.with(0, 0x14)), { ...common, byteOrder: "<" });
  t.same(parse(INT_16.with(0, 0x14).with(1, 1)), { ...common, byteOrder: ">" });
});

t.test("floats that are not IEEE 754 are described", async (t) => {
  const bfloat16 = [0x11, 0x20, 15, 0, 2, 0, 0, 0, 0, 0, 16, 0, 7, 8, 0, 7, 127, 0, 0, 0];
  t.match(parse(bfloat16), { kind: "other", size: 2, description: /8 bits of exponent and 7 of mantissa/ });
  // VAX order: bits 0 and 6.
  t.match(parse(FLOAT_32.with(1, 0x61)), { kind: "other", size: 4 });
});

t.test("types that contradict themselves are refused", async (t) => {
  const refused: Record<string, number[]> = {
    "no bytes": INT_16.with(4, 0),
    "more bits than bytes": INT_16.with(10, 17),
    "a field behind the end": [0x36, 1, 0, 0, 2, 0, 0, 0, 0x78, 0, 1, ...INT_16],
    "an array of another size": [0x3a, 0, 0, 0, 7, 0, 0, 0, 1, 3, 0, 0, 0, ...INT_16],
    "an unknown class": [0x1c, 0, 0, 0, 1, 0, 0, 0],
    "an unknown version": [0x61, 0, 0, 0, 1, 0, 0, 0],
    "an end before it is over": INT_16.slice(0, -1),
    "a thousand lists": Array.from({ length: 1000 }, () => [0x39, 0, 0, 0, 16, 0, 0, 0]).flat(),
  };
  for (const [name, bytes] of Object.entries(refused)) {
    t.throws(() => parse(bytes), { code: "invalid-metadata" }, name);
  }
});

const BYTE: Hdf5Type = {
  ...{ kind: "integer", size: 1, isSigned: true, byteOrder: "<", precision: 8, bitOffset: 0 },
};

function compound(size: number, ...fields: readonly (readonly [string, number, Hdf5Type])[]): Hdf5Type {
  return { kind: "compound", size, fields: fields.map(([name, offset, type]) => ({ name, offset, type })) };
}

t.test("strings that are not padded as numpy's go through a codec", async (t) => {
  const string = (size: number, padding: "null-padded" | "null-terminated" | "space-padded") =>
    mapType({ kind: "string", size, padding, charset: "ascii" });
  t.same(string(4, "null-padded").codecs, []);
  t.same(string(1, "null-terminated").codecs, [], "characters of netCDF");
  t.same(string(4, "space-padded").codecs, [{ id: "hdf5-text", itemSize: 4, padding: "space-padded" }]);
});

t.test("complex numbers are those of h5py; those of HDF5 2.0 are refused by name", async (t) => {
  t.equal(mapType(compound(16, ["r", 0, FLOAT64], ["i", 8, FLOAT64])).dtype, "<c16");
  t.not(mapType(compound(16, ["x", 0, FLOAT64], ["i", 8, FLOAT64])).dtype, "<c16");
  const native = parse([0x5b, 1, 0, 0, 8, 0, 0, 0, ...FLOAT_32]);
  t.throws(() => mapType(native), { code: "unsupported", message: /complex numbers of HDF5 2.0/ });
});

t.test("compounds without padding pass, padding is taken out", async (t) => {
  t.same(mapType(compound(12, ["a", 0, INT32], ["b", 4, FLOAT64])).codecs, []);
  t.match(mapType(compound(12, ["b", 4, FLOAT64], ["a", 0, INT32])).codecs, [
    {
      ...{ id: "repack", itemSize: 12 },
      pieces: [
        [4, 8, 1],
        [0, 4, 1],
      ],
    },
  ]);
  const inner = compound(16, ["c", 0, BYTE], ["d", 8, FLOAT64]);
  const arrays: Hdf5Type = { kind: "array", size: 32, base: inner, shape: [2] };
  t.match(mapType(compound(48, ["a", 0, INT32], ["b", 8, arrays])), {
    dtype: [
      ["a", "<i4"],
      [
        "b",
        [
          ["c", "|i1"],
          ["d", "<f8"],
        ],
        [2],
      ],
    ],
    storedSize: 48,
    codecs: [
      {
        id: "repack",
        itemSize: 48,
        pieces: [
          [0, 4, 1],
          [8, 1, 1],
          [16, 9, 1],
          [32, 8, 1],
        ],
      },
    ],
  });
});

t.test("numbers of compounds become little-endian, which xarray can read", async (t) => {
  const big = { ...FLOAT64, byteOrder: ">" } as Hdf5Type;
  t.match(mapType(compound(16, ["a", 0, big], ["b", 8, FLOAT64])), {
    dtype: [
      ["a", "<f8"],
      ["b", "<f8"],
    ],
    codecs: [
      {
        pieces: [
          [0, 8, 8],
          [8, 8, 1],
        ],
      },
    ],
  });
  t.match(
    mapType(
      compound(8, ["r", 0, { ...big, size: 4 } as Hdf5Type], ["i", 4, { ...big, size: 4 } as Hdf5Type]),
    ),
    {
      ...{ dtype: ">c8", codecs: [] },
    },
  );
});

t.test("what Zarr has no type for is refused by name", async (t) => {
  const refuse = (type: Hdf5Type, message: RegExp) =>
    t.throws(() => mapType(type), { code: "unsupported", message });
  refuse({ kind: "vlen", size: 16, base: INT32 }, /variable-length lists/);
  refuse({ kind: "object-reference", size: 8 }, /object references/);
  refuse({ kind: "other", size: 8, description: "times" }, /times/);
  refuse(compound(16, ["a", 0, TEXT]), /strings inside compounds/);
  refuse(compound(4, ["a", 0, { ...INT32, precision: 12 } as Hdf5Type]), /12 bits/);
  const many: Hdf5Type = {
    kind: "array",
    size: 2 ** 20,
    base: compound(16, ["a", 0, BYTE]),
    shape: [2 ** 16],
  };
  refuse(compound(2 ** 20, ["a", 0, many]), /4096 pieces/);
});

const VLEN_TEXT: Hdf5Type = { kind: "vlen-string", size: 16, charset: "utf-8" };
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
  const items = await readHeapItems(heapOf(Buffer.from("Größe")), VLEN_TEXT, bytes, 4, { ...BUDGET });
  t.same(items, ["Grö\ufffd", "", "Gr\ufffd", ""]);
});

t.test("lists of lists are found level by level", async (t) => {
  const lists: Hdf5Type = { kind: "vlen", size: 16, base: { kind: "vlen", size: 16, base: BYTE } };
  const items = await readHeapItems(heapOf(vlenItem(3)), lists, vlenItem(1), 1, { ...BUDGET });
  t.same(items, [[[3, 0, 0]]]);
});

t.test("an object that is not in the heap is a failure, not an empty string", async (t) => {
  const heap = heapOf(Buffer.from("abc"));
  const wrong = [vlenItem(3, 64, 2), vlenItem(33), vlenItem(3, 8), vlenItem(3, 1000)];
  for (const item of wrong) {
    await t.rejects(async () => readHeapItems(heap, VLEN_TEXT, item, 1, { ...BUDGET }), {
      code: "invalid-metadata",
    });
  }
});

t.test("what one object is repeated to is bounded", async (t) => {
  const heap = heapOf(Buffer.alloc(32, "x"));
  const bytes = Buffer.concat(Array.from({ length: 40 }, () => vlenItem(32)));
  await t.rejects(async () => readHeapItems(heap, VLEN_TEXT, bytes, 40, { ...BUDGET }), {
    code: "unsupported",
  });
  const list: Hdf5Type = { kind: "vlen", size: 16, base: BYTE };
  await t.rejects(async () => readHeapItems(heap, list, bytes, 4, { items: 100, bytes: 1000 }), {
    code: "unsupported",
  });
});

t.test("integers of some bits keep their sign", async (t) => {
  const type: Hdf5Type = { ...BYTE, size: 2, isSigned: true, precision: 12, bitOffset: 3 };
  const stored = [-1, -2048, 2047].map((value) => (value << 3) & 0x7fff);
  const bytes = Buffer.from(Uint16Array.from(stored).buffer);
  t.same(await readHeapItems(heapOf(Buffer.of()), type, bytes, 3, { ...BUDGET }), [-1, -2048, 2047]);
});
