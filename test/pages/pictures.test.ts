import t from "tap";
import type { DatasetSnapshot, ServedArray } from "../../src/dataset/dataset.js";
import { createSnapshot } from "../../src/dataset/snapshot.js";
import { parseDataType } from "../../src/model/data-type.js";
import {
  choosePicture,
  describePicture,
  type PictureChoice,
  pictureFlips,
  pictureSize,
  readDirection,
} from "../../src/pages/pictures.js";
import type { StoredArray } from "../../src/zarr/stored-array.js";
import { type FakeVariable, fakeSnapshot, fakeType } from "../support/datasets/fake-snapshot.js";
import { storedArray, storedTree } from "../support/datasets/fake-source.js";

function snapshotOf(...arrays: readonly StoredArray[]): DatasetSnapshot {
  const config = { id: "d", location: "here", immutable: false, encoding: {}, variables: {} };
  const paths = new Set([
    "/",
    ...arrays.map(({ path }) => `/${path.slice(0, Math.max(0, path.lastIndexOf("/")))}`),
  ]);
  const groups = [...paths].map((path) => ({
    path,
    attrs: {},
    arrays: arrays.filter(
      (array) => `/${array.path.slice(0, Math.max(0, array.path.lastIndexOf("/")))}` === path,
    ),
  }));
  return createSnapshot(config, storedTree(groups), "no-cache");
}

function choose(snapshot: DatasetSnapshot, path: string, size?: number) {
  return choosePicture(snapshot, snapshot.arrays.get(path) as ServedArray, size);
}

function chosen(snapshot: DatasetSnapshot, path = "v", size?: number): PictureChoice {
  const choice = choose(snapshot, path, size);
  if ("problem" in choice) throw new Error(choice.problem);
  return choice;
}

/** An int16 array in chunks of `chunkShape`, named by its dimensions. */
function array(
  path: string,
  dimNames: readonly string[],
  shape: readonly number[],
  chunkShape = shape,
  more: Partial<StoredArray> = {},
) {
  return storedArray(path, { dimNames, shape, chunkShape, ...more });
}

t.test("shows latitudes and longitudes, the middle time, and the first of other dimensions", async (t) => {
  const snapshot = snapshotOf(
    array("v", ["t", "level", "lat", "lon"], [9, 3, 4, 8], [1, 1, 4, 8]),
    array("turned", ["lon", "when", "lat"], [8, 9, 4], [8, 9, 4]),
    array("when", ["when"], [9], [9], { attrs: { units: "days since 2000-01-01" } }),
  );
  const choice = chosen(snapshot);
  t.match(choice, { plane: { y: 2, x: 3 }, boxShape: [1, 1, 4, 8], position: [4, 0, 0, 0], isCentre: false });
  t.match(chosen(snapshot, "turned"), { plane: { y: 2, x: 0 }, boxShape: [8, 1, 4], position: [0, 4, 0] });
});

t.test("finds coordinates in the groups above, and not those of another length", async (t) => {
  const units = { attrs: { units: "hours since 2000-01-01" } };
  const snapshot = snapshotOf(
    array("a/b/v", ["step", "p", "q"], [4, 2, 2]),
    array("step", ["step"], [4], [4], units),
    array("a/step", ["step"], [5], [5], units),
  );
  t.strictSame(chosen(snapshot, "a/b/v").position, [2, 0, 0]);
});

t.test("a plane of up to 16 chunks is shown whole", async (t) => {
  t.match(chosen(snapshotOf(array("v", ["y", "x"], [39, 40], [10, 10]))), {
    boxShape: [39, 40],
    position: [0, 0],
    isCentre: false,
  });
});

t.test("of a larger plane as many chunks about its centre as may be read", async (t) => {
  const cases = `
100,100      10,10     40,40     1,1
1000,20      10,20     160,20    3,0
30,3000      10,10     30,50     0,30
10000,10000  4096,4096 4096,8192 1,0
100,100,5    10,10,5   40,40,1   1,1,0`;
  for (const line of cases.trim().split("\n")) {
    const [shape = [], chunks, boxShape, position] = line
      .split(/ +/)
      .map((list) => list.split(",").map(Number));
    const dims = ["y", "x", "band"].slice(0, shape.length);
    t.match(
      chosen(snapshotOf(array("v", dims, shape, chunks))),
      { boxShape, position, isCentre: true },
      `${shape}`,
    );
  }
});

