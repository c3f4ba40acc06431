import t from "tap";
import { joinParts } from "../../src/join/join-parts.js";
import type { Item } from "../../src/join/join-values.js";
import { orderParts, type UnorderedPart } from "../../src/join/order-parts.js";
import { effort } from "../support/effort.js";
import { type ArrayInput, arrayOf, describePart, valuesOf } from "./describe-part.js";

const BY_TIME = { kind: "concat", dimension: "time" } as const;

/** A file with a variable `sst` along `time` and `lat`. */
function day(name: string, times: readonly Item[], others: Readonly<Record<string, ArrayInput>> = {}) {
  return describePart(
    name,
    {
      time: { dims: ["time"], values: times, dtype: "<i4", attrs: { units: "days since 2001-01-01" } },
      lat: { dims: ["lat"], values: [10, 20], dtype: "<f4" },
      sst: { dims: ["time", "lat"], shape: [times.length, 2], chunks: [1, 2], dtype: "<i2" },
      ...others,
    },
    { title: name },
  );
}

/** The message of joining files by time. */
function errorOf(...parts: Parameters<typeof joinParts>[0]): string {
  try {
    joinParts(parts, BY_TIME);
  } catch (error) {
    return (error as Error).message;
  }
  return "none";
}

t.test("files are ordered by the first value of their coordinate", async (t) => {
  const tree = joinParts([day("c.nc", [0, 1]), day("a.nc", [5]), day("b.nc", [2, 3, 4])], BY_TIME);
  t.same(tree.order, [0, 2, 1]);
  t.same(tree.steps, [
    { part: 0, start: 0, length: 2 },
    { part: 2, start: 2, length: 3 },
    { part: 1, start: 5, length: 1 },
  ]);
  t.same(valuesOf(tree, "time"), [0, 1, 2, 3, 4, 5]);
  t.same(tree.groups[0]?.attrs, { title: "c.nc" });
  const sst = arrayOf(tree, "sst");
  t.match(sst, { kind: "joined", axis: 0, stored: { shape: [6, 2], chunkShape: [1, 2], variants: [[]] } });
  t.same(sst?.kind === "joined" && sst.spans.map(({ isPassed }) => isPassed), [true, true, true]);
  t.match(arrayOf(tree, "lat"), { kind: "part", part: 0 });
  t.same(tree.refused, []);
  t.same(tree.warnings, []);
});

t.test("descending files stay descending", async (t) => {
  const tree = joinParts([day("a.nc", [1, 0]), day("b.nc", [4, 3, 2])], BY_TIME);
  t.same(valuesOf(tree, "time"), [4, 3, 2, 1, 0]);
  t.equal(
    errorOf(day("a.nc", [1, 0]), day("b.nc", [3, 4])),
    "expected values of 'time' to descend in b.nc, as in a.nc; they ascend",
  );
  t.match(
    errorOf(day("a.nc", [1, 3, 2])),
    "a.nc: expected values of 'time' to ascend from step to step, received 3 (2001-01-04T00:00:00) before 2",
  );
});

t.test("without a coordinate, files are in natural order of their names", async (t) => {
  const part = (name: string) =>
    describePart(name, { a: { dims: ["time", "x"], shape: [2, 3], chunks: [2, 3] } });
  const tree = joinParts([part("run-10.nc"), part("run-9.nc"), part("run-1.nc")], BY_TIME);
  t.same(tree.order, [2, 1, 0]);
  t.equal(arrayOf(tree, "a")?.stored.shape[0], 6);
});

t.test("values that overlap are refused, naming both files", async (t) => {
  t.equal(
    errorOf(day("a.nc", [0, 1, 2]), day("b.nc", [2, 3])),
    "expected files whose values of 'time' do not overlap, received 0 (2001-01-01T00:00:00) to 2 (2001-01-03T00:00:00) in a.nc " +
      "and 2 (2001-01-03T00:00:00) to 3 (2001-01-04T00:00:00) in b.nc",
  );
});

