import { setImmediate } from "node:timers/promises";
import t from "tap";
import { packingOf } from "../../src/cf/packing.js";
import {
  cellOfPosition,
  createPlotAxis,
  placeText,
  plotValues,
  type SeriesPlace,
  seriesSummary,
  zoomedAbout,
} from "../../src/explore/page/plot/plot-axis.js";
import { alongOf, histogramShown, PlotModel, seriesShown } from "../../src/explore/page/plot/plot-model.js";
import { csvText, histogramCsv, seriesCsv } from "../../src/explore/page/plot/save-csv.js";
import {
  type AxisDescription,
  type AxisValues,
  INDEX_AXIS,
  type VariableDescription,
} from "../../src/explore/protocol.js";
import type { JsonObject } from "../../src/json/json-value.js";
import { parseDataType } from "../../src/model/data-type.js";
import {
  AXES,
  axisValues,
  DATASET,
  describeVariable,
  FOUND,
  openModel,
} from "../support/explore/stub-worker.js";

function description(dim: string, length: number, role?: AxisDescription["role"]): AxisDescription {
  return { dim, length, role, coordinate: dim, isLatitude: false, isLongitude: false };
}

t.test("a descending axis is plotted in ascending order, with its values", async (t) => {
  const axis = createPlotAxis(
    description("lat", 3, "Y"),
    axisValues([75, 72.5, 70], { units: "degrees_north" }),
  );
  t.equal(axis.label, "lat [°N]");
  t.strictSame([...axis.positions], [70, 72.5, 75]);
  t.strictSame(plotValues(axis, [1, Number.NaN, 3], false), [3, null, 1]);
  t.equal(cellOfPosition(axis, 0), 2);
  t.notOk(axis.isVertical);
});

t.test("times are days of their calendar", async (t) => {
  const axis = createPlotAxis(
    description("time", 2, "T"),
    axisValues([0, 720], { texts: ["2001-02-30T00:00:00", "2001-03-30T00:00:00"], calendar: "360_day" }),
  );
  t.equal((axis.positions[1] as number) - (axis.positions[0] as number), 30);
  t.equal(axis.label, "time");
  t.ok(axis.calendar);
});

t.test("heights are upright; depths and pressures point down", async (t) => {
  const axisOf = (dim: string, units: string, attrs?: JsonObject) => {
    const axis = createPlotAxis(description(dim, 2, "Z"), axisValues([1, 2], { units }), attrs);
    return [axis.isVertical, axis.isDownward];
  };
  t.strictSame(axisOf("depth", "m", { positive: "down" }), [true, true]);
  t.strictSame(axisOf("height", "m"), [true, false]);
  t.strictSame(axisOf("plev", "hPa"), [true, true]);
  t.strictSame(axisOf("plev", "hPa", { positive: "up" }), [true, false]);
});

t.test("values without order, with gaps, or as texts are plotted by index", async (t) => {
  for (const numbers of [
    [1, 3, 2],
    [1, Number.NaN, 2],
  ])
    t.strictSame([...createPlotAxis(description("x", 3), axisValues(numbers)).positions], [0, 1, 2]);
  const named = createPlotAxis(description("x", 2), { ...INDEX_AXIS, texts: ["a", "b"] });
  t.strictSame(named.names, ["a", "b"]);
  t.strictSame([...named.positions], [0, 1]);
});

t.test("values that have no logarithm are gaps", async (t) => {
  const axis = createPlotAxis(description("x", 4), INDEX_AXIS);
  t.strictSame(plotValues(axis, [1, 0, -1, Number.POSITIVE_INFINITY], true), [1, null, null, null]);
  t.strictSame(plotValues(axis, [1, 0, -1], false), [1, 0, -1, null], "what is not read yet is a gap");
});

t.test("an axis is enlarged about the value that is read, and within its ends", async (t) => {
  const positions = Float64Array.of(0, 2, 4, 10);
  t.same(zoomedAbout(positions, undefined, undefined, 0.5), { low: 2.5, high: 7.5 });
  t.same(zoomedAbout(positions, undefined, 2, 0.5), { low: 1.5, high: 6.5 });
  t.same(zoomedAbout(positions, { low: 0, high: 5 }, 3, 0.5), { low: 7.5, high: 10 });
  t.equal(zoomedAbout(positions, { low: 0, high: 5 }, 0, 2), undefined, "all of it");
});

async function settle(): Promise<void> {
  for (let turn = 0; turn < 8; turn++) await setImmediate();
}

/** Opens a model on a stub that finds every place at row 11 and column 20; series are answered by the test. */
async function open(hash: string, variables = DATASET.variables) {
  const { worker, model } = await openModel(hash, variables, 1);
  const found = { kind: "value", x: 80, y: 44, value: 280, text: "280" } as const;
  worker.on("probe", ({ selection }) => ({ ...found, cell: [selection.at[0] ?? 0, 11, 20] }));
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
  plot.close();
  const count = worker.of("range").length;
  model.setStep(0, 3);
  await settle();
  t.equal(worker.of("range").length, count, "a closed plot reads nothing");
});

