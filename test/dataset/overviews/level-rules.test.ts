import t from "tap";
import {
  lengthAt,
  levelAttributes,
  levelCount,
  levelRule,
  withoutPlaces,
} from "../../../src/dataset/overviews/level-array.js";
import { horizontalDims, regularAxis } from "../../../src/dataset/overviews/level-grids.js";
import type { Group, Variable } from "../../../src/model/data-tree.js";
import { type FakeGroup, fakeSnapshot, fakeType } from "../../support/datasets/fake-snapshot.js";

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

t.test("a coordinate of a group holds for the groups below it", async (t) => {
  const variables = {
    a: { dims: ["a"], shape: [3], attrs: NORTH },
    b: { dims: ["b"], shape: [4], attrs: EAST },
  };
  const groups = { below: { variables: { v: { dims: ["a", "b"], shape: [3, 4] } } } };
  t.same(dimsOf({ variables, groups }), ["a", "b"]);
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
