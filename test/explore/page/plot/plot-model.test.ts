import { setImmediate } from "node:timers/promises";
import t from "tap";
import { ExploreModel } from "../../../../src/explore/page/model.js";
import {
  alongOf,
  histogramShown,
  PlotModel,
  seriesShown,
} from "../../../../src/explore/page/plot/plot-model.js";
import { parseViewHash } from "../../../../src/explore/page/view-hash.js";
import { WorkerClient } from "../../../../src/explore/page/worker-client.js";
import { AXES, DATASET, describeVariable, StubWorker } from "../../../support/explore/stub-worker.js";

const SOURCE = {
  store: "http://x/zarr/",
  overviews: undefined,
  group: "",
  dataset: "x",
  title: "x",
  page: "http://x/",
  coasts: { coarse: "", fine: "" },
  token: undefined,
};

const RANGE = { low: 240, high: 300, isDiverging: false };
const FOUND = {
  kind: "range",
  range: RANGE,
  least: 230,
  greatest: 310,
  bins: [1, 3],
  count: 4,
  missing: 2,
} as const;

async function settle(): Promise<void> {
  for (let turn = 0; turn < 8; turn++) await setImmediate();
}

/** Opens a model on a stub that finds every place at row 11 and column 20; series are answered by the test. */
async function open(hash: string, variables = DATASET.variables) {
  const worker = new StubWorker();
  worker.on("open", () => ({ kind: "opened", dataset: { attrs: {}, variables } }));
  worker.on("axis", ({ axis }) => ({ kind: "axis", values: AXES[axis]!, curvilinearExtent: undefined }));
  worker.on("range", () => FOUND);
  worker.on("probe", ({ selection }) => ({
    kind: "value",
    cell: [selection.at[0] ?? 0, 11, 20],
    x: 80,
    y: 44,
    value: 280,
    text: "280",
  }));
  const model = new ExploreModel(new WorkerClient(worker), SOURCE);
  model.view.value = parseViewHash(hash).view;
  model.camera.canvas.value = { width: 36, height: 18, ratio: 1 };
  await model.open();
  await settle();
  const plot = new PlotModel(model);
  await settle();
  return { worker, model, plot };
}

t.test("a series is read along time at the place of the probe, and drawn as it comes", async (t) => {
  const { worker, plot } = await open("v=t2m&p=80,44");
  const [request] = worker.of("series");
  t.match(request, { selection: { variable: "t2m", at: [0, 11, 20] }, along: 0, isConfirmed: false });
  t.ok(plot.series.value.isReading);
  const values = new Float64Array(8).fill(Number.NaN);
  values[0] = 281;
  worker.answer(request!.id, { kind: "series", values, done: 1, total: 8 });
  t.match(plot.series.value, { values, done: 1, total: 8, isReading: true });
  worker.answer(request!.id, { kind: "series", values: new Float64Array(8), done: 8, total: 8 });
  t.match(plot.series.value, { done: 8, isReading: false });
});

t.test("moving in time reads nothing again; another axis does, and ends the one before", async (t) => {
  const { worker, model, plot } = await open("v=t2m&p=80,44");
  const place = plot.place.value;
  model.setStep(0, 5);
  await settle();
  t.equal(worker.of("series").length, 1);
  t.equal(plot.place.value, place);
  model.setProbe({ x: 80, y: 44, along: "lat", plot: "series" });
  await settle();
  t.match(worker.of("series")[1], { selection: { at: [5, 11, 20] }, along: 1 });
  t.match(worker.of("cancel"), [{ request: worker.of("series")[0]?.id }]);
});

t.test("what is much is read if that is wanted, and can be stopped", async (t) => {
  const { worker, plot } = await open("v=t2m&p=80,44");
  worker.answer(worker.of("series")[0]!.id, { kind: "too-much", chunks: 2920, bytes: 1.1e9 });
  t.match(plot.series.value, { tooMuch: { chunks: 2920 }, isReading: false, values: undefined });
  plot.confirm();
  const confirmed = worker.of("series")[1]!;
  t.ok(confirmed.isConfirmed);
  worker.answer(confirmed.id, { kind: "series", values: new Float64Array(8), done: 3, total: 8 });
  plot.cancel();
  t.match(plot.series.value, { done: 3, total: 8, isReading: false });
  t.match(worker.of("cancel"), [{ request: confirmed.id }]);
});

