import t from "tap";
import { createMemorySource, type MemoryArray } from "../../../src/open/memory-source.js";

const array: MemoryArray = { name: "v", data: new Float32Array(6), shape: [2, 3], dims: ["y", "x"] };
const tree = async (...arrays: MemoryArray[]) =>
  await createMemorySource({ groups: [{ path: "/", arrays }] }).readTree();
const only = async (changes: Partial<MemoryArray> = {}) =>
  (await tree({ ...array, ...changes })).groups[0]?.arrays[0];

t.test("arrays keep type, shape, names and attributes", async (t) => {
  t.match(await only({ attrs: { units: "K" }, fillValue: Number.NaN }), {
    name: "v",
    path: "v",
    shape: [2, 3],
    chunkShape: [2, 3],
    dataType: { zarr: "<f4" },
    axisOrder: [0, 1],
    codecs: [],
    compressorCount: 0,
    fill: { served: "NaN", absentIsServed: true },
    dimNames: ["y", "x"],
    attrs: { units: "K" },
    chunks: { kind: "memory", byteLength: 24 },
    servedChunks: [2, 3],
    servedCompressor: { id: "blosc", cname: "lz4" },
  });
});

t.test("every typed array with a numpy type has that type", async (t) => {
  const cases: readonly (readonly [ArrayBufferView, string])[] = [
    [new Int8Array(2), "|i1"],
    [new Uint8Array(2), "|u1"],
    [Buffer.alloc(2), "|u1"],
    [new Int16Array(2), "<i2"],
    [new Uint32Array(2), "<u4"],
    [new BigInt64Array(2), "<i8"],
    [new BigUint64Array(2), "<u8"],
    [new Float64Array(2), "<f8"],
  ];
  for (const [data, zarr] of cases) {
    t.equal((await only({ data, shape: [2], dims: ["x"] }))?.dataType.zarr, zarr);
  }
  await t.rejects(only({ data: new Uint8ClampedArray(6) }), { message: /received a Uint8ClampedArray/ });
  await t.rejects(only({ data: new DataView(new ArrayBuffer(6)) }), { message: /received a DataView/ });
});

t.test("a dtype is the type of raw bytes", async (t) => {
  for (const [dtype, byteLength] of [
    ["|b1", 6],
    ["<M8[s]", 48],
    ["|S5", 30],
    [">U2", 48],
    ["<c8", 48],
  ] as const) {
    t.equal((await only({ dtype, data: new Uint8Array(byteLength) }))?.dataType.zarr, dtype);
  }
  t.ok(await only({ dtype: "<M8[ns]", data: new BigInt64Array(6) }));
  await t.rejects(only({ dtype: "|O" }), { message: /'v': expected a dtype of items with a fixed size/ });
  await t.rejects(only({ dtype: "<f3" }), { message: /'v': expected dtype/ });
});

t.test("data is copied once, unless it is in shared memory", async (t) => {
  const shared = new SharedArrayBuffer(32);
  const view = new Float32Array(shared, 8, 6);
  t.match((await only({ data: view }))?.chunks, { buffer: shared, byteOffset: 8, byteLength: 24 });
  const own = new Float32Array([0, 1, 2, 3, 4, 5, 6, 7]).subarray(1, 7);
  const chunks = (await only({ data: own }))?.chunks;
  t.ok(chunks?.kind === "memory" && chunks.buffer instanceof SharedArrayBuffer);
  if (chunks?.kind !== "memory") return;
  own[0] = 99;
  t.same([...new Float32Array(chunks.buffer)], [1, 2, 3, 4, 5, 6]);
});

t.test("large arrays are cut along their longest axes, small ones are one chunk", async (t) => {
  const large = await only({ data: new Uint8Array(3000 * 1000), shape: [3000, 1000] });
  t.same(large?.servedChunks, [750, 1000]);
  t.same(large?.chunkShape, [3000, 1000]);
  t.same((await only({ data: new Uint8Array(0), shape: [0, 5] }))?.servedChunks, [1, 5]);
  t.same((await only({ data: new Uint8Array(1), shape: [], dims: [] }))?.servedChunks, []);
  t.same((await only({ chunks: [1, 2] }))?.servedChunks, [1, 2]);
  t.equal((await only({ compressor: null }))?.servedCompressor, null);
  t.equal((await only({ dtype: "|S0", data: new Uint8Array(0) }))?.servedCompressor, null);
});

t.test("an inconsistent description is refused by name", async (t) => {
  const cases: readonly (readonly [Partial<MemoryArray>, RegExp])[] = [
    [{ shape: [2, 2] }, /'v': expected 16 bytes of data for shape \[2,2\] of float32, received 24/],
    [{ shape: [2, -3] }, /shape to be 2 non-negative integers/],
    [{ chunks: [0, 1] }, /chunks to be 2 positive integers, received \[0,1\]/],
    [{ chunks: [1] }, /chunks to be 2 positive integers/],
    [{ dims: ["x"] }, /dims to name 2 different dimensions/],
    [{ dims: ["x", "x"] }, /dims to name 2 different dimensions/],
    [{ fillValue: "x" }, /'v': expected fill_value/],
    [{ name: "a/b" }, /without a slash/],
    [{ name: "" }, /expected a name/],
    [{ name: ".." }, /expected a name/],
    [{ name: ".zarray" }, /'\.zarray': \.zarray is the name of a document/],
    [{ name: "a\nb" }, /'a\\u000ab': the name has control characters/],
  ];
  for (const [changes, message] of cases)
    await t.rejects(only(changes), { code: "invalid-metadata", message });
  await t.rejects(tree(array, array), { message: /expected every array once/ });
  t.throws(() => createMemorySource({ groups: [{ path: "/", arrays: [array] }, { path: "v" }] }), {
    message: /an array or a group, received both/,
  });
  t.throws(() => createMemorySource({ groups: [{ path: "a" }, { path: "/a" }] }), { message: /group once/ });
});

t.test("groups come with their parents, root first", async (t) => {
  const source = createMemorySource({
    groups: [{ path: "/c" }, { path: "a/b", attrs: { n: 1 }, arrays: [array] }],
  });
  const { groups } = await source.readTree();
  const paths = groups.map((group) => group.path);
  t.same(paths, ["/", "/a", "/a/b", "/c"]);
  t.equal(groups[2]?.arrays[0]?.path, "a/b/v");
  t.equal(await source.fingerprint(), undefined);
});

t.test("a tree without groups is an empty dataset", async (t) => {
  const { groups } = await createMemorySource({ groups: [] }).readTree();
  t.same(groups, [{ path: "/", attrs: {}, arrays: [] }]);
});

t.test("the identity comes from the content, or from the revision", async (t) => {
  const identity = async (data: Float32Array, revision?: string) =>
    (
      await createMemorySource({
        ...(revision === undefined ? {} : { revision }),
        groups: [{ path: "/", arrays: [{ ...array, data }] }],
      }).readTree()
    ).identity;
  t.equal(await identity(new Float32Array(6)), await identity(new Float32Array(6)));
  t.not(await identity(new Float32Array(6)), await identity(new Float32Array(6).fill(1)));
  t.equal(await identity(new Float32Array(6), "r1"), await identity(new Float32Array(6).fill(1), "r1"));
  t.not(await identity(new Float32Array(6), "r1"), await identity(new Float32Array(6), "r2"));
});
