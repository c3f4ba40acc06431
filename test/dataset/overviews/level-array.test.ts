import t from "tap";
import type { ServedArray } from "../../../src/dataset/dataset.js";
import {
  createLevelArray,
  type LevelContext,
  type LevelRequest,
} from "../../../src/dataset/overviews/level-array.js";
import { createSnapshot } from "../../../src/dataset/snapshot.js";
import { parseDataType } from "../../../src/model/data-type.js";
import { encodeFillItem } from "../../../src/model/fill-value.js";
import { createMemorySource } from "../../../src/open/memory-source.js";
import { createTaskRunner } from "../../../src/pool/run-chunk-task.js";
import type { StoredArray } from "../../../src/zarr/stored-array.js";
import { storedArray, storedTree } from "../../support/datasets/fake-source.js";

const config = { id: "d", location: "here", immutable: false, encoding: {}, variables: {} };
const context: LevelContext = {
  store: "d",
  immutable: false,
  snapshot: () => {
    throw new Error("expected no reader");
  },
  openReader: () => {
    throw new Error("expected no reader");
  },
};

function levelOf(below: ServedArray, request: Partial<LevelRequest> = {}): ServedArray {
  const { name, path } = below.variable;
  const factors = below.stored.shape.map(() => 2);
  return createLevelArray(below, { name, path: `1/${path}`, factors, method: "mean", ...request }, context);
}

/** The level of an array without any chunks. */
function levelOfStored(stored: Partial<StoredArray>, request: Partial<LevelRequest> = {}): ServedArray {
  const array = storedArray("a", { codecs: [], compressorCount: 0, ...stored });
  const tree = storedTree([{ path: "/", attrs: {}, arrays: [array] }]);
  const below = createSnapshot(config, tree, "no-cache").arrays.get("a");
  return levelOf(below as ServedArray, request);
}

/** Fields of a stored array of a type. @param fill Its fill value; null for none. */
function typed(
  dtype: string,
  fill: number | string | null,
  attrs: StoredArray["attrs"] = {},
): Partial<StoredArray> {
  const dataType = parseDataType(dtype);
  const item = fill === null ? null : encodeFillItem(fill, dataType);
  return { dataType, attrs, fill: { served: fill, item, absentIsServed: true } };
}

t.test("a level of floats has the means of those that are there", async (t) => {
  const data = Float32Array.from([
    1,
    2,
    3,
    4,
    5,
    6,
    Number.NaN,
    8,
    9,
    Number.NaN,
    Number.NaN,
    12,
    13,
    14,
    15,
  ]);
  const array = { name: "a", data, shape: [3, 5], dims: ["y", "x"], compressor: null, attrs: { units: "K" } };
  const source = createMemorySource({ groups: [{ path: "/", arrays: [array] }] });
  const snapshot = createSnapshot(config, await source.readTree(), "no-cache");
  const level = levelOf(snapshot.arrays.get("a") as ServedArray);
  t.same(level.document, {
    chunks: [2, 3],
    compressor: null,
    dimension_separator: ".",
    dtype: "<f4",
    fill_value: "NaN",
    filters: null,
    order: "C",
    shape: [2, 3],
    zarr_format: 2,
  });
  t.same(level.variable.attrs, { units: "K" });
  t.same(level.zattrs, { units: "K", _ARRAY_DIMENSIONS: ["y", "x"] });
  t.equal(level.v3Problem, undefined);
  const outcome = await createTaskRunner()({ plan: level.plan, chunkCoords: [0, 0] });
  if (outcome.status !== "encoded") throw new Error(JSON.stringify(outcome));
  t.same([...new Float32Array(outcome.bytes.slice().buffer)], [3, 6, 5, 12, 13.5, 15]);
});

t.test("means have a type that tells values apart", async (t) => {
  const packed = { scale_factor: 0.01, add_offset: 273.15 };
  const types = [
    ["<f2", {}, "<f4"],
    [">f4", {}, "<f4"],
    [">f8", {}, "<f8"],
    ["|b1", {}, "<f4"],
    ["|u1", {}, "<f4"],
    [">i2", packed, "<f4"],
    ["<i2", { ...packed, add_offset: 1e6 }, "<f8"],
    ["<i4", packed, "<f8"],
    ["<u8", {}, "<f8"],
  ] as const;
  for (const [dtype, attrs, expected] of types) {
    const { document } = levelOfStored(typed(dtype, null, attrs));
    t.equal(document.dtype, expected, `${dtype} ${JSON.stringify(attrs)}`);
    t.equal(document.fill_value, "NaN");
  }
});

t.test("attributes of packed and missing numbers go if means are unpacked, and else stay", async (t) => {
  const attrs = {
    units: "K",
    scale_factor: 0.5,
    _FillValue: -9,
    missing_value: [-9, 7],
    valid_range: [0, 9],
  };
  const stored = typed("<i2", -9, attrs);
  t.same(levelOfStored(stored).variable.attrs, { units: "K" });
  const plain = typed("<i2", -9, { units: "m", valid_range: [0, 9], _FillValue: -9 });
  t.same(levelOfStored(plain).variable.attrs, { units: "m", valid_range: [0, 9] });
  for (const request of [
    { method: "max" },
    { method: "nearest" },
    { method: "mode" },
    { keepsType: true },
  ] as const) {
    const { document, variable } = levelOfStored(stored, request);
    t.same(variable.attrs, attrs, JSON.stringify(request));
    t.same([document.dtype, document.fill_value], ["<i2", -9]);
  }
  t.same(levelOfStored(stored, { attrs: { units: "1", _FillValue: -9 } }).variable.attrs, { units: "1" });
});

