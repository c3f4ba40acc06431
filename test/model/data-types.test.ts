import fc from "fast-check";
import { LosslessNumber } from "lossless-json";
import t from "tap";
import type { JsonValue } from "../../src/json/json-value.js";
import { parseJson } from "../../src/json/parse-json.js";
import { stringifyJson } from "../../src/json/stringify-json.js";
import { parseDataType } from "../../src/model/data-type.js";
import {
  encodeFillItem,
  fillItemToJson,
  parseFillValue,
  readHalf,
  writeHalf,
} from "../../src/model/fill-value.js";
import { askPython } from "../support/clients/ask-python.js";
import { clientMissing } from "../support/clients/require-client.js";

const units = ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as"];
const numbers = "i2 i4 i8 u2 u4 u8 f2 f4 f8 f16 c8 c16 c32 U1 U40 U0".split(" ");
/** Structured types as `.zarray` has them. */
const STRUCTURED = [
  '[["a","<i4"],["b","<f8"]]',
  '[["a",">i4"],["b","<M8[s]"],["c",">m8[25us]"],["d","<M8"]]',
  '[["a",">i4"],["b",[["c","<U3"],["d","|b1"],["e","|i1"],["f","|u1"]]]]',
  '[["a","<f4",[3]],["b","|S3",[2,2]],["c",">U2",5],["d","<f2",1]]',
  '[["a",[["c",">U3"]],[2]]]',
  `[["a b'c","<f4"],["","|V3"]]`,
  '[["x","|O"],["y","<i4"]]',
  '[["n",[["x","|O",[2]]]]]',
  '[["s","|S0"],["u","<U0"],["v","|V0"]]',
];
const dtypes: readonly unknown[] = [
  ..."|b1 |i1 |u1 i1 <i1 >u1 <b1 f4 =f4 |f4 |S5 |S0 >S3 <V4 |V12 |V0 |O O bool int32".split(" "),
  ..."float64 complex64 object ? <M8 >m8 <M8[generic] <M8[1s]".split(" "),
  ...["<M8[25us]", ">M8[7D]", "<m8[100ms]", "<M8[μs]"],
  ...numbers.flatMap((type) => [`<${type}`, `>${type}`]),
  ...units.flatMap((unit) => [`<M8[${unit}]`, `>m8[${unit}]`]),
  ...STRUCTURED.map((text) => JSON.parse(text)),
  [
    ['é"', "<f4"],
    ["t'\"\n\\", ">c8"],
  ],
];

t.test("names, texts and sizes are numpy's", { skip: clientMissing("zarr") }, async (t) => {
  const program = `
import json, sys, numpy as np
def tuples(d):
    return [(k[0], tuples(k[1])) + tuple(tuple(s) if isinstance(s, list) else s for s in k[2:]) for k in d] if isinstance(d, list) else d
out = []
for d in json.load(sys.stdin):
    x = np.dtype(tuples(d))
    out.append([x.name, str(x), x.kind, 0 if x.hasobject else x.itemsize, x.str[0], None if x.fields else x.str])
print(json.dumps(out))`;
  const expected = JSON.parse(askPython(program, dtypes)) as unknown[][];
  dtypes.forEach((dtype, i) => {
    const [name, text, kind, itemSize, byteOrder, zarr] = expected[i] as string[];
    const type = parseDataType(dtype as never);
    const label = JSON.stringify(dtype);
    t.equal(type.numpyName, name, label);
    t.equal(type.numpyStr, text, label);
    t.equal(type.itemSize, itemSize, label);
    t.equal(type.byteOrder, byteOrder, label);
    if (kind !== "V") t.equal(type.kind, kind, label);
    if (zarr !== null) t.equal(type.zarr, zarr, label);
    t.ok(Object.isFrozen(type));
  });
});

t.test("structured types with an object have no fixed size", async (t) => {
  t.match(parseDataType([["x", "|O"]]), { kind: "O", itemSize: 0, numpyName: "void64" });
  t.match(parseDataType([["x", "<i4"]]), { kind: "V", itemSize: 4, byteOrder: "|" });
});

t.test("types nobody knows are refused, saying what was received", async (t) => {
  const unknown = "<f3 <b2 <x4 <M4[s] <M8[parsec] <M8[0s] |S99999999999 <M8[s toString";
  for (const dtype of ["", ...unknown.split(" ")]) {
    t.throws(
      () => parseDataType(dtype),
      { code: "unsupported", message: JSON.stringify(dtype) as never },
      dtype,
    );
  }
  const invalid = [
    ...["7", "null", "{}", "[]", '[["a"]]', '[[1,"<f4"]]', '["a"]', '[["a","<f4",[-1]]]'],
    ...['[["a","<f4"],["a","<f4"]]', '[["a","<f4",[1073741824]]]', '[["","<f4"],["f0","<f4"]]'],
  ];
  for (const text of invalid) {
    t.throws(() => parseDataType(JSON.parse(text)), { code: "invalid-metadata" }, text);
  }
});

