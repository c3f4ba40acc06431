import t from "tap";
import type { DatasetConfig } from "../../src/config/config.js";
import { createSnapshot } from "../../src/dataset/snapshot.js";
import { storedArray, storedTree } from "../support/datasets/fake-source.js";

function config(more: Partial<DatasetConfig> = {}): DatasetConfig {
  return { id: "d", location: "here", immutable: false, encoding: {}, variables: {}, ...more };
}

const tree = storedTree([
  {
    path: "/",
    attrs: { title: "x" },
    arrays: [storedArray("a"), storedArray("b", { codecs: [{ id: "mystery" }] })],
  },
  { path: "/g", attrs: {}, arrays: [storedArray("g/a", { dimNames: null })] },
]);

t.test("arrays without an encoding are served as stored", async (t) => {
  const { arrays, refused } = createSnapshot(config(), tree, "no-store");
  t.same(refused, []);
  t.same([...arrays.keys()], ["a", "b", "g/a"]);
  t.equal(arrays.get("b")?.plan.kind, "passthrough", "an unknown codec can be passed through");
  t.same(arrays.get("a")?.document, {
    zarr_format: 2,
    shape: [4, 6],
    chunks: [2, 2],
    dtype: "<i2",
    fill_value: 0,
    order: "C",
    filters: null,
    compressor: { id: "zlib", level: 1 },
    dimension_separator: ".",
  });
  t.same(arrays.get("a")?.zattrs, { _ARRAY_DIMENSIONS: ["axis0", "axis1"] });
  t.same(arrays.get("g/a")?.zattrs, { _ARRAY_DIMENSIONS: ["dim_4", "dim_6"] });
});

t.test("chunks by name apply to the dimensions that an array has; a variable's own come first", async (t) => {
  const { arrays } = createSnapshot(
    config({ encoding: { chunks: { axis1: -1, other: 3 } }, variables: { a: { chunks: [4, 3] } } }),
    storedTree([
      {
        path: "/",
        attrs: {},
        arrays: [storedArray("a"), storedArray("b", { shape: [9], dimNames: ["other"] }), storedArray("c")],
      },
    ]),
    "",
  );
  t.same(arrays.get("a")?.document.chunks, [4, 3]);
  t.same(arrays.get("c")?.document.chunks, [2, 6]);
  t.equal(arrays.get("c")?.plan.kind, "rechunk");
});

t.test("an array that cannot be served as asked is refused by name, and the rest is served", async (t) => {
  const asked = config({
    encoding: { compressor: { id: "zstd", level: 1 } },
    variables: { a: { chunks: { z: 1 } } },
  });
  const { arrays, refused } = createSnapshot(asked, tree, "");
  t.same([...arrays.keys()], ["g/a"]);
  t.match(refused, [
    { path: "a", reason: /array 'a': chunks: expected dimension names among axis0, axis1, received z/ },
    { path: "b", reason: /mystery/ },
  ]);
});

t.test("Blosc with an inner codec that is not encoded is a warning that names the arrays", async (t) => {
  const compressor = { id: "blosc", cname: "lz4hc", clevel: 5, shuffle: 1, blocksize: 0 };
  const { arrays, warnings } = createSnapshot(config({ encoding: { compressor } }), tree, "");
  t.match(arrays.get("a")?.document.compressor, { ...compressor, cname: "lz4" });
  t.same(warnings, ["Blosc with lz4hc is decoded but not encoded: served with lz4 (a, g/a)"]);
});

t.test("an array that Zarr v3 cannot describe is a warning that names it", async (t) => {
  const { arrays, warnings } = createSnapshot(config(), tree, "");
  t.same(warnings, ["served as Zarr v2 only: array 'b': Zarr v3 has no name for the codec mystery"]);
  t.throws(() => arrays.get("b")?.describeV3(), { code: "unsupported" });
  t.equal(arrays.get("a")?.describeV3().plan, arrays.get("a")?.plan);
});

t.test("a variable that does not exist is an error that names existing ones", async (t) => {
  t.throws(() => createSnapshot(config({ variables: { nope: {} } }), tree, ""), {
    code: "invalid-config",
    message: "variables: expected the path of an array (a, b, g/a), received 'nope'",
  });
});

t.test("the revision tells metadata and encoding apart, and nothing else", async (t) => {
  const revision = (asked: DatasetConfig, stored = tree) => createSnapshot(asked, stored, "").revision;
  const plain = revision(config());
  t.equal(revision(config({ location: "elsewhere" }), { ...tree, identity: "other" }), plain);
  t.not(revision(config({ variables: { a: { chunks: [4, 3] } } })), plain);
  t.not(revision(config(), storedTree([{ path: "/", attrs: { title: "y" }, arrays: [] }])), plain);
});

t.test("a dimension in chunks that no array has is an error that names existing ones", async (t) => {
  t.throws(() => createSnapshot(config({ encoding: { chunks: { nope: 3 } } }), tree, ""), {
    code: "invalid-config",
    message:
      "encoding.chunks: expected a dimension of some array (axis0, axis1, dim_4, dim_6), received 'nope'",
  });
});
