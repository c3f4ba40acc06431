import t from "tap";
import { joinParts } from "../../src/join/join-parts.js";
import { type ArrayInput, arrayOf, describePart, valuesOf } from "./describe-part.js";

const BY_RUN = { kind: "stack", dimension: "run" } as const;

/** A run with a variable `sst` along `time` and `lat`. */
function run(name: string, others: Readonly<Record<string, ArrayInput>> = {}) {
  return describePart(name, {
    time: { dims: ["time"], values: [0, 1] },
    sst: {
      dims: ["time", "lat"],
      shape: [2, 3],
      chunks: [1, 3],
      attrs: { coordinates: "area", grid_mapping: "crs" },
    },
    crs: { dims: [], values: [4326] },
    area: { dims: ["lat"], shape: [3] },
    ...others,
  });
}

t.test("each file is one step of a new dimension, in natural order of the names", async (t) => {
  const tree = joinParts([run("run-10.nc"), run("run-9.nc")], BY_RUN);
  t.same(tree.order, [1, 0]);
  t.match(arrayOf(tree, "sst"), {
    kind: "joined",
    axis: 0,
    stored: {
      shape: [2, 2, 3],
      chunkShape: [1, 1, 3],
      axisOrder: [0, 1, 2],
      dimNames: ["run", "time", "lat"],
    },
    spans: [
      { part: 1, start: 0, length: 1, from: 0, isPassed: true },
      { part: 0, start: 1, length: 1, from: 0, isPassed: true },
    ],
  });
  for (const path of ["time", "crs", "area"]) t.match(arrayOf(tree, path), { kind: "part", part: 1 });
  t.equal(arrayOf(tree, "run"), undefined);
});

t.test("a coordinate orders the files", async (t) => {
  const parts = [run("a.nc"), run("b.nc"), run("c.nc")];
  const numbers = joinParts(parts, { ...BY_RUN, coordinate: [3, 1, 2] });
  t.same(numbers.order, [1, 2, 0]);
  t.same(valuesOf(numbers, "run"), [1n, 2n, 3n]);
  t.match(arrayOf(numbers, "run")?.stored, { shape: [3], dimNames: ["run"] });
  t.same(valuesOf(joinParts(parts, { ...BY_RUN, coordinate: [0.5, 2, 1] }), "run"), [0.5, 1, 2]);
  const texts = joinParts(parts, { ...BY_RUN, coordinate: ["ctl", "rcp45", "hist"] });
  t.same(valuesOf(texts, "run"), ["ctl", "hist", "rcp45"]);
  t.equal(arrayOf(texts, "run")?.stored.dataType.zarr, "<U5");
  t.throws(() => joinParts(parts, { ...BY_RUN, coordinate: [1, 2, 1] }), {
    message: /received 1 in a\.nc and 1 in c\.nc/,
  });
});

t.test("scalars get the dimension if they differ, and one of its name becomes the coordinate", async (t) => {
  const member = (name: string, number: number, reference: number) =>
    run(name, {
      run: { dims: [], values: [number], dtype: "<i2" },
      reference: { dims: [], values: [reference], attrs: { units: `hours since 2001-01-0${number}` } },
    });
  const tree = joinParts([member("a.nc", 2, 0), member("b.nc", 1, 6)], BY_RUN);
  t.same(tree.order, [1, 0]);
  t.same(valuesOf(tree, "run"), [1, 2]);
  t.same(valuesOf(tree, "reference"), [6, 24]);
  t.match(arrayOf(joinParts([member("a.nc", 2, 0)], BY_RUN), "run"), { kind: "values" });
});

t.test("coordinates of other dimensions have to be equal", async (t) => {
  const other = run("b.nc", { time: { dims: ["time"], values: [0, 2] } });
  t.throws(() => joinParts([run("a.nc"), other], BY_RUN), {
    message: "expected 'time' of b.nc to be that of a.nc, whose item 1 is 1, received 2",
  });
});

t.test("axes keep their order in the bytes of chunks", async (t) => {
  const order = (axisOrder: readonly number[]) => {
    const sst = { dims: ["time", "lat"], shape: [2, 3], axisOrder };
    return arrayOf(joinParts([run("a.nc", { sst })], BY_RUN), "sst")?.stored.axisOrder;
  };
  t.same(order([0, 1]), [0, 1, 2]);
  t.same(order([1, 0]), [2, 1, 0]);
});

t.test("a dimension that files have already is not stacked", async (t) => {
  t.throws(() => joinParts([run("a.nc")], { kind: "stack", dimension: "time" }), {
    message:
      "expected parts without a dimension 'time', which is to be new, received array 'time' of a.nc with it",
  });
});

t.test("each group with stacked arrays has the coordinate", async (t) => {
  const part = (name: string) => describePart(name, { "a/b": { dims: ["x"], shape: [3] } });
  const tree = joinParts([part("a.nc"), part("b.nc")], { ...BY_RUN, coordinate: [1, 2] });
  t.same(valuesOf(tree, "a/run"), [1n, 2n]);
  t.equal(arrayOf(tree, "run"), undefined);
});