const hex = (item: Uint8Array | null) => (item === null ? null : Buffer.from(item).toString("hex"));

/** dtype and an expression for the fill value in Python. */
const written: readonly (readonly [unknown, string])[] = [
  ...["<f2", ">f2", "<f4", ">f4", "<f8", ">f8", "<f16", ">f16"].flatMap((dtype) =>
    ["0", "0.1", "-1.5", "float('nan')", "float('inf')", "-float('inf')", "6e-8", "65504.0", "1e-5"].map(
      (fill) => [dtype, fill] as const,
    ),
  ),
  ...["<f4", "<f8"].flatMap((dtype) =>
    ["9.969209968386869e36", "1e22", "1e-40", "-9999.0"].map((fill) => [dtype, fill] as const),
  ),
  ["<f8", "5e-324"],
  ["<f16", "5e-324"],
  [">f16", "1.7976931348623157e308"],
  ["|b1", "True"],
  ["|b1", "0"],
  ["|i1", "-128"],
  ["|u1", "255"],
  [">i2", "-2"],
  ["<i4", "7"],
  [">i8", "-2**63"],
  ["<u8", "2**64-1"],
  [">u4", "2**32-1"],
  ["<M8[s]", "'NaT'"],
  [">M8[ns]", "'2000-01-01'"],
  ["<m8[25us]", "0"],
  ["<c8", "complex('nan')"],
  [">c16", "1.5-2j"],
  ["<c32", "0.1+1j"],
  ["|S5", "b'ab'"],
  ["|S5", "b'abcde'"],
  ["|S5", "0"],
  ["<U3", "'é😀'"],
  [">U3", "'abc'"],
  ["<U3", "0"],
  ["|V3", "b'abc'"],
  ["|V3", "0"],
  [JSON.parse('[["a","<i4"],["b",">f8"]]'), "np.array((1, 2.5), dtype=dtype).tobytes()"],
  [JSON.parse('[["a","<i4"],["b","|S2",[2]]]'), "0"],
  ["<f4", "None"],
  [[["a", "<i4"]], "None"],
];

t.test(
  "fill values that zarr-python wrote give its items, and its texts",
  { skip: clientMissing("zarr") },
  async (t) => {
    const program = `
import json, sys, numpy as np, zarr
out = []
for d, fill in json.load(sys.stdin):
    dtype = np.dtype([tuple(tuple(x) if isinstance(x, list) else x for x in f) for f in d] if isinstance(d, list) else d)
    store = {}
    z = zarr.create((1,), dtype=dtype, fill_value=eval(fill), store=store)
    text = json.dumps(json.loads(store[".zarray"])["fill_value"], separators=(",", ":"))
    item = None if z.fill_value is None else zarr.open(store)[:].tobytes().hex()
    out.append([text, item])
print(json.dumps(out))`;
    const expected = JSON.parse(askPython(program, written)) as [string, string | null][];
    written.forEach(([dtype, fill], i) => {
      const [text, item] = expected[i] as [string, string | null];
      const type = parseDataType(dtype as never);
      const parsed = parseFillValue(parseJson(text), type);
      const label = `${JSON.stringify(dtype)} ${fill}`;
      t.equal(stringifyJson(parsed.json), text, label);
      if (text.includes("NaN"))
        t.ok(stringifyJson(fillItemToJson(parsed.item as Uint8Array, type)).includes("NaN"));
      // The six bytes behind a long double are whatever was in memory.
      else if (type.numpyName !== "float128" && type.numpyName !== "complex256")
        t.equal(hex(parsed.item), item, label);
      else
        t.equal(
          hex(significant(parsed.item, type.byteOrder)),
          hex(significant(Buffer.from(item as string, "hex"), type.byteOrder)),
          label,
        );
    });
  },
);

function significant(item: Uint8Array | null, byteOrder: string): Uint8Array {
  const bytes = item as Uint8Array;
  return Uint8Array.from(bytes.filter((_, i) => (byteOrder === ">" ? i % 16 >= 6 : i % 16 < 10)));
}

