import { utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { regularAxis } from "../../../src/cf/axis-order.js";
import type { ServedArray } from "../../../src/dataset/dataset.js";
import {
  createLevelArray,
  type LevelContext,
  type LevelRequest,
  lengthAt,
  levelAttributes,
  levelCount,
  levelRule,
  withoutPlaces,
} from "../../../src/dataset/overviews/level-array.js";
import { horizontalDims } from "../../../src/dataset/overviews/level-grids.js";
import { createSnapshot } from "../../../src/dataset/snapshot.js";
import { createFileSource } from "../../../src/formats/file-source.js";
import type { Group, Variable } from "../../../src/model/data-tree.js";
import { parseDataType } from "../../../src/model/data-type.js";
import { encodeFillItem } from "../../../src/model/fill-value.js";
import { createMemorySource } from "../../../src/open/memory-source.js";
import { openSource } from "../../../src/open/open-source.js";
import { createTaskRunner } from "../../../src/pool/run-chunk-task.js";
import { createFileStore } from "../../../src/stores/file-store.js";
import type { StoredArray } from "../../../src/zarr/stored-array.js";
import { type FakeGroup, fakeSnapshot, fakeType } from "../../support/datasets/fake-snapshot.js";
import { fakeSource, storedArray, storedTree } from "../../support/datasets/fake-source.js";
import { joinParts, type TestPart } from "../../support/datasets/joined-array.js";
import { openPyramid } from "../../support/datasets/pyramid.js";
import { storedArray as joinedArray } from "../../support/datasets/stored-array.js";
import { readerOf } from "../../support/datasets/stored-chunks.js";
import { mapCache } from "../../support/map-cache.js";
import { startFaultyOrigin } from "../../support/origins/faulty-origin.js";
import { DATA_OFFSET, plainArray, plainFile, plainFormat } from "../../support/plain-format.js";
import { makeDirectory, writeFiles, zarray, zgroup } from "../../support/write-store.js";

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

function levelOf(below: ServedArray, request: Partial<LevelRequest> = {}, given = context): ServedArray {
  const { name, path } = below.variable;
  const factors = below.stored.shape.map(() => 2);
  return createLevelArray(below, { name, path: `1/${path}`, factors, method: "mean", ...request }, given);
}

/** The level of an array without any chunks. */
function levelOfStored(
  stored: Partial<StoredArray>,
  request: Partial<LevelRequest> = {},
  given = context,
): ServedArray {
  const array = storedArray("a", { codecs: [], compressorCount: 0, ...stored });
  const tree = storedTree([{ path: "/", attrs: {}, arrays: [array] }]);
  const below = createSnapshot(config, tree, "no-cache").arrays.get("a");
  return levelOf(below as ServedArray, request, given);
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
  const keeping = (["max", "nearest", "mode"] as const).map((method) => ({ method }));
  for (const request of [...keeping, { keepsType: true }]) {
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
  const make = (maxChunkBytes: number) => () =>
    levelOfStored(typed("<f4", null), {}, { ...context, maxChunkBytes });
  t.throws(make(63), {
    code: "unsupported",
    message: "array '1/a': expected boxes of at most 63 bytes, received (4, 4), which is 64",
  });
  t.doesNotThrow(make(64));
});

t.test("axes that are empty, short or not halved keep their place", async (t) => {
  const stored = { ...typed("<f4", null), shape: [0, 1, 5], chunkShape: [2, 1, 2] };
  const { document, plan } = levelOfStored(stored, { factors: [2, 2, 1] });
  t.match(document, { shape: [0, 1, 5], chunks: [1, 1, 2] });
  t.same(plan.served.gridShape, [0, 1, 3]);
});

const NORTH = { units: "degrees_north" };
const EAST = { units: "degrees_east" };

function dimsOf(root: FakeGroup): string[] {
  return [...horizontalDims(fakeSnapshot("d", root).tree)];
}

t.test("horizontal dimensions are those of maps, by attributes or names", async (t) => {
  const t2m = { dims: ["time", "lat", "lon"], shape: [2, 3, 4] };
  t.same(dimsOf({ variables: { t2m } }), ["lat", "lon"]);
  const named = {
    a: { dims: ["a"], shape: [3], attrs: { standard_name: "projection_y_coordinate" } },
    b: { dims: ["b"], shape: [4], attrs: EAST },
    v: { dims: ["c", "a", "b"], shape: [2, 3, 4] },
  };
  t.same(dimsOf({ variables: named }), ["a", "b"]);
  const { v, ...coordinates } = named;
  const groups = { below: { variables: { v } } };
  t.same(dimsOf({ variables: coordinates, groups }), ["a", "b"], "also of the group above");
  const curvilinear = {
    where: { dims: ["j", "i"], shape: [3, 4], attrs: NORTH },
    v: { dims: ["time", "j", "i"], shape: [2, 3, 4] },
  };
  t.same(dimsOf({ variables: curvilinear }), ["j", "i"]);
  const swath = { where: { dims: ["time", "i"], shape: [3, 4], attrs: NORTH } };
  t.same(dimsOf({ variables: swath }), ["i"], "times are no place");
  const stations = {
    lat: { dims: ["station"], shape: [3], attrs: NORTH },
    v: { dims: ["station", "obs"], shape: [3, 4] },
  };
  t.same(dimsOf({ variables: { ...stations, t2m } }), ["lat", "lon"]);
});

t.test("they are the last two of each array if a dataset says nothing", async (t) => {
  const image = { dims: ["dim_0", "dim_1", "dim_2"], shape: [3, 20, 30] };
  t.same(dimsOf({ variables: { image } }), ["dim_1", "dim_2"]);
  const texts = { dims: ["a", "b"], shape: [2, 2], type: fakeType("U", 4) };
  t.same(dimsOf({ variables: { texts, row: { dims: ["n"], shape: [5] } } }), []);
  const profile = { dims: ["p", "time", "depth"], shape: [2, 3, 4] };
  t.same(dimsOf({ variables: { profile } }), [], "times and depths are none");
});

t.test("auto levels end when planes are one chunk, and no level is as large as the one below", async (t) => {
  const count = (
    chunks: readonly number[],
    asked: number | "auto",
    shape: readonly number[] = [5, 721, 1440],
  ) => {
    const { tree } = fakeSnapshot("d", {
      variables: {
        v: { dims: ["time", "y", "x"], shape, chunks },
        // Coordinates have chunks of their own.
        y: { dims: ["y"], shape: [shape[1] as number], chunks: [1] },
      },
    });
    return levelCount(tree, new Set(["y", "x"]), asked);
  };
  t.equal(count([1, 721, 1440], "auto"), 1, "at most 1,024 cells along an axis");
  t.equal(count([1, 721, 720], "auto"), 1);
  t.equal(count([1, 256, 256], "auto"), 3);
  t.equal(count([5, 25, 53], "auto", [5, 25, 53]), 0);
  t.equal(count([1, 256, 256], 2), 2);
  t.equal(count([1, 256, 256], 16), 11, "2^11 > 1,440");
  t.equal(count([1, 1, 1], "auto", [5, 1, 1]), 0);
  t.equal(lengthAt(721, 3), 91);
});

t.test("each variable has its rule", async (t) => {
  const plane = { dims: ["lat", "lon"], shape: [4, 6] };
  const { tree } = fakeSnapshot("d", {
    variables: {
      lat: { dims: ["lat"], shape: [4], attrs: { ...NORTH, bounds: "lat_bnds" } },
      labels: { dims: ["lat"], shape: [4], type: fakeType("U", 8), coordinate: true },
      lat_bnds: { dims: ["lat", "nv"], shape: [4, 2] },
      time: { dims: ["time"], shape: [2] },
      where: { ...plane, attrs: { bounds: "corners" }, coordinate: true },
      corners: { dims: ["lat", "lon", "nv"], shape: [4, 6, 4] },
      number: plane,
      zonal: { dims: ["time", "lat"], shape: [2, 4] },
      flags: { ...plane, attrs: { flag_masks: [1, 2] } },
      truth: { ...plane, type: fakeType("b", 1) },
      when: { ...plane, type: fakeType("M", 8) },
      texts: { ...plane, type: fakeType("O", 0) },
    },
  });
  const horizontal = new Set(["lat", "lon"]);
  const rule = (name: string, method: "mean" | "max" = "mean") =>
    levelRule(tree.root as Group, tree.root.variables.get(name) as Variable, horizontal, method);
  t.same(rule("time"), { kind: "same" });
  t.same(rule("number"), { kind: "coarsen", method: "mean", factors: [2, 2] });
  t.same(rule("zonal"), { kind: "coarsen", method: "mean", factors: [1, 2] });
  t.same(rule("number", "max"), { kind: "coarsen", method: "max", factors: [2, 2] });
  t.match(rule("lat", "max"), { method: "mean" }, "coordinates stay in the middle");
  t.match(rule("flags"), { method: "mode" });
  t.match(rule("flags", "max"), { method: "max" });
  t.match(rule("truth"), { method: "mode" });
  t.match(rule("when"), { method: "nearest" });
  t.match(rule("labels"), { method: "nearest" });
  t.match(rule("texts"), { kind: "none", reason: /no fixed size/ });
  t.match(rule("lat_bnds"), { method: "bounds" });
  t.match(rule("corners"), { kind: "none", reason: /two bounds per cell/ });
});

t.test("attributes do not name what is left out", async (t) => {
  const isLeftOut = (name: string) => name.startsWith("gone");
  const attrs = { units: "K", coordinates: "a gone b", bounds: "gone_bnds" };
  t.same(levelAttributes(attrs, isLeftOut), { units: "K", coordinates: "a b" });
  const whole = { coordinates: "a b", bounds: "a_bnds" };
  t.same(levelAttributes(whole, isLeftOut), whole);
  t.same(levelAttributes({ "spatial:shape": [4, 4], valid: 1 }, isLeftOut), { valid: 1 });
  t.same(withoutPlaces({ GeoTransform: "0 1 0 0 0 -1", crs_wkt: "…" }), { crs_wkt: "…" });
  t.equal(withoutPlaces(whole), whole);
});

t.test("an axis is regular to a millionth of a cell", async (t) => {
  t.same(regularAxis([90, 89.75, 89.5]), { first: 90, step: -0.25 });
  t.same(regularAxis(Array.from({ length: 3_600 }, (_, index) => index / 10)), { first: 0, step: 0.1 });
  t.equal(regularAxis([0, 1, 2.001]), undefined);
  t.equal(regularAxis([350, 355, 0, 5]), undefined, "a step over the date line");
  t.equal(regularAxis([0, Number.NaN, 2]), undefined);
  t.equal(regularAxis([5]), undefined);
  t.equal(regularAxis([1, 1, 1]), undefined);
});

/** A square of bytes in chunks of 2 × 2, each of which holds its number. */
const SIDE = 16;
const GRID = SIDE / 2;
const numbers = Array.from({ length: GRID * GRID }, (_, index) => index);
const request = { keepsType: true, factors: [2, 2] };

t.test(
  "levels of a remote store read each chunk once, and ask again as often as it is believed",
  async (t) => {
    const directory = await makeDirectory(t);
    const files: Record<string, Uint8Array | object> = {
      ".zgroup": zgroup,
      "a/.zarray": { ...zarray, shape: [SIDE, SIDE], chunks: [2, 2] },
    };
    for (const number of numbers)
      files[`a/${Math.floor(number / GRID)}.${number % GRID}`] = new Uint8Array(4).fill(number);
    await writeFiles(directory, files);
    const origin = await startFaultyOrigin(t, { directory });
    const source = await openSource(origin.url, { freshness: "always", names: ["a"] });
    t.teardown(() => source.close());
    const pyramid = await openPyramid(source, "a", { levels: 3, request, freshness: "always" });
    origin.resetCounts();
    const before = await pyramid.fetch(3, "0.0");
    t.equal(origin.count({ key: /^a\/\d/, status: 200 }), numbers.length);
    origin.put("a/0.0", new Uint8Array(4).fill(200));
    const after = await pyramid.fetch(3, "0.0");
    t.not(after.etag, before.etag);
    t.not(after.bytes?.[0], before.bytes?.[0]);
    t.equal(after.bytes?.[3], before.bytes?.[3]);
    origin.setFault(({ key }) => (key === "a/7.7" ? { status: 403 } : undefined));
    await t.rejects(pyramid.fetch(3, "0.0"), { code: "source-unreadable" });
  },
);

t.test("levels of a file that is replaced say so, until the dataset is refreshed", async (t) => {
  const directory = await makeDirectory(t);
  const file = join(directory, "a.plain");
  const write = async (data: Uint8Array, seconds: number) => {
    const offsets = Float64Array.from(numbers, (number) => DATA_OFFSET + 4 * number);
    // The last chunk is absent.
    offsets[offsets.length - 1] = -1;
    const chunks = {
      kind: "listed",
      offsets,
      byteLengths: Uint32Array.from(numbers, (number) => (number === numbers.length - 1 ? 0 : 4)),
    } as const;
    const array = plainArray({ name: "a", shape: [SIDE, SIDE], chunkShape: [2, 2], chunks });
    await writeFile(file, plainFile({ arrays: [array], data }));
    await utimes(file, seconds, seconds);
  };
  const source = () =>
    createFileSource({
      ...{ location: "a", store: createFileStore(directory), key: "a.plain" },
      ...{ formats: [plainFormat], freshness: "always" },
    });
  await write(Uint8Array.from(numbers.flatMap((number) => new Array<number>(4).fill(number))), 1e9);
  const pyramid = await openPyramid(source(), "a", { levels: 3, request, freshness: "always" });
  const before = await pyramid.fetch(3, "0.0");
  // Means are rounded half to even: 0, 1, 8, 9 make 4, and 4, 6, 20, 22 make 13.
  t.same([...(before.bytes ?? [])].slice(0, 2), [13, 17]);
  await write(new Uint8Array(4 * numbers.length).fill(9), 1e9 + 60);
  await t.rejects(pyramid.fetch(3, "0.0"), {
    code: "source-changed",
    details: { staleIdentity: pyramid.base.identity },
  });
  const reopened = await openPyramid(source(), "a", { levels: 3, request, freshness: "always" });
  t.same([...((await reopened.fetch(3, "0.0")).bytes ?? [])].slice(0, 2), [9, 9]);
});

const FORM = {
  ...{ dtype: "<f4", codecs: [], compressorCount: 0 as const, dimNames: ["time", "y", "x"] },
};

/** A field of 8 × 8 items per step. */
function fieldOf(step: number): number[] {
  return Array.from({ length: 64 }, (_, index) => (step === 3 ? Number.NaN : step * 1000 + index));
}

function bytesOf(first: number, length: number): Uint8Array {
  const steps = Array.from({ length }, (_, index) => fieldOf(first + index));
  return new Uint8Array(Float32Array.from(steps.flat()).buffer);
}

async function partsOf(lengths: readonly number[]): Promise<TestPart[]> {
  const parts: TestPart[] = [];
  let first = 0;
  for (const [index, length] of lengths.entries()) {
    const stored = joinedArray({ ...FORM, shape: [length, 8, 8], chunkShape: [2 - (index % 2), 4, 8] });
    const reader = await readerOf(stored, bytesOf(first, length), ([step]) => first + (step ?? 0) === 3);
    parts.push({ stored, reader, from: 0, length });
    first += length;
  }
  return parts;
}

/** The form of a joined array, and of the same one in one store. */
function arrayOf(steps: number): StoredArray {
  return joinedArray({ ...FORM, shape: [steps, 8, 8], chunkShape: [2, 4, 4] });
}

async function pyramidOf(array: StoredArray, cache = mapCache(), immutable = false) {
  const source = fakeSource(storedTree([{ path: "/", attrs: {}, arrays: [array] }]));
  return openPyramid(source, array.path, { levels: 2, cache, config: { immutable } });
}

t.test("levels of old parts stay in the cache when a part is added", async (t) => {
  const cache = mapCache();
  const parts = await partsOf([3, 2, 4]);
  const open = (count: number, immutable = false) => {
    const used = parts.slice(0, count);
    const steps = used.reduce((sum, { length }) => sum + length, 0);
    return pyramidOf(joinParts(used, { stored: arrayOf(steps), axis: 0 }), cache, immutable);
  };
  const before = await open(2);
  const after = await open(3);
  for (const level of [2, 1])
    for (const [key, isOld] of [
      ["0.0.0", true],
      ["1.0.0", true],
      ["2.0.0", false],
    ] as const) {
      const was = await before.fetch(level, key);
      const made = after.made.length;
      const is = await after.fetch(level, key);
      t.equal(is.etag === was.etag, isOld, `level ${level}, chunk ${key}`);
      t.equal(after.made.length === made, isOld || level === 1, "level 1 was made for level 2");
      t.not(is.bytes, undefined);
    }
  const kept = (await (await open(2, true)).fetch(2, "0.0.0")).etag;
  t.not((await (await open(3, true)).fetch(2, "0.0.0")).etag, kept, "chunks without versions");
});