t.test("a failure is told, and what was read before stays", async (t) => {
  const { worker, plot } = await open("v=t2m&p=80,44");
  const { id } = worker.of("series")[0]!;
  worker.answer(id, { kind: "series", values: new Float64Array(8), done: 2, total: 8 });
  worker.answer(id, { kind: "failed", sentence: "Damaged.", requestId: "7f", mayRetry: true });
  t.match(plot.series.value, {
    done: 2,
    failure: { sentence: "Damaged.", requestId: "7f" },
    isReading: false,
  });
});

t.test("a histogram is of what is visible", async (t) => {
  const { worker, model, plot } = await open("v=t2m&p=80,44&plot=histogram");
  t.equal(worker.of("series").length, 0);
  const request = worker.of("range").at(-1);
  t.match(request, {
    selection: { variable: "t2m" },
    axes: { x: 2, y: 1 },
    viewport: model.camera.viewport.value,
  });
  t.same(plot.histogram.value.found?.bins, [1, 3]);
  plot.isOfVariable.value = true;
  await settle();
  t.notOk(worker.of("range").at(-1)?.viewport, "or of the whole variable");
  plot.isOfVariable.value = false;
  await settle();
  plot.close();
  const count = worker.of("range").length;
  model.setStep(0, 3);
  await settle();
  t.equal(worker.of("range").length, count, "a closed plot reads nothing");
});

t.test("the axis of a series is time, else height, else one that is not shown", async (t) => {
  const axis = { role: undefined, isLatitude: false, isLongitude: false, coordinate: undefined, length: 5 };
  const variable = describeVariable("q", {
    dims: ["member", "level", "y", "x"],
    axes: [
      { ...axis, dim: "member" },
      { ...axis, dim: "level", role: "Z" },
      { ...axis, dim: "y" },
      { ...axis, dim: "x" },
    ],
  });
  const shown = { x: 3, y: 2 };
  t.equal(alongOf(variable, undefined, shown), 1);
  t.equal(alongOf(variable, "member", shown), 0);
  t.equal(alongOf(variable, "no such", shown), 1);
  t.equal(alongOf(describeVariable("t2m"), undefined, { x: 2, y: 1 }), 0);
  const flat = describeVariable("mask", { dims: ["y", "x"], axes: variable.axes.slice(2) });
  t.equal(alongOf(flat, undefined, { x: 1, y: 0 }), 1, "along a picture without other axes");
});

t.test("plots say what they show, with gaps for what is missing", async (t) => {
  const { plot } = await open("v=t2m&p=80,44");
  const clicked: number[] = [];
  const values = Float64Array.of(1, Number.NaN, 3, 4, 5, 6, 7, 8);
  const shown = seriesShown(plot.place.value!, values, false, (cell) => clicked.push(cell));
  t.equal(shown.name, "t2m along time");
  t.equal(shown.place, "44°N, 80°E");
  t.equal(shown.content.values[1], null);
  t.equal(shown.textOf(0), "2013-01-01 00:00: 1 K");
  t.equal(shown.textOf(1), "2013-01-01 06:00: missing");
  t.match(shown.summary, "8 values from 1 K to 8 K, 1 missing");
  shown.onClick(2);
  t.same(clicked, [2]);
  const histogram = histogramShown(describeVariable("t2m"), FOUND, false, "what is visible");
  t.equal(histogram.textOf(1), "270 to 310 K: 3 values");
  t.equal(histogram.summary, "4 values, 2 missing");
});

t.test("a coordinate is plotted by index, and times as dates", async (t) => {
  const time = describeVariable("time", {
    form: "plot",
    dims: ["time"],
    shape: [8],
    axes: [{ ...describeVariable("t2m").axes[0]!, coordinate: "time" }],
    plane: undefined,
    attrs: { units: "hours since 2013-01-01" },
    units: undefined,
  });
  const { plot } = await open("v=time", [time]);
  const shown = seriesShown(plot.place.value!, AXES[0]!.numbers!, false, () => {});
  t.equal(shown.name, "time along index");
  t.same([...(shown.content.positions as Float64Array)], [0, 1, 2, 3, 4, 5, 6, 7]);
  t.equal(shown.content.valueTick?.(6), "2013-01-01 06:00");
  t.equal(shown.textOf(1), "1: 2013-01-01T06:00:00");
  t.ok(shown.csv().startsWith("index,time\r\n0,2013-01-01T00:00:00\r\n"));
});