t.test("the axis of a series is time, else height, else one that is not shown", async (t) => {
  const axis = { isLatitude: false, isLongitude: false, coordinate: undefined, length: 5 };
  const variable = describeVariable("q", {
    dims: ["member", "level", "y", "x"],
    axes: ["member", "level", "y", "x"].map((dim) => ({
      ...axis,
      dim,
      role: dim === "level" ? "Z" : undefined,
    })),
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
  t.equal(shown.values[1], null);
  t.equal(shown.textOf(0), "2013-01-01 00:00: 1 K");
  t.equal(shown.textOf(1), "2013-01-01 06:00: missing");
  t.match(shown.summary, "8 values from 1 K to 8 K, 1 missing");
  shown.onClick(2);
  t.same(clicked, [2]);
  const histogram = histogramShown(describeVariable("t2m"), FOUND, false, "of the visible cells");
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
  t.same([...shown.axis.positions], [0, 1, 2, 3, 4, 5, 6, 7]);
  t.equal(shown.valueTick?.(6), "2013-01-01 06:00");
  t.equal(shown.textOf(1), "1: 2013-01-01T06:00:00");
  t.ok(shown.csv().startsWith("index,time\r\n0,2013-01-01T00:00:00\r\n"));
});

function variableOf(dtype: string, attrs: JsonObject = {}): VariableDescription {
  const [time, lat] = describeVariable("air").axes;
  return describeVariable("air", {
    dims: ["time", "lat", "station"],
    shape: [3, 2, 2],
    dataType: parseDataType(dtype),
    attrs,
    packing: packingOf(attrs),
    units: typeof attrs.units === "string" && !attrs.units.includes("since") ? attrs.units : undefined,
    axes: [
      { ...time!, length: 3 },
      { ...lat!, length: 2 },
      { ...description("station", 2), coordinate: undefined },
    ],
  });
}

const VALUES: readonly AxisValues[] = [
  axisValues([58, 59, 60], {
    texts: ["2001-02-28T12:00:00", "2001-02-29T12:00:00", "2001-02-30T12:00:00"],
    calendar: "360_day",
  }),
  axisValues([Math.fround(0.1), -45.5], { units: "degrees_north" }),
  INDEX_AXIS,
];

function placeOf(variable: VariableDescription, along: number, at: readonly number[]): SeriesPlace {
  const axis = createPlotAxis(variable.axes[along]!, VALUES[along] as AxisValues);
  return { variable, values: VALUES, at, along, axis, onGrid: undefined };
}

t.test("a series is saved with dates of its calendar, units, and its place", async (t) => {
  const place = placeOf(variableOf("<f4", { units: "degK" }), 0, [2, 0, 1]);
  t.equal(
    seriesCsv(place, Float64Array.of(Math.fround(281.3), Number.NaN, -1)),
    `time,air [degK],lat [degrees_north],station
2001-02-28T12:00:00,281.3,0.1,1
2001-02-29T12:00:00,,0.1,1
2001-02-30T12:00:00,-1,0.1,1
`.replaceAll("\n", "\r\n"),
  );
  t.equal(placeText(place), "0.1°N, station 1");
});

t.test("packed values and axes without coordinates are saved as they are shown", async (t) => {
  const packed = variableOf("<i2", { scale_factor: 0.01, add_offset: 273.15 });
  const place = placeOf(packed, 2, [1, 1, 0]);
  t.equal(
    seriesCsv(place, Float64Array.of(2815 * 0.01 + 273.15, 273.15)),
    "station,air,time,lat [degrees_north]\r\n0,301.3,2001-02-29T12:00:00,-45.5\r\n1,273.15,2001-02-29T12:00:00,-45.5\r\n",
  );
  t.equal(placeText(place), "2001-02-29 12:00, 45.5°S");
});

t.test("a place on a curvilinear grid has its latitude and longitude", async (t) => {
  const onGrid = { latitude: 47.5, longitude: 8.25 };
  const place = { ...placeOf(variableOf("<f4"), 0, [0, 1, 0]), onGrid };
  t.equal(placeText(place), "45.5°S, station 0, 47.5°N, 8.25°E");
  t.match(
    seriesCsv(place, Float64Array.of(1, 2, 3)),
    "station,latitude [degrees_north],longitude [degrees_east]\r\n2001-02-28T12:00:00,1,-45.5,0,47.5,8.25\r\n",
  );
});

t.test("a summary says how many values there are, from least to greatest", async (t) => {
  const variable = variableOf("<f4", { units: "K" });
  t.equal(seriesSummary(variable, [3.25, null, 1, 1234.5678]), "4 values from 1 K to 1234.6 K, 1 missing");
  t.equal(seriesSummary(variable, [null]), "1 value, all missing");
});

t.test("a histogram is saved with the bounds of its bins", async (t) => {
  const found = { ...FOUND, least: 0, greatest: 0.3, bins: [4, 0, 1], count: 5 };
  t.equal(
    histogramCsv(variableOf("<f4", { units: "K" }), found),
    "air from [K],air to [K],count\r\n0,0.1,4\r\n0.1,0.2,0\r\n0.2,0.3,1\r\n",
  );
});

t.test("commas, quotes, line ends and outer spaces are quoted", async (t) => {
  const values = ['a "b"', "c,d", "e\nf", " g", "plain", undefined];
  t.equal(
    csvText([{ name: "name, of it", values }], values.length),
    '"name, of it"\r\n"a ""b"""\r\n"c,d"\r\n"e\nf"\r\n" g"\r\nplain\r\n\r\n',
  );
});