t.test("files without steps give none, and are compared with none", async (t) => {
  const empty = day("a.nc", [], { lat: { dims: ["lat"], values: [1, 2, 3] } });
  const tree = joinParts([empty, day("b.nc", [3])], BY_TIME);
  t.same(tree.order, [1, 0]);
  t.same(
    tree.steps.map(({ part }) => part),
    [1],
  );
  t.equal(arrayOf(joinParts([day("a.nc", []), day("b.nc", [])], BY_TIME), "sst")?.stored.shape[0], 0);
});

t.test("other dimensions have equal lengths and values, or the dataset is refused", async (t) => {
  const lat = (values: readonly number[], dtype = "<f4") => ({ lat: { dims: ["lat"], values, dtype } });
  t.equal(
    errorOf(day("a.nc", [0]), day("b.nc", [1], lat([10, 21]))),
    "expected 'lat' of b.nc to be that of a.nc, whose item 1 is 20, received 21",
  );
  const longer = { ...lat([10, 20, 30]), sst: { dims: ["time", "lat"], shape: [1, 3] } };
  t.equal(
    errorOf(day("a.nc", [0]), day("b.nc", [1], longer)),
    "expected 2 steps along 'lat' in b.nc, as in a.nc, received 3 ('lat')",
  );
  t.same(joinParts([day("a.nc", [0]), day("b.nc", [1], lat([10, 20], ">f8"))], BY_TIME).refused, []);
  const withNaN = [day("a.nc", [0], lat([10, Number.NaN])), day("b.nc", [1], lat([10, Number.NaN], "<f8"))];
  t.same(joinParts(withNaN, BY_TIME).refused, []);
});

t.test("an array whose files differ is refused, and the others are served", async (t) => {
  const along = (dims: string[], more: Partial<ArrayInput> = {}): ArrayInput => ({
    ...{ dims, shape: dims.map((name) => (name === "time" ? 1 : 2)) },
    ...more,
  });
  const time = (more: Partial<ArrayInput> = {}) => along(["time"], more);
  const units = (units: string) => time({ attrs: { units } });
  const cases: readonly [ArrayInput | undefined, ArrayInput | undefined, string][] = [
    [time(), along(["time", "lat"]), "dimensions [time] in b.nc, as in a.nc, received [time, lat]"],
    [along(["lat"]), time(), "dimensions [lat] in b.nc, as in a.nc, received [time]"],
    [time(), undefined, "an array in b.nc, as in a.nc, received none"],
    [undefined, time(), "an array in a.nc, as in b.nc, received none"],
    [units("K"), units("degC"), "units 'K' in b.nc, as in a.nc, received 'degC'"],
    [
      units("days since 2001-01-01"),
      units("days since 2002-01-01"),
      "units 'days since 2001-01-01' in b.nc, as in a.nc, received 'days since 2002-01-01'",
    ],
    [time({ dtype: "<i8" }), time({ dtype: "<f8" }), "type int64 in b.nc, as in a.nc, received float64"],
    [time({ dtype: "|S4" }), time({ dtype: "<f8" }), "type |S4 in b.nc, as in a.nc, received float64"],
  ];
  for (const [a, b, expected] of cases) {
    const tree = joinParts([day("a.nc", [0], a && { x: a }), day("b.nc", [1], b && { x: b })], BY_TIME);
    t.same(tree.refused, [{ path: "x", reason: `expected ${expected}` }]);
    const names = tree.groups[0]?.arrays.map(({ stored }) => stored.name);
    t.same(names, ["lat", "sst", "time"]);
  }
});

t.test("an array that one file cannot serve is refused with its reason", async (t) => {
  const x = { dims: ["time"], shape: [1] };
  const b = { ...day("b.nc", [1]), refused: [{ path: "x", reason: "unknown filter" }] };
  t.same(joinParts([day("a.nc", [0], { x }), b], BY_TIME).refused, [
    { path: "x", reason: "b.nc: unknown filter" },
  ]);
  const both = [b, { ...day("c.nc", [2]), refused: [{ path: "x", reason: "other" }] }];
  t.same(joinParts(both, BY_TIME).refused, [{ path: "x", reason: "b.nc: unknown filter" }]);
});

