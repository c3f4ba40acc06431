import t from "tap";
import { ByteCursor } from "../../../src/formats/hdf5/bytes.js";
import { parseDatatype } from "../../../src/formats/hdf5/datatypes.js";
import type { Hdf5Type } from "../../../src/formats/hdf5/hdf5-model.js";

const FLOAT_32 = [0x11, 0x20, 31, 0, 4, 0, 0, 0, 0, 0, 32, 0, 23, 8, 0, 23, 127, 0, 0, 0];
const INT_16 = [0x10, 0x08, 0, 0, 2, 0, 0, 0, 0, 0, 16, 0];

function parse(bytes: readonly number[]): Hdf5Type {
  const cursor = new ByteCursor(Uint8Array.from(bytes), "datatype");
  const type = parseDatatype(cursor);
  t.equal(cursor.left, 0, "everything is parsed");
  return type;
}

t.test("complex numbers of HDF5 2.0 have two parts", async (t) => {
  const base = { kind: "float", size: 4, byteOrder: "<" };
  t.same(parse([0x5b, 1, 0, 0, 8, 0, 0, 0, ...FLOAT_32]), { kind: "complex", size: 8, base });
  t.throws(() => parse([0x5b, 1, 0, 0, 9, 0, 0, 0, ...FLOAT_32]), { code: "invalid-metadata" });
});

t.test("bit fields are integers without a sign", async (t) => {
  const common = { kind: "integer", size: 2, isSigned: false, precision: 16, bitOffset: 0 };
  t.same(parse(INT_16.with(0, 0x14)), { ...common, byteOrder: "<" });
  t.same(parse(INT_16.with(0, 0x14).with(1, 1)), { ...common, byteOrder: ">" });
});

t.test("fields of the oldest compounds may be arrays", async (t) => {
  const field = [0x78, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
  const lengths = [2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
  const base = { kind: "integer", size: 2, isSigned: true, byteOrder: "<", precision: 16, bitOffset: 0 };
  t.same(parse([0x16, 1, 0, 0, 12, 0, 0, 0, ...field, ...lengths, ...INT_16]), {
    kind: "compound",
    size: 12,
    fields: [{ name: "x", offset: 0, type: { kind: "array", size: 12, base, shape: [2, 3] } }],
  });
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
