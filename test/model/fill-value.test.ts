import fc from "fast-check";
import { LosslessNumber } from "lossless-json";
import t from "tap";
import type { JsonValue } from "../../src/json/json-value.js";
import { parseJson } from "../../src/json/parse-json.js";
import { stringifyJson } from "../../src/json/stringify-json.js";
import { parseDataType } from "../../src/model/data-type.js";
import { encodeFillItem, fillItemToJson, parseFillValue } from "../../src/model/fill-value.js";
import { askPython } from "../support/clients/ask-python.js";
import { clientMissing } from "../support/clients/require-client.js";

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
  [
    [
      ["a", "<i4"],
      ["b", ">f8"],
    ],
    "np.array((1, 2.5), dtype=dtype).tobytes()",
  ],
  [
    [
      ["a", "<i4"],
      ["b", "|S2", [2]],
    ],
    "0",
  ],
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

t.test("texts read back, in both byte orders", async () => {
  fc.assert(
    fc.property(
      fc.constantFrom("<U8", ">U8"),
      fc.string({ unit: "grapheme-ascii", maxLength: 8 }),
      (dtype, text) => {
        const type = parseDataType(dtype);
        return fillItemToJson(encodeFillItem(text, type), type) === text;
      },
    ),
  );
});
