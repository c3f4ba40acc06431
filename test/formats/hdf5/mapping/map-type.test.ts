import t from "tap";
import { innerShapeOf, mapType } from "../../../../src/formats/hdf5/datatypes.js";
import type { Hdf5Type } from "../../../../src/formats/hdf5/hdf5-model.js";
import { FLOAT32, FLOAT64, INT32, TEXT } from "./model.js";

const BYTE: Hdf5Type = {
  ...{ kind: "integer", size: 1, isSigned: true, byteOrder: "<", precision: 8, bitOffset: 0 },
};

function compound(size: number, ...fields: readonly (readonly [string, number, Hdf5Type])[]): Hdf5Type {
  return { kind: "compound", size, fields: fields.map(([name, offset, type]) => ({ name, offset, type })) };
}

t.test("numbers, strings and bytes have their numpy types", async (t) => {
  t.equal(mapType({ ...INT32, byteOrder: ">" } as Hdf5Type).dtype, ">i4");
  t.equal(mapType(BYTE).dtype, "|i1");
  t.equal(mapType({ ...FLOAT32, size: 2 } as Hdf5Type).dtype, "<f2");
  t.match(mapType(TEXT), { dtype: "|O", isText: true, storedSize: 16 });
  t.equal(mapType({ kind: "opaque", size: 3, tag: "any" }).dtype, "|V3");
  t.equal(mapType({ kind: "opaque", size: 8, tag: "NUMPY:<M8[s]" }).dtype, "<M8[s]");
});

t.test("strings that are not padded as numpy's go through a codec", async (t) => {
  const string = (size: number, padding: "null-padded" | "null-terminated" | "space-padded") =>
    mapType({ kind: "string", size, padding, charset: "ascii" });
  t.same(string(4, "null-padded").codecs, []);
  t.same(string(1, "null-terminated").codecs, [], "characters of netCDF");
  t.same(string(4, "space-padded").codecs, [{ id: "hdf5-text", itemSize: 4, padding: "space-padded" }]);
});

t.test("complex numbers are those of HDF5 2.0 and of h5py", async (t) => {
  t.equal(mapType({ kind: "complex", size: 8, base: FLOAT32 }).dtype, "<c8");
  t.equal(mapType(compound(16, ["r", 0, FLOAT64], ["i", 8, FLOAT64])).dtype, "<c16");
  t.not(mapType(compound(16, ["x", 0, FLOAT64], ["i", 8, FLOAT64])).dtype, "<c16");
  t.throws(() => mapType({ kind: "complex", size: 8, base: INT32 }), { code: "unsupported" });
});

t.test(
  "enumerations are integers with the names of their values, h5py's truth values are bool",
  async (t) => {
    const members = (names: readonly string[]) => names.map((name, i) => ({ name, value: BigInt(i) }));
    const clouds = mapType({
      kind: "enum",
      size: 1,
      base: BYTE,
      members: members(["clear", "cumulo nimbus"]),
    });
    t.match(clouds, { dtype: "|i1", flags: { flag_values: [0, 1], flag_meanings: "clear cumulo_nimbus" } });
    const truth = mapType({ kind: "enum", size: 1, base: BYTE, members: members(["FALSE", "TRUE"]) });
    t.match(truth, { dtype: "|b1", flags: {} });
  },
);

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
    itemSize: 22,
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

t.test("an array type adds axes", async (t) => {
  const type: Hdf5Type = { kind: "array", size: 24, base: INT32, shape: [2, 3] };
  t.same(innerShapeOf(type), [2, 3]);
  t.match(mapType(type), { dtype: "<i4", storedSize: 4 });
});

t.test("what Zarr has no type for is refused by name", async (t) => {
  const refuse = (type: Hdf5Type, message: RegExp) =>
    t.throws(() => mapType(type), { code: "unsupported", message });
  refuse({ kind: "vlen", size: 16, base: INT32 }, /variable-length lists/);
  refuse({ kind: "object-reference", size: 8 }, /object references/);
  refuse({ kind: "other", size: 8, description: "times" }, /times/);
  refuse({ ...INT32, size: 3, precision: 24 } as Hdf5Type, /integers of 3 bytes/);
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
