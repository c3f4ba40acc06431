import t from "tap";
import { parseJson } from "../../src/json/parse-json.js";
import { stringifyJson } from "../../src/json/stringify-json.js";
import { parseDataType } from "../../src/model/data-type.js";
import { askPython } from "../support/clients/ask-python.js";
import { clientMissing } from "../support/clients/require-client.js";

const units = ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as"];
const numbers = [
  "i2",
  "i4",
  "i8",
  "u2",
  "u4",
  "u8",
  "f2",
  "f4",
  "f8",
  "f16",
  "c8",
  "c16",
  "c32",
  "U1",
  "U40",
  "U0",
];
const dtypes: readonly unknown[] = [
  ...[
    "|b1",
    "|i1",
    "|u1",
    "i1",
    "<i1",
    ">u1",
    "<b1",
    "f4",
    "=f4",
    "|f4",
    "|S5",
    "|S0",
    ">S3",
    "<V4",
    "|V12",
    "|V0",
  ],
  ...[
    "|O",
    "O",
    "bool",
    "int32",
    "float64",
    "complex64",
    "object",
    "?",
    "<M8",
    ">m8",
    "<M8[generic]",
    "<M8[1s]",
  ],
  ...["<M8[25us]", ">M8[7D]", "<m8[100ms]", "<M8[μs]"],
  ...numbers.flatMap((type) => [`<${type}`, `>${type}`]),
  ...units.flatMap((unit) => [`<M8[${unit}]`, `>m8[${unit}]`]),
  [
    ["a", "<i4"],
    ["b", "<f8"],
  ],
  [
    ["a", ">i4"],
    ["b", "<M8[s]"],
    ["c", ">m8[25us]"],
    ["d", "<M8"],
  ],
  [
    ["a", ">i4"],
    [
      "b",
      [
        ["c", "<U3"],
        ["d", "|b1"],
        ["e", "|i1"],
        ["f", "|u1"],
      ],
    ],
  ],
  [
    ["a", "<f4", [3]],
    ["b", "|S3", [2, 2]],
    ["c", ">U2", 5],
    ["d", "<f2", 1],
  ],
  [["a", [["c", ">U3"]], [2]]],
  [
    ["a b'c", "<f4"],
    ["", "|V3"],
  ],
  [
    ['é"', "<f4"],
    ["t'\"\n\\", ">c8"],
  ],
  [
    ["x", "|O"],
    ["y", "<i4"],
  ],
  [["n", [["x", "|O", [2]]]]],
  [
    ["s", "|S0"],
    ["u", "<U0"],
    ["v", "|V0"],
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

t.test("a type read from what was written is the same type", async (t) => {
  for (const dtype of dtypes) {
    const type = parseDataType(dtype as never);
    t.same(parseDataType(parseJson(stringifyJson(type.zarr))), type);
  }
});

t.test("times say their unit", async (t) => {
  t.equal(parseDataType("<M8[ns]").timeUnit, "ns");
  t.equal(parseDataType(">m8[25us]").timeUnit, "25us");
  t.equal(parseDataType("<M8").timeUnit, undefined);
  t.equal(parseDataType("<f4").timeUnit, undefined);
});

t.test("structured types with an object have no fixed size", async (t) => {
  t.match(parseDataType([["x", "|O"]]), { kind: "O", itemSize: 0, numpyName: "void64" });
  t.match(parseDataType([["x", "<i4"]]), { kind: "V", itemSize: 4, byteOrder: "|" });
});

t.test("types nobody knows are refused, saying what was received", async (t) => {
  for (const dtype of [
    "<f3",
    "<b2",
    "<x4",
    "",
    "<M4[s]",
    "<M8[parsec]",
    "<M8[0s]",
    "|S99999999999",
    "<M8[s",
    "toString",
  ]) {
    t.throws(
      () => parseDataType(dtype),
      { code: "unsupported", message: JSON.stringify(dtype) as never },
      dtype,
    );
  }
  const invalid = [
    7,
    null,
    {},
    [],
    [["a"]],
    [[1, "<f4"]],
    [
      ["a", "<f4"],
      ["a", "<f4"],
    ],
    [["a", "<f4", [-1]]],
    ["a"],
  ];
  for (const dtype of [
    ...invalid,
    [["a", "<f4", [2 ** 30]]],
    [
      ["", "<f4"],
      ["f0", "<f4"],
    ],
  ]) {
    t.throws(() => parseDataType(dtype as never), { code: "invalid-metadata" }, JSON.stringify(dtype));
  }
});