t.test("the box about the centre is never cut off by the edge", async (t) => {
  for (let length = 61; length < 200; length++) {
    const { boxShape, position, isCentre } = chosen(snapshotOf(array("v", ["y", "x"], [length, 1], [1, 1])));
    const begin = (position[0] as number) * (boxShape[0] as number);
    t.ok(isCentre && begin + (boxShape[0] as number) <= length && begin <= length / 2, `${length}`);
  }
});

t.test("counts the bytes of whole chunks, and refuses chunks that are too large", async (t) => {
  // 32 MiB each: two may be read.
  const deep = array("v", ["time", "y", "x"], [64, 1024, 512], [64, 512, 512]);
  t.match(chosen(snapshotOf(deep)), { boxShape: [1, 1024, 512], isCentre: false });
  const four = array("v", ["time", "y", "x"], [64, 1024, 1024], [64, 512, 512]);
  t.match(chosen(snapshotOf(four)), { boxShape: [1, 512, 1024], isCentre: true });
  const large = array("v", ["time", "y", "x"], [640, 1024, 1024], [640, 512, 512]);
  t.match(choose(snapshotOf(large), "v"), { problem: /chunks have .*MiB.* at most/ });
});

t.test("an array in memory is no chunk that has to be decoded", async (t) => {
  const chunks = { kind: "memory", buffer: new SharedArrayBuffer(0), byteOffset: 0, byteLength: 0 } as const;
  const memory = { chunks, codecs: [], compressorCount: 0 as const };
  t.match(
    chosen(snapshotOf(array("v", ["time", "y", "x"], [1000, 1000, 1000], [1000, 1000, 1000], memory))),
    {
      boxShape: [1, 1000, 1000],
      isCentre: false,
    },
  );
  const { boxShape, isCentre } = chosen(
    snapshotOf(array("v", ["y", "x"], [20_000, 20_000], [20_000, 20_000], memory)),
  );
  t.ok(isCentre);
  t.ok(
    boxShape.every((length) => length >= 4096) &&
      2 * (boxShape[0] as number) * (boxShape[1] as number) <= 2 ** 26,
  );
});

t.test("has no picture of what is no plane of numbers, and says why", async (t) => {
  const cases: [StoredArray, RegExp][] = [
    [array("v", [], []), /no dimensions/],
    [array("v", ["v"], [5]), /coordinate of its own dimension/],
    [array("v", ["y", "x"], [5, 0], [5, 1]), /no values/],
    [array("v", ["y", "x"], [5, 5], [5, 5], { dataType: parseDataType("|S4") }), /no numbers but bytes32/],
    [
      array("v", ["y", "x"], [5, 5], [5, 5], { dataType: parseDataType("<M8[s]") }),
      /no numbers but datetime64/,
    ],
    [array("v", ["y", "x"], [5, 5], [5, 5], { codecs: [{ id: "bz2", level: 1 }] }), /bz2 is unknown/],
  ];
  for (const [stored, problem] of cases)
    t.match(choose(snapshotOf(stored), "v"), { problem }, String(problem));
});

t.test("takes a large plane from the coarsest overview with as many cells as pixels", async (t) => {
  const level = (path: string, length: number) =>
    array(path, ["t", "y", "x"], [3, length, 2 * length], [1, 100, 100]);
  const overviews = snapshotOf(level("1/v", 1024), level("2/v", 512), level("3/v", 256), level("4/v", 128));
  const snapshot = { ...snapshotOf(level("v", 2048)), overviews } as DatasetSnapshot;
  const choice = chosen(snapshot);
  t.equal(choice.snapshot, overviews);
  // 256 cells of 512 are too many chunks for 320 pixels: 3 × 6 chunks.
  t.equal(choice.array.plan.path, "4/v");
  t.strictSame([choice.boxShape, choice.position, choice.isCentre], [[1, 128, 256], [1, 0, 0], false]);
  const one = {
    ...snapshotOf(level("v", 2048)),
    overviews: snapshotOf(level("1/v", 1024)),
  } as DatasetSnapshot;
  t.match(chosen(one), { array: { plan: { path: "1/v" } }, boxShape: [1, 400, 400], isCentre: true });
  const small = { ...snapshotOf(level("v", 128)), overviews } as DatasetSnapshot;
  t.equal(chosen(small).array.plan.path, "v");
});

