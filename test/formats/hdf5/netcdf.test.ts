import t from "tap";
import { runNow } from "../../../src/event-loop/cooperative-task.js";
import type { Hdf5Attribute, Hdf5Group, Hdf5Type } from "../../../src/formats/hdf5/hdf5-model.js";
import { axisSteps, mapAttributes, netcdfFileSteps, pathOf } from "../../../src/formats/hdf5/netcdf.js";
import { stringifyJson } from "../../../src/json/stringify-json.js";
import {
  attribute,
  dataset,
  FLOAT32,
  FLOAT64,
  fileOf,
  group,
  INT32,
  scale,
  scales,
  TEXT,
  text,
} from "./model.js";

/** Dimensions of all variables by path, as `x=3 t=5`, and the warnings. */
function nameAll(root: Hdf5Group): { dims: Record<string, string>; warnings: readonly string[] } {
  const file = runNow(netcdfFileSteps(fileOf(root)));
  const warnings = runNow(axisSteps(file));
  const dims: Record<string, string> = {};
  for (const { variables } of file.groups) {
    for (const variable of variables) {
      dims[pathOf(variable)] = variable.dims.map((one) => `${one?.name}=${one?.length}`).join(" ");
    }
  }
  return { dims, warnings };
}

t.test("of two scales on an axis, the last one counts", async (t) => {
  const root = group("/", {
    a: dataset(1, [3], scale()),
    b: dataset(2, [3], scale()),
    data: dataset(3, [3], scales([1, 2])),
  });
  const { dims, warnings } = nameAll(root);
  t.equal(dims.data, "b=3");
  t.match(warnings, [/^'data': axis 0 has 2 scales; the last one is taken$/]);
});

t.test(
  "netCDF's numbers of dimensions count before references, and hidden scales are no variables",
  async (t) => {
    const coordinates = { _Netcdf4Coordinates: attribute(INT32, [5, 7]) };
    const root = group("/", {
      t: dataset(1, [4], scale(5, true)),
      x: dataset(2, [3], scale(7)),
      _nc4_non_coord_t: dataset(3, [3], scales([2])),
      lat: dataset(4, [4, 3], { ...scale(9), ...coordinates }),
      data: dataset(6, [4, 3], coordinates),
    });
    t.same(nameAll(root).dims, { x: "x=3", t: "x=3", lat: "t=4 x=3", data: "t=4 x=3" });
  },
);

t.test("types that netCDF leaves out do not change the numbers of others", async (t) => {
  const compound = { kind: "compound", size: 8, fields: [{ name: "a", offset: 0, type: FLOAT64 }] } as const;
  const root = group("/", { a: dataset(1, [7], {}, { type: compound }), b: dataset(2, [3]) });
  t.same(nameAll(root).dims, { a: "phony_dim_1=7", b: "phony_dim_0=3" });
});

t.test("a scale of another length does not count", async (t) => {
  const root = group("/", { x: dataset(1, [3], scale()), wrong: dataset(2, [4], scales([1])) });
  const { dims, warnings } = nameAll(root);
  t.same(dims.wrong, "phony_dim_1=4");
  t.match(warnings, [/^'wrong': the scale of axis 0 does not fit it$/]);
});

t.test("two dimensions of one name and two lengths in a group are told apart", async (t) => {
  const root = group("/", {}, [
    group("/a", { x: dataset(1, [5], scale()) }),
    group("/b", { x: dataset(2, [3], scale()), y: dataset(3, [5], scales([1])) }),
  ]);
  const { dims, warnings } = nameAll(root);
  t.same(dims, { "a/x": "x=5", "b/x": "x=3", "b/y": "phony_dim_2=5" });
  t.match(warnings, [/^'b\/y': another dimension of the group has the name of axis 0$/]);
});

const FIXED: Hdf5Type = { kind: "string", size: 4, padding: "null-padded", charset: "ascii" };
const UINT64: Hdf5Type = {
  ...{ kind: "integer", size: 8, isSigned: false, byteOrder: "<", precision: 64, bitOffset: 0 },
};
const TRUTH: Hdf5Type = {
  kind: "enum",
  size: 1,
  base: { kind: "integer", size: 1, isSigned: true, byteOrder: "<", precision: 8, bitOffset: 0 },
  members: [
    { name: "FALSE", value: 0n },
    { name: "TRUE", value: 1n },
  ],
};

