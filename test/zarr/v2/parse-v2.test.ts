import t from "tap";
import type { JsonValue } from "../../../src/json/json-value.js";
import { assertV2Group, parseV2Array, parseV2Attributes } from "../../../src/zarr/v2.js";

const place = { name: "v", path: "g/v", files: { directory: "/store/g/v", root: "/store" } };
const document = {
  zarr_format: 2,
  shape: [4, 6],
  chunks: [2, 3],
  dtype: "<f4",
  compressor: { id: "zlib", level: 1 },
  fill_value: "NaN",
  order: "C",
  filters: null,
};
const parse = (changes: Record<string, JsonValue>, zattrs?: JsonValue) =>
  parseV2Array(place, { ...document, ...changes }, zattrs);

t.test("an array is what its documents say", async (t) => {
  const { array, warnings } = parse({}, { units: "K", _ARRAY_DIMENSIONS: ["y", "x"] });
  t.match(array, {
    name: "v",
    path: "g/v",
    shape: [4, 6],
    chunkShape: [2, 3],
    axisOrder: [0, 1],
    codecs: [{ id: "zlib", level: 1 }],
    compressorCount: 1,
    fill: { served: "NaN", absentIsServed: true },
    dimNames: ["y", "x"],
    chunks: {
      kind: "files",
      directory: "/store/g/v",
      root: "/store",
      keyEncoding: { name: "v2", separator: "." },
    },
  });
  t.same(array.attrs, { units: "K" });
  t.same(warnings, []);
});

t.test("F order is axes reversed", async (t) => {
  t.same(parse({ order: "F" }).array.axisOrder, [1, 0]);
});

t.test("filters come before the compressor", async (t) => {
  const filters = [
    { id: "delta", dtype: "<f4" },
    { id: "shuffle", elementsize: 4 },
  ];
  const { array } = parse({ filters });
  t.same(
    array.codecs.map((codec) => codec.id),
    ["delta", "shuffle", "zlib"],
  );
  const bare = parse({ filters, compressor: null }).array;
  t.same(bare.codecs, filters);
  t.equal(bare.compressorCount, 0);
  t.same(parse({ filters: [], compressor: null }).array.codecs, []);
});

t.test("both dimension separators are read", async (t) => {
  t.match(parse({ dimension_separator: "/" }).array.chunks, { keyEncoding: { separator: "/" } });
  t.throws(() => parse({ dimension_separator: "-" }), {
    message: /dimension_separator to be "\." or "\/", received "-"/,
  });
});

t.test("chunks of length 0 are right for axes of length 0 only", async (t) => {
  t.same(parse({ shape: [0, 6], chunks: [0, 3] }).array.chunkShape, [1, 3]);
  t.throws(() => parse({ chunks: [0, 3] }), { message: /chunks to be positive integers, received \[0,3\]/ });
});

t.test("a scalar has no axes", async (t) => {
  t.match(parse({ shape: [], chunks: [] }, { _ARRAY_DIMENSIONS: [] }).array, {
    shape: [],
    chunkShape: [],
    dimNames: [],
  });
});

t.test(
  "dimension names that name nothing are left out with a warning, and never stay an attribute",
  async (t) => {
    for (const names of [["x"], ["x", "x"], ["x", 1], "yx", null]) {
      const { array, warnings } = parse({}, { _ARRAY_DIMENSIONS: names as JsonValue });
      t.equal(array.dimNames, null);
      t.same(array.attrs, {});
      t.equal(warnings.length, 1);
    }
    t.equal(parse({}).array.dimNames, null);
  },
);

t.test("object arrays keep their fill value, and need a codec for objects", async (t) => {
  const { array } = parse({ dtype: "|O", fill_value: "", filters: [{ id: "vlen-utf8" }] });
  t.match(array, { dataType: { kind: "O" }, fill: { served: "", item: null } });
  t.throws(() => parse({ dtype: "|O", fill_value: "" }), { message: /a codec that encodes objects/ });
});

t.test("whatever is missing or wrong is named", async (t) => {
  for (const key of ["shape", "chunks", "dtype", "compressor", "fill_value", "order", "filters"]) {
    const { [key]: _left, ...rest } = document as Record<string, JsonValue>;
    t.throws(() => parseV2Array(place, rest, undefined), {
      code: "invalid-metadata",
      message: `.zarray: expected the key "${key}", received nothing`,
    });
  }
  const cases: readonly (readonly [Record<string, JsonValue>, RegExp])[] = [
    [{ zarr_format: 1 }, /zarr_format to be 2, received 1/],
    [{ shape: "4" }, /shape to be a list of non-negative integers, received "4"/],
    [{ shape: [4, -1] }, /non-negative integers/],
    [{ shape: [4, 2n ** 60n] }, /received \[4,1152921504606846976\]/],
    [{ chunks: [2] }, /chunks to be a list of 2 non-negative integers, received \[2\]/],
    [{ dtype: "<f3" }, /\.zarray: expected dtype/],
    [{ fill_value: "x" }, /\.zarray: expected fill_value of dtype float32/],
    [{ order: "A" }, /order to be "C" or "F", received "A"/],
    [{ compressor: "zlib" }, /compressor to be an object with the id of a codec/],
    [{ compressor: { level: 1 } }, /compressor to be an object with the id/],
    [{ filters: {} }, /filters to be a list/],
    [{ filters: [null] }, /every filter to be an object/],
    [{ filters: [{ id: "repack" }] }, /every filter to be a codec of Zarr, received "repack"/],
    [{ compressor: { id: "hdf5-filters" } }, /compressor to be a codec of Zarr, received "hdf5-filters"/],
  ];
  for (const [changes, message] of cases)
    t.throws(
      () => parse(changes),
      { message },
      JSON.stringify(changes, (_, v) => (typeof v === "bigint" ? String(v) : v)),
    );
  t.throws(() => parseV2Array(place, [], undefined), {
    message: ".zarray: expected the document to be an object, received []",
  });
  t.throws(() => parse({}, []), { message: /\.zattrs: expected the document to be an object/ });
});

t.test("groups are checked the same way", async (t) => {
  assertV2Group({ zarr_format: 2 });
  t.throws(() => assertV2Group({ zarr_format: 3 }), {
    message: ".zgroup: expected zarr_format to be 2, received 3",
  });
  t.same(parseV2Attributes(undefined), {});
  t.throws(() => parseV2Attributes(1), { code: "invalid-metadata" });
});