t.test("shows the centre of an overview that is made of too many stored chunks", async (t) => {
  const level = (path: string, length: number) => array(path, ["y", "x"], [length, length], [128, 128]);
  const levels = [8192, 4096, 2048, 1024, 512];
  const overviews = snapshotOf(...levels.map((length, index) => level(`${index + 1}/v`, length)));
  const snapshot = { ...snapshotOf(level("v", 16_384)), overviews } as DatasetSnapshot;
  // Sixteen chunks of level 3 are made of 1,024 stored ones, as one of level 5 is.
  t.match(chosen(snapshot), { array: { plan: { path: "3/v" } }, boxShape: [512, 512], isCentre: true });
});

t.test("chooses among the overviews that may be read by the size of the picture", async (t) => {
  const level = (path: string, length: number) => array(path, ["y", "x"], [length, length], [512, 512]);
  const overviews = snapshotOf(level("1/v", 2048), level("2/v", 1024), level("3/v", 512), level("4/v", 256));
  const snapshot = { ...snapshotOf(level("v", 4096)), overviews } as DatasetSnapshot;
  const expected = { 64: "4/v", 256: "4/v", 257: "3/v", 600: "2/v", 1024: "2/v" };
  for (const [size, path] of Object.entries(expected))
    t.equal(chosen(snapshot, "v", Number(size)).array.plan.path, path, size);
});

t.test("has the proportions of its cells, and at least one pixel", async (t) => {
  const sizeOf = (shape: readonly number[], size: number) =>
    Object.values(pictureSize(chosen(snapshotOf(array("v", ["y", "x"], shape))), size));
  t.strictSame(sizeOf([25, 53], 320), [320, 151]);
  t.strictSame(sizeOf([53, 25], 320), [151, 320]);
  t.strictSame(sizeOf([1, 5000], 64), [64, 1]);
  t.strictSame(sizeOf([1, 1], 64), [64, 64]);
});

t.test("an image has all bands, and the overviews of its own file", async (t) => {
  const image = (path: string, length: number) =>
    array(path, ["band", "y", "x"], [3, length, length], [1, 256, 256], { dataType: parseDataType("|u1") });
  const snapshot = snapshotOf(image("photo", 256));
  t.match(chosen(snapshot, "photo"), {
    bands: { axis: 0, count: 3 },
    boxShape: [3, 256, 256],
    isCentre: false,
  });
  t.equal(describePicture(chosen(snapshot, "photo")), "photo");
  const one = choosePicture(snapshot, snapshot.arrays.get("photo") as ServedArray, 64, true);
  t.match(one, { bands: undefined, boxShape: [1, 256, 256] });
  const layout = [{ asset: "photo" }, { asset: "overview_1/photo" }];
  const config = { id: "d", location: "here", immutable: false, encoding: {}, variables: {} };
  const groups = [
    { path: "/", attrs: { multiscales: { layout } }, arrays: [image("photo", 4096)] },
    { path: "/overview_1", attrs: {}, arrays: [image("overview_1/photo", 512)] },
  ];
  const large = createSnapshot(config, storedTree(groups), "no-cache");
  t.match(chosen(large, "photo"), {
    array: { plan: { path: "overview_1/photo" } },
    boxShape: [3, 512, 512],
    isCentre: false,
  });
});

t.test("describes itself, and says if it shows the centre only", async (t) => {
  t.equal(
    describePicture(
      chosen(snapshotOf(array("g/v", ["time", "y", "x"], [2920, 25, 53], [100, 25, 53])), "g/v"),
    ),
    "v at time 1,460 of 2,920",
  );
  t.equal(
    describePicture(chosen(snapshotOf(array("v", ["y", "x"], [1000, 2000], [100, 100])))),
    "v: the centre, 400 × 400 of 1,000 × 2,000 cells",
  );
});

t.test("shows a variable of one dimension as a line, or the centre of it", async (t) => {
  const line = chosen(snapshotOf(array("v", ["time"], [1000], [100])));
  t.match(line, { plane: undefined, boxShape: [1000], position: [0], isCentre: false });
  t.strictSame(pictureSize(line, 200), { width: 200, height: 100 });
  t.equal(describePicture(line), "v");
  const long = chosen(snapshotOf(array("v", ["time"], [10_000], [100])));
  t.match(long, { boxShape: [1600], position: [3], isCentre: true });
  t.equal(describePicture(long), "v: the centre, 1,600 of 10,000 cells");
});

const FIELD: FakeVariable = { dims: ["y", "x"], shape: [4, 5] };
const PLANE = { plane: { y: 0, x: 1 } };