t.test("absent chunks make absent ones if they mean the same", async (t) => {
  const isAbsent = (stored: Partial<StoredArray>, request?: Partial<LevelRequest>) =>
    levelOfStored(stored, request).plan.absentIsAbsent;
  t.equal(isAbsent(typed("<i2", -9)), true, "missing is NaN");
  t.equal(isAbsent(typed("<f4", "NaN")), true);
  t.equal(isAbsent(typed("<i2", null)), false, "zero is not");
  t.equal(isAbsent(typed("<i2", null, { missing_value: 0 })), true);
  t.equal(isAbsent(typed("<i2", 0), { keepsType: true }), true, "it is the fill value of the level, too");
  t.equal(isAbsent(typed("<i2", null), { method: "max" }), true);
  const filled = {
    ...typed("<i2", 5),
    fill: { ...typed("<i2", 5).fill, served: null, absentIsServed: false },
  };
  t.equal(isAbsent(filled as StoredArray), false);
  t.equal(isAbsent(filled as StoredArray, { method: "max" }), false);
});

t.test("absent chunks that mean values are computed with", async (t) => {
  const stored = { ...typed("<i2", 5, { scale_factor: 2 }), shape: [3, 3] };
  const fill = { served: null, item: stored.fill?.item ?? null, absentIsServed: false };
  const level = levelOfStored({ ...stored, fill, chunks: { kind: "given", name: "none" } });
  const run = createTaskRunner();
  const values = async (coords: readonly number[]) => {
    const outcome = await run({ plan: level.plan, chunkCoords: coords, stored: [] });
    if (outcome.status !== "encoded") throw new Error(JSON.stringify(outcome));
    return [...new Float32Array(outcome.bytes.slice().buffer)];
  };
  t.same(level.document.chunks, [2, 2]);
  t.same(await values([0, 0]), [10, 10, 10, 10]);
});

t.test("unsigned numbers in a signed type are compared as such", async (t) => {
  const array = {
    ...{ name: "a", data: Int8Array.of(-1, 1, -2, 3, -56, -56, -56, 4), shape: [2, 4] },
    ...{ dims: ["y", "x"], compressor: null, fillValue: -1, attrs: { _Unsigned: "true" } },
  };
  const source = createMemorySource({ groups: [{ path: "/", arrays: [array] }] });
  const below = createSnapshot(config, await source.readTree(), "no-cache").arrays.get("a") as ServedArray;
  const run = createTaskRunner();
  const bytesOf = async (request: Partial<LevelRequest>) => {
    const outcome = await run({ plan: levelOf(below, request).plan, chunkCoords: [0, 0] });
    if (outcome.status !== "encoded") throw new Error(JSON.stringify(outcome));
    return outcome.bytes.slice().buffer;
  };
  t.same([...new Uint8Array(await bytesOf({ method: "max" }))], [200, 254]);
  t.same([...new Uint8Array(await bytesOf({ method: "mode" }))], [200, 3]);
  const means = [(1 + 200 + 200) / 3, (254 + 3 + 200 + 4) / 4];
  t.same([...new Float32Array(await bytesOf({}))], means.map(Math.fround));
});

t.test("codecs are those of the array below, if they suit the level", async (t) => {
  const codecsOf = (codecs: StoredArray["codecs"]) => {
    const { document, stored } = levelOfStored({ ...typed("<i2", null), codecs, compressorCount: 1 });
    t.same(stored.codecs, [...(document.filters ?? []), document.compressor]);
    return stored.codecs;
  };
  const zlib = { id: "zlib", level: 4 };
  t.same(codecsOf([{ id: "shuffle", elementsize: 2 }, zlib]), [{ id: "shuffle", elementsize: 4 }, zlib]);
  t.same(codecsOf([{ id: "delta", dtype: "<i2" }, zlib]), [zlib]);
  const blosc = { id: "blosc", cname: "blosclz", clevel: 3, shuffle: 1, blocksize: 0 };
  t.match(codecsOf([blosc]), [{ ...blosc, cname: "lz4" }]);
  t.match(codecsOf([{ ...blosc, cname: "snappy" }]).at(-1), { id: "blosc", cname: "lz4" });
});

t.test("what has no mean is refused by name", async (t) => {
  for (const dtype of ["<M8[s]", "|S3", "<c8", "<f16"]) {
    const stored = typed(dtype, null);
    const name = stored.dataType?.numpyName;
    t.throws(() => levelOfStored(stored), {
      code: "unsupported",
      message: `array '1/a': expected numbers to take the mean of, received ${name}`,
    });
    t.equal(levelOfStored(stored, { method: "nearest" }).document.dtype, dtype);
  }
});

t.test("boxes that are larger than chunks may be are refused", async (t) => {
  const snapshot = createSnapshot(
    config,
    storedTree([{ path: "/", attrs: {}, arrays: [storedArray("a", typed("<f4", null))] }]),
    "no-cache",
  );
  const request = { name: "a", path: "1/a", factors: [2, 2], method: "mean" } as const;
  const make = (maxChunkBytes: number) => () =>
    createLevelArray(snapshot.arrays.get("a") as ServedArray, request, { ...context, maxChunkBytes });
  t.throws(make(63), {
    code: "unsupported",
    message: "array '1/a': expected boxes of at most 63 bytes, received (4, 4), which is 64",
  });
  t.doesNotThrow(make(64));
});

t.test("axes that are empty, short or not halved keep their place", async (t) => {
  const { document, plan } = levelOfStored(
    { ...typed("<f4", null), shape: [0, 1, 5], chunkShape: [2, 1, 2] },
    { factors: [2, 2, 1] },
  );
  t.same(
    [document.shape, document.chunks],
    [
      [0, 1, 5],
      [1, 1, 2],
    ],
  );
  t.same(plan.served.gridShape, [0, 1, 3]);
});