t.test("a dimension that a file lacks refuses the dataset", async (t) => {
  const b = describePart("b.nc", { lat: { dims: ["lat"], values: [10, 20] } });
  t.equal(
    errorOf(day("a.nc", [0]), b),
    "expected arrays along 'time' in b.nc, as in a.nc, received arrays along lat",
  );
  t.equal(errorOf(b), "expected arrays along 'time' in b.nc, received arrays along lat");
  t.equal(
    errorOf(day("a.nc", [0]), day("b.nc", [1], { time: { dims: ["time"], shape: [1] } })),
    "expected a coordinate 'time' in b.nc, as in a.nc, received none",
  );
});

t.test("groups follow the order of the first one that has the dimension", async (t) => {
  const part = (name: string, times: readonly number[], months: readonly number[]) =>
    describePart(name, {
      time: { dims: ["time"], values: times },
      "model/t2m": { dims: ["time"], shape: [times.length] },
      "monthly/time": { dims: ["time"], values: months },
      "monthly/mean": { dims: ["time"], shape: [months.length] },
      "fixed/mask": { dims: ["x"], shape: [3] },
    });
  const tree = joinParts([part("b.nc", [3, 4, 5], [1]), part("a.nc", [1, 2], [0])], BY_TIME);
  t.same(
    tree.groups.map(({ path }) => path),
    ["/", "/fixed", "/model", "/monthly"],
  );
  t.equal(arrayOf(tree, "model/t2m")?.stored.shape[0], 5);
  t.match(arrayOf(tree, "fixed/mask"), { kind: "part", part: 1 });
  const reason = "expected 2 steps along 'time' in a.nc, as its other arrays have, received 1";
  t.same(tree.refused, [
    { path: "monthly/time", reason },
    { path: "monthly/mean", reason },
  ]);
  const same = joinParts([part("b.nc", [3], [1]), part("a.nc", [1, 2], [4, 6])], BY_TIME);
  t.same(valuesOf(same, "monthly/time"), [4, 6, 1]);
  t.equal(arrayOf(same, "monthly/mean")?.stored.shape[0], 3);
});

const random = (below: number) => Math.floor(Math.random() * below);

/** Returns parts whose values ascend or descend; those of one part are different. */
function randomParts(): { parts: UnorderedPart[]; values: number[][]; isDescending: boolean } {
  const isDescending = Math.random() < 0.5;
  const values = Array.from({ length: 1 + random(6) }, () => {
    const own = new Set(Array.from({ length: random(8) }, () => random(20)));
    return [...own].sort((a, b) => (isDescending ? b - a : a - b));
  });
  // One value says nothing of the direction.
  if (!values.some((own) => own.length > 1)) return randomParts();
  const parts = values.map((own, part) => ({
    part,
    name: `${random(20)}-${part}.nc`,
    length: own.length,
    keys: Float64Array.from(own),
    textOf: (step: number) => String(own[step]),
  }));
  return { parts, values, isDescending };
}

t.test("parts that overlap are refused, and others are not", async (t) => {
  for (let round = 0; round < effort(2000); round++) {
    const { parts, values, isDescending } = randomParts();
    const sign = isDescending ? -1 : 1;
    const full = values.filter((own) => own.length > 0);
    full.sort((a, b) => sign * ((a[0] as number) - (b[0] as number)));
    const all = full.flat();
    const isOrdered = all.every(
      (value, index) => index === 0 || sign * (value - (all[index - 1] as number)) > 0,
    );
    if (isOrdered) t.equal(orderParts(parts, "time").length, parts.length);
    else t.throws(() => orderParts(parts, "time"), { code: "invalid-metadata" });
  }
});

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
      { part: 1, start: 0, length: 1, isPassed: true },
      { part: 0, start: 1, length: 1, isPassed: true },
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