/** Asks for the flips of `v`, of coordinates in the directions given. */
async function flipsOf(variables: Record<string, FakeVariable>, directions: Record<string, -1 | 0 | 1>) {
  const snapshot = fakeSnapshot("d", { variables });
  const asked: string[] = [];
  const flips = await pictureFlips(
    snapshot,
    snapshot.arrays.get("v") as ServedArray,
    PLANE,
    async ({ variable }) => {
      asked.push(variable.name);
      return directions[variable.name] ?? 0;
    },
  );
  return [flips.isFlippedY, flips.isFlippedX, asked.sort().join(" ")];
}

t.test("flips rows whose coordinate ascends, and columns whose coordinate descends", async (t) => {
  const both = { y: { dims: ["y"], shape: [4] }, x: { dims: ["x"], shape: [5] } };
  const height = { dims: ["y"], shape: [4], attrs: { axis: "Z" } };
  const depth = { ...height, attrs: { axis: "Z", positive: "down" } };
  const latitudes = { shape: [4, 5], attrs: { standard_name: "latitude" } };
  const curvilinear = {
    nav_lat: { ...latitudes, dims: ["y", "x"] },
    nav_lon: { ...latitudes, dims: ["y", "x"], attrs: { units: "degrees_east" } },
  };
  const PIXELS = { dims: [], shape: [], attrs: { GeoTransform: "0.0 1.0 0.0 0.0 0.0 1.0" } };
  for (const [variables, directions, ...expected] of [
    [both, { y: 1, x: 1 }, true, false, "x y"],
    [both, { y: -1, x: -1 }, false, true, "x y"],
    [both, { y: 0, x: 0 }, false, false, "x y"],
    // Without a coordinate, and with one of another role.
    [{}, {}, false, false, ""],
    [{ y: height }, { y: 1 }, true, false, "y"],
    [{ y: depth }, { y: 1 }, false, false, "y"],
    [{ y: depth }, { y: -1 }, true, false, "y"],
    [curvilinear, { nav_lat: 1, nav_lon: 1 }, true, false, "nav_lat nav_lon"],
    [curvilinear, { nav_lat: -1, nav_lon: -1 }, false, true, "nav_lat nav_lon"],
    [{ nav_lat: { ...latitudes, dims: ["a", "x"] } }, { nav_lat: 1 }, false, false, ""],
    // An image whose coordinates only count its pixels.
    [{ ...both, spatial_ref: PIXELS }, { y: 1, x: 1 }, false, false, ""],
  ] as [Record<string, FakeVariable>, Record<string, -1 | 0 | 1>, boolean, boolean, string][])
    t.strictSame(await flipsOf({ v: FIELD, ...variables }, directions), expected);
});

t.test("fails with a coordinate that cannot be read", async (t) => {
  const snapshot = fakeSnapshot("d", { variables: { v: FIELD, y: { dims: ["y"], shape: [4] } } });
  const coordinate = snapshot.arrays.get("y") as ServedArray;
  const read = readDirection(coordinate, { values: async () => undefined });
  await t.rejects(read, { code: "source-unreadable", message: /coordinate 'y'/ });
});

t.test("reads the direction from the first and last values", async (t) => {
  const directionOf = async (values: readonly string[], attrs = {}) => {
    const variable = { dims: ["y"], shape: [values.length], type: fakeType("f", 4), attrs };
    const snapshot = fakeSnapshot("d", { variables: { y: variable } });
    const [first, last] = [values.slice(0, 3), values.slice(3)];
    const previews = { values: async () => ({ first, last }) };
    return readDirection(snapshot.arrays.get("y") as ServedArray, previews);
  };
  t.equal(await directionOf(["-90.0", "-89.5", "-89.0", "90.0"]), 1);
  t.equal(await directionOf(["2", "1"]), -1);
  t.equal(await directionOf(["7"]), 0);
  t.equal(await directionOf([]), 0);
  t.equal(await directionOf(["nan", "1.0", "3.0", "nan"]), 1);
  t.equal(await directionOf(["1", "2"], { scale_factor: -0.5 }), -1, "packed");
  t.equal(await directionOf(["-999", "2", "1", "-999"], { _FillValue: -999 }), -1);
  t.equal(await directionOf(["'a'", "'b'"]), 0, "texts");
  t.equal(await directionOf(["2000-01-02T00:00:00", "2000-01-01T00:00:00"]), -1, "dates");
});
