import t from "tap";
import { datasetOf, flatSource, nestedSource } from "../../support/datasets/sample-tree.js";
import { openExplore } from "../../support/explore/explore-client.js";

const DATASETS = [datasetOf("flat", flatSource()), datasetOf("nested", nestedSource())];

t.test("a dataset is described", async (t) => {
  const { opened } = await openExplore(t, { datasets: DATASETS }, "flat");
  const { variables } = opened.dataset;
  t.match(
    variables.find(({ path }) => path === "t"),
    {
      path: "t",
      dims: ["y", "x"],
      shape: [3, 5],
      units: "K",
      form: "image",
      plane: { y: 0, x: 1 },
      packing: { missing: [-1], scale: 0.5 },
      levels: [],
    },
  );
  t.same(
    variables.map(({ path, form, isCoordinate }) => [path, form, isCoordinate]),
    [
      ["crs", "text", false],
      ["t", "image", false],
      ["x", "plot", true],
      ["y", "plot", true],
    ],
  );
});

t.test("axis, picture, range, value, series and text of a small store", async (t) => {
  const { client } = await openExplore(t, { datasets: DATASETS }, "flat");
  const axis = await client.ask({ kind: "axis", variable: "t", axis: 1 }, "axis");
  t.same([...axis.values.numbers!], [0, 1, 2, 3, 4]);
  const selection = { variable: "t", at: [0, 0] };
  const axes = { x: 1, y: 0 };
  const frame = await client.ask(
    {
      kind: "show",
      selection,
      axes,
      viewport: {
        box: { left: -1.5, right: 4.5, bottom: -0.5, top: 2.5 },
        width: 6,
        height: 3,
        inCells: true,
      },
      range: { low: 0.5, high: 7.5, isLog: false },
      isMoving: false,
      isConfirmed: false,
    },
    "frame",
  );
  const byte = (value: number) => 2 + Math.round(((value - 0.5) / 7) * 251);
  const rows = [11, 6, 1].map((begin) => [
    0,
    ...Array.from({ length: 5 }, (_, index) => byte((begin + index) / 2)),
  ]);
  t.same([...frame.pixels], rows.flat(), "the greatest coordinate is at the top");
  t.match(frame, { done: 6, total: 6, level: 0, cells: 15, missing: 0 });
  const range = await client.ask({ kind: "range", selection, axes, percentiles: [2, 98] }, "range");
  t.match(range, { least: 0.5, greatest: 7.5 });
  const value = await client.ask({ kind: "probe", selection, axes, x: 4, y: 2, inCells: true }, "value");
  t.match(value, { cell: [2, 4], value: 7.5, text: "7.5" });
  const series = await client.ask({ kind: "series", selection, along: 1, isConfirmed: false }, "series");
  t.same([...series.values], [0.5, 1, 1.5, 2, 2.5]);
  const text = await client.ask({ kind: "text", variable: "y", maxCount: 2 }, "text");
  t.match(text, { texts: ["0", String(2n ** 60n)], length: 3 });
  t.match(await client.ask({ kind: "text", variable: "crs", maxCount: 9 }, "text"), {
    texts: ["7"],
    length: 1,
  });
});