/** The JSON of one attribute; a problem if it is left out. */
function mapOne(one: Hdf5Attribute): string {
  const problems: string[] = [];
  const { a } = mapAttributes(new Map([["a", one]]), problems);
  return a === undefined ? (problems[0] ?? "nothing") : stringifyJson(a);
}

t.test("numbers keep their digits and their kind", async (t) => {
  t.equal(mapOne(attribute(FLOAT64, [1])), "1.0", "a float without fraction");
  t.equal(mapOne(attribute(FLOAT64, [-0], [])), "-0.0");
  t.equal(mapOne(attribute(FLOAT32, [Math.fround(0.1)])), "0.10000000149011612", "the exact value");
  t.equal(mapOne(attribute(FLOAT64, [1, 0.5, Number.NaN])), '[1.0,0.5,"NaN"]');
  t.equal(mapOne(attribute(UINT64, [2n ** 64n - 1n])), "18446744073709551615");
  t.equal(mapOne(attribute(UINT64, [5n, 6n])), "[5,6]");
  t.equal(mapOne(attribute(TRUTH, [1], [])), "true");
});

t.test("a list of one value is that value, and what has no items an empty list or text", async (t) => {
  t.equal(mapOne(attribute(INT32, [7])), "7");
  t.equal(mapOne(attribute(TEXT, ["x"])), '"x"');
  t.equal(mapOne(attribute(INT32, [])), "[]");
  t.equal(mapOne(attribute(TEXT, [], null)), "[]");
  t.equal(mapOne(attribute(FIXED, [], null)), '""');
  t.equal(mapOne(attribute(INT32, [], null)), "[]");
});

t.test("numbers of several axes are nested, texts are not", async (t) => {
  t.equal(mapOne(attribute(INT32, [1, 2, 3, 4, 5, 6], [2, 3])), "[[1,2,3],[4,5,6]]");
  t.equal(mapOne(attribute(INT32, [1, 2, 3], [1, 3])), "[1,2,3]");
  t.equal(mapOne(attribute(FIXED, ["a", "b", "c", "d"], [2, 2])), '["a","b","c","d"]');
  t.equal(mapOne(attribute(INT32, [], [0, 1_000_000_000, 1_000_000_000])), "[]");
  const pairs: Hdf5Type = { kind: "array", size: 8, base: INT32, shape: [2] };
  t.equal(
    mapOne(
      attribute(pairs, [
        [1, 2],
        [3, 4],
      ]),
    ),
    "[[1,2],[3,4]]",
  );
});

t.test("compounds are lists", async (t) => {
  const fields = [
    { name: "b", offset: 0, type: INT32 },
    { name: "a", offset: 4, type: FLOAT64 },
  ];
  const compound: Hdf5Type = { kind: "compound", size: 12, fields };
  const item = {
    fields: new Map([
      ["b", 1],
      ["a", 2],
    ]),
  };
  t.equal(mapOne(attribute(compound, [item], [])), "[1,2.0]");
});

t.test("bookkeeping is no attribute, and what JSON cannot say is left out with a warning", async (t) => {
  const problems: string[] = [];
  const attrs = mapAttributes(
    new Map([
      ["CLASS", text("DIMENSION_SCALE")],
      ["_Netcdf4Dimid", attribute(INT32, [0], [])],
      ["_NCProperties", text("version=2")],
      ["units", text("m")],
      ["reference", attribute({ kind: "object-reference", size: 8 }, [{ address: 5 }], [])],
      ["bytes", attribute({ kind: "opaque", size: 2, tag: "" }, [new Uint8Array(2)], [])],
      ["unread", { type: INT32, shape: [1], items: undefined, problem: "the heap is damaged" }],
      ["__proto__", text("a key like others")],
    ]),
    problems,
  );
  t.same(Object.keys(attrs), ["units", "__proto__"]);
  t.match(problems, [
    /"reference" is left out: references/,
    /"bytes".*opaque/,
    /"unread".*the heap is damaged/,
  ]);
});