t.test("takes what other writers write", async (t) => {
  const cases: readonly (readonly [unknown, JsonValue, string, JsonValue])[] = [
    ["<i4", new LosslessNumber("-9999.0"), "f1d8ffff", -9999],
    ["|u1", true, "01", 1],
    ["|b1", 1, "01", true],
    ["|b1", new LosslessNumber("0.0"), "00", false],
    ["|S3", 0, "000000", ""],
    ["|S3", "", "000000", ""],
    ["<U1", 0, "00000000", ""],
    ["|V2", 0, "0000", "AAA="],
    [[["a", "<i2"]], 0, "0000", "AAA="],
    ["<f4", Number.NaN, "0000c07f", "NaN"],
    ["<f8", Number.NEGATIVE_INFINITY, "000000000000f0ff", "-Infinity"],
    ["<M8[s]", "NaT", "0000000000000080", -(2n ** 63n)],
    ["<c8", 1, "0000803f00000000", [new LosslessNumber("1.0"), new LosslessNumber("0.0")]],
    ["<f8", new LosslessNumber("-0.0"), "0000000000000080", new LosslessNumber("-0.0")],
    ["|S0", "", "", ""],
  ];
  for (const [dtype, value, item, json] of cases) {
    const parsed = parseFillValue(value, parseDataType(dtype as never));
    t.equal(hex(parsed.item), item, `${JSON.stringify(dtype)} ${stringifyJson(value)}`);
    t.equal(stringifyJson(parsed.json), stringifyJson(json));
  }
});

t.test("the fill value of an object type stays as it is", async (t) => {
  for (const value of ["", 0, null, { a: 1 }]) {
    t.same(parseFillValue(value, parseDataType("|O")), { item: null, json: value });
  }
});

t.test("what does not fit the type is refused, not wrapped", async (t) => {
  const cases: readonly (readonly [string, JsonValue])[] = [
    ["|u1", 256],
    ["|u1", -1],
    ["|i1", 128],
    ["<i8", 2n ** 63n],
    ["<i4", 1.5],
    ["<i4", "NaN"],
    ["<i4", Number.NaN],
    ["<i4", "5"],
    ["<f4", 1e39],
    ["<f2", 65520],
    ["<f8", "nan"],
    ["<f8", "constructor"],
    ["<f8", [1]],
    ["|b1", 2],
    ["|b1", "true"],
    ["<c8", [1]],
    ["<c8", [1, 2, 3]],
    ["|S3", "YWJjZA=="],
    ["|S3", "not base64!"],
    ["|V3", "YWI="],
    ["<U2", "abc"],
    ["<U2", 1],
    ["<M8[s]", "2000-01-01"],
    ["<M8[s]", 1.5],
  ];
  for (const [dtype, value] of cases) {
    t.throws(
      () => parseFillValue(value, parseDataType(dtype)),
      { code: "invalid-metadata", message: /expected fill_value of dtype .* to be .*, received / },
      `${dtype} ${stringifyJson(value)}`,
    );
  }
});

t.test("every item of every type reads back as its own bytes", async () => {
  const types = ["|b1", "|i1", ">i2", "<u4", ">i8", "<u8", "<M8[s]", "|S4", "|V5"].map((dtype) =>
    parseDataType(dtype),
  );
  fc.assert(
    fc.property(fc.constantFrom(...types), fc.uint8Array({ minLength: 8, maxLength: 8 }), (type, bytes) => {
      const item = bytes.slice(0, type.itemSize);
      if (type.kind === "b") item[0] = (item[0] as number) & 1;
      return hex(encodeFillItem(parseJson(stringifyJson(fillItemToJson(item, type))), type)) === hex(item);
    }),
  );
});

t.test("every float of every width reads back as its own bytes", async () => {
  const types = ["<f2", ">f2", "<f4", ">f4", "<f8", ">f8", "<f16", ">f16"].map((dtype) =>
    parseDataType(dtype),
  );
  fc.assert(
    fc.property(
      fc.constantFrom(...types),
      fc.double({ noNaN: true, min: -65504, max: 65504 }),
      (type, value) => {
        const item = encodeFillItem(value, type);
        return hex(encodeFillItem(parseJson(stringifyJson(fillItemToJson(item, type))), type)) === hex(item);
      },
    ),
  );
});

t.test("every half-precision float reads back as its own bits", async (t) => {
  const view = new DataView(new ArrayBuffer(2));
  const wrong: number[] = [];
  for (let bits = 0; bits < 65536; bits++) {
    view.setUint16(0, bits, true);
    const value = readHalf(view, true);
    if (Number.isNaN(value)) continue;
    writeHalf(view, value, true);
    if (view.getUint16(0, true) !== bits) wrong.push(bits);
  }
  t.same(wrong, []);
});

t.test("halves round to even", async (t) => {
  const view = new DataView(new ArrayBuffer(2));
  for (const [value, bits] of [
    [2049, 0x6800],
    [2051, 0x6802],
    [65519, 0x7bff],
    [65520, 0x7c00],
    [2 ** -25, 0],
    [2 ** -25 * 1.5, 1],
    [-0, 0x8000],
  ] as const) {
    writeHalf(view, value, false);
    t.equal(view.getUint16(0), bits, String(value));
  }
});
