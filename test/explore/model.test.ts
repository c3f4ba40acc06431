import { setImmediate, setTimeout } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import t, { type Test } from "tap";
import { packingOf } from "../../src/cf/packing.js";
import { COLOUR_SCALES, type ColourScaleName } from "../../src/colour/colour-scales.js";
import { cellAxis, createAxis, indexAt } from "../../src/explore/axis.js";
import { shortBox } from "../../src/explore/page/map/camera.js";
import { chosenVariable } from "../../src/explore/page/resolve-view.js";
import { pictureVariable, seriesVariable, visibleCells } from "../../src/explore/page/save/shown-cells.js";
import { emptinessOf, pictureText, statusOf, tooMuchText } from "../../src/explore/page/status-text.js";
import { formatViewHash, parseViewHash } from "../../src/explore/page/view-hash.js";
import {
  type AxisValues,
  EMPTY_VIEW,
  type FrameAnswer,
  type PicturePart,
  type ShowRequest,
  type VariableDescription,
  type View,
} from "../../src/explore/protocol.js";
import { parseDataType } from "../../src/model/data-type.js";
import { effort } from "../support/effort.js";
import { axisValues, describeVariable, openModel, until } from "../support/explore/stub-worker.js";

/** Makes an answer to a request of a picture. */
function frame(request: ShowRequest, done = 1, total = 1, byte = 9, part?: PicturePart): FrameAnswer {
  const { width, height } = request.viewport;
  const pixels = new Uint8Array(width * height).fill(byte);
  return { kind: "frame", pixels, width, height, done, total, level: 0, cells: 100, missing: 0, part };
}

/** Opens a model on a stub, and waits for its first request of a picture. */
async function open(hash = "") {
  const { worker, model } = await openModel(hash);
  await until(() => worker.of("show").length > 0);
  return { worker, model };
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await setImmediate();
}

const last = <T>(items: readonly T[]): T => items.at(-1) as T;

t.test(
  "opens the store, reads each coordinate and the range once, and asks for the first picture",
  async (t) => {
    const { worker, model } = await open();
    t.match(worker.of("open"), [{ store: "http://x/zarr/", token: "secret", group: "" }]);
    t.strictSame(
      worker.of("axis").map(({ axis }) => axis),
      [0, 1, 2],
    );
    t.match(worker.of("range"), [{ selection: { variable: "t2m", at: [0, 0, 0] }, percentiles: [2, 98] }]);
    t.match(last(worker.of("show")), {
      selection: { variable: "t2m", at: [0, 0, 0] },
      axes: { x: 2, y: 1 },
      viewport: {
        box: { left: -180, right: 180, bottom: -90, top: 90 },
        width: 72,
        height: 36,
        inCells: false,
      },
      range: { low: 240, high: 300, isLog: false },
    });
    t.strictSame(model.view.value, { ...EMPTY_VIEW }, "nothing was chosen");
  },
);

t.test("an address settles variable, step, box and range", async (t) => {
  const { worker } = await open("v=rain&d.time=2013-01-02T06&box=0,0,72,36&r=0,5&log");
  const { selection, range, viewport } = last(worker.of("show"));
  t.strictSame(selection, { variable: "rain", at: [5, 0, 0] });
  t.strictSame(range, { low: 0.005, high: 5, isLog: true });
  t.ok(viewport.box.left <= 0 && viewport.box.right >= 72);
});

t.test("what the dataset does not have is said, and something else shown", async (t) => {
  const { model } = await open("v=gone&d.time=i99&x=nix");
  const texts = statusOf(model).messages.map(({ text }) => text);
  t.strictSame(texts, [
    "“gone” is not in this dataset; showing “t2m”.",
    "“nix” cannot be an axis of “t2m”; showing lon and lat.",
    "“time” has no step at index 99; showing 2013-01-01 00:00.",
  ]);
});

t.test("the range is found once, and stays while time moves and variables come back", async (t) => {
  const { worker, model } = await open();
  model.setStep(0, 3);
  await until(() => last(worker.of("show")).selection.at[0] === 3);
  model.chooseVariable("rain");
  await until(() => last(worker.of("show")).selection.variable === "rain");
  model.chooseVariable("t2m");
  await until(() => last(worker.of("show")).selection.variable === "t2m");
  t.strictSame(
    worker.of("range").map(({ selection }) => selection.variable),
    ["t2m", "rain"],
  );
  t.same(model.view.value.at, { time: { value: "2013-01-01T18" } }, "the date stays, by coordinate");
});

t.test("the old picture stays until the new one is complete, and is dimmed after a while", async (t) => {
  const { worker, model } = await open();
  const first = last(worker.of("show"));
  worker.answer(first.id, frame(first));
  const shown = model.picture.frame.value;
  t.equal(shown?.isWhole, true);
  model.setStep(0, 1);
  await until(() => last(worker.of("show")).selection.at[0] === 1);
  const second = last(worker.of("show"));
  worker.answer(second.id, frame(second, 1, 4, 255));
  t.equal(model.picture.frame.value, shown, "a part of the next step is no picture");
  t.match(statusOf(model).progress, "Reading 1 of 4 chunks…");
  await until(() => model.picture.isDimmed.value);
  worker.answer(first.id, frame(first));
  t.equal(model.picture.frame.value, shown, "answers of a former request are dropped");
  worker.answer(last(worker.of("show")).id, frame(second, 4, 4));
  t.equal(model.picture.frame.value?.request.selection.at[0], 1);
  t.equal(model.picture.isDimmed.value, false);
  t.match(statusOf(model).progress, /^Read 4 chunks in \d+ ms$/);
});

t.test("a picture is described by variable, steps and bounds", async (t) => {
  for (const [hash, expected] of [
    ["v=t2m", "t2m, 2013-01-01 00:00, all longitudes, 90°S to 90°N"],
    ["v=t2m&d.time=2013-01-02T06&box=5,45,12,53", "t2m, 2013-01-02 06:00, from 4°W to 21°E, 45°N to 53°N"],
    ["v=t2m&box=5,45,5.7,45.8", "t2m, 2013-01-01 00:00, from 4.2°E to 6.5°E, 45°N to 45.8°N"],
    ["v=t2m&image", "t2m, 2013-01-01 00:00, columns 0 to 89, rows 0 to 44"],
    ["v=t2m&x=time&y=lat", "t2m, 0°, time from 2013-01-01 00:00 to 2013-01-02 18:00, lat from 90°S to 90°N"],
  ] as const) {
    const { model } = await open(hash);
    t.equal(pictureText(model), expected);
  }
});

t.test("while the box moves, a part of the new picture lies above the old one", async (t) => {
  const { worker, model } = await open();
  const first = last(worker.of("show"));
  worker.answer(first.id, frame(first));
  const count = worker.of("show").length;
  model.camera.zoom(0.5);
  await until(() => worker.of("show").length > count);
  const second = last(worker.of("show"));
  t.equal(second.isMoving, true);
  worker.answer(second.id, frame(second, 1, 2, 255));
  t.equal(model.picture.frame.value?.under?.request.viewport.box.left, -180);
  await until(() => !last(worker.of("show")).isMoving);
  const rested = last(worker.of("show"));
  t.strictSame(rested.viewport.box, second.viewport.box, "and is asked for at its best once it rests");
  worker.answer(rested.id, frame(rested));
  t.equal(model.picture.frame.value?.under, undefined);
});

t.test("playing reads ahead, follows the pictures that come, and stops at once", async (t) => {
  const { worker, model } = await open();
  worker.on("show", (request) => frame(request));
  worker.on("ahead", ({ steps }) => ({ kind: "cached", steps }));
  const first = last(worker.of("show"));
  worker.answer(first.id, frame(first));
  model.playback.setRate(30);
  model.playback.toggle(0);
  t.match(worker.of("ahead")[0]?.steps.slice(0, 3), [1, 2, 3]);
  await until(() => worker.of("show").length > 9);
  t.equal(last(worker.of("show")).viewport.width, 36, "one pixel per pixel of the page while it plays");
  model.playback.stop();
  await settle();
  const step = model.resolved.value?.at[0];
  await setTimeout(100);
  t.equal(model.resolved.value?.at[0], step);
  t.equal(model.playback.cached.value.size, 8);
});

t.test(
  "a server that is away does not take the picture with it, and the page says how old that is",
  async (t) => {
    const { worker, model } = await open();
    const first = last(worker.of("show"));
    worker.answer(first.id, frame(first));
    model.setStep(0, 1);
    await until(() => last(worker.of("show")) !== first);
    worker.answer(last(worker.of("show")).id, {
      kind: "failed",
      sentence: "The server does not answer.",
      requestId: undefined,
      mayRetry: true,
    });
    const { messages, isBusy } = statusOf(model);
    t.match(messages[0]?.text, /^The server does not answer\. The picture was read before \d\d:\d\d\.$/);
    t.equal(isBusy, false);
  },
);

t.test("a box that rests is short to write", async (t) => {
  const { worker, model } = await open();
  model.camera.zoom(1 / 3, { x: 10.123456789, y: 20.987654321 });
  await until(() => worker.of("show").length > 1 && !last(worker.of("show")).isMoving);
  const { box } = model.view.value;
  for (const edge of Object.values(box!)) t.match(String(edge), /^-?\d+(?:\.\d{1,4})?$/);
  t.strictSame(shortBox(box!), box);
  model.setProbe({ x: 10.123456789, y: -20.987654321, along: undefined, plot: "series" });
  for (const place of [model.view.value.probe?.x, model.view.value.probe?.y])
    t.match(String(place), /^-?\d+(?:\.\d{1,3})?$/, "and a place");
});

const WHOLE = { chunks: 20_000, bytes: 80_000 };
const PART = { everyRow: 1, everyColumn: 1, isOfRows: false, isOfColumns: false, share: 1, whole: WHOLE };

t.test("the page says what of a picture is shown, and reads all when a person agrees", async (t) => {
  const cases: [Partial<PicturePart>, string][] = [
    [{ everyRow: 12, isOfRows: true }, "Every 12th row is shown"],
    [{ everyColumn: 23, isOfColumns: true }, "Every 23rd column is shown"],
    [{ everyRow: 12 }, "One chunk in 12 is shown, enlarged over its neighbours"],
    [
      { everyRow: 5, everyColumn: 4, isOfRows: true },
      "One chunk in 20 is shown, enlarged over its neighbours",
    ],
    [{ share: 0.2 }, "Only the centre is shown"],
    [{}, "The places in 1 chunk are shown"],
  ];
  for (const [part, text] of cases) {
    const { worker, model } = await open("box=0,0,10,10");
    const request = last(worker.of("show"));
    worker.answer(request.id, frame(request, 1, 1, 9, { ...PART, ...part }));
    const [message] = statusOf(model).messages;
    t.equal(
      message?.text,
      `${text}: the whole picture needs 20,000 chunks, 80 kB, and this dataset has no overviews.`,
    );
    message?.actions[0]?.run(model);
    t.equal(last(worker.of("show")).isConfirmed, true);
    t.not(model.view.value.box, undefined, "of the same part of the map");
  }
});

t.test("a huge chunk is read when a person agrees", async (t) => {
  const { worker, model } = await open();
  worker.answer(last(worker.of("show")).id, { kind: "too-much", chunks: 1, bytes: 1.6e9 });
  const text = "This picture needs 1 chunk, 1.6 GB, and this dataset has no overviews.";
  t.equal(tooMuchText(model), text);
  t.match(statusOf(model), { messages: [], progress: "", isBusy: false });
  model.readAll();
  t.equal(last(worker.of("show")).isConfirmed, true);
  t.equal(last(worker.of("range")).isConfirmed, true, "for its colours, too");
  t.equal(tooMuchText(model), undefined);
});

t.test(
  "the centre of a picture that is too much fills the page, unless the address names a part",
  async (t) => {
    const { worker, model } = await open();
    const request = last(worker.of("show"));
    worker.answer(request.id, frame(request, 1, 1, 9, { ...PART, share: 0.25 }));
    t.match(model.view.value.box, { left: -45, right: 45 });
    await until(() => worker.of("show").at(-1)?.viewport.box !== worker.of("show")[0]?.viewport.box);
    const [message] = statusOf(model).messages;
    t.match(
      message?.text,
      "Only the centre is shown: the whole picture needs 20,000 chunks, 80 kB, and this dataset has no",
    );
    message?.actions[0]?.run(model);
    t.equal(model.view.value.box, undefined);
    await until(() => last(worker.of("show")).isConfirmed);
    worker.answer(last(worker.of("show")).id, frame(last(worker.of("show"))));
    t.strictSame(statusOf(model).messages, []);
  },
);

t.test("the first variable is data, on a map, that moves, and the largest", async (t) => {
  const attrs = (units: string) => ({ attrs: { units } });
  const still = describeVariable("still");
  const cases: [VariableDescription[], string][] = [
    [[describeVariable("XLAT", attrs("degree_north")), still], "still"],
    [
      [describeVariable("time_bnds"), describeVariable("start", attrs("days since 2000-01-01")), still],
      "still",
    ],
    [
      [describeVariable("quality"), describeVariable("a", { attrs: { ancillary_variables: "quality" } })],
      "a",
    ],
    [[describeVariable("area"), describeVariable("a", { attrs: { cell_measures: "area: area" } })], "a"],
    [[describeVariable("small"), describeVariable("large", { shape: [80, 45, 90] })], "large"],
    [[describeVariable("crs", { form: "text", shape: [], plane: undefined }), still], "still"],
    [[describeVariable("broken", { problem: "No." }), still], "still"],
    [[describeVariable("lat", { isCoordinate: true }), describeVariable("s", { form: "text" })], "s"],
    [[describeVariable("lat", { isCoordinate: true })], "lat"],
  ];
  for (const [variables, expected] of cases)
    t.equal(chosenVariable({ attrs: {}, variables }, EMPTY_VIEW)?.path, expected);
});

t.test("a dataset without anything to see says so", async (t) => {
  const broken = describeVariable("a", { problem: "Values of the type complex512 cannot be shown." });
  t.equal(emptinessOf({ attrs: {}, variables: [] }), "This dataset has no variables.");
  t.match(
    emptinessOf({ attrs: {}, variables: [broken, broken] }),
    /^No variable .* complex512 cannot be shown\.$/,
  );
  t.equal(emptinessOf({ attrs: {}, variables: [broken, describeVariable("b")] }), undefined);
});

t.test("axes can be swapped, and the box is that of the new plane", async (t) => {
  const { worker, model } = await open("box=0,0,10,10");
  model.setAxes(0, 1);
  await until(() => last(worker.of("show")).axes.x === 0);
  t.match(last(worker.of("show")).viewport.box, { left: -3, right: 45, bottom: -90, top: 90 });
  t.match(model.view.value, { x: "time", y: "lat", box: undefined });
});

t.test("locked colours stay for another variable, others do not", async (t) => {
  const { worker, model } = await open();
  model.colours.setRange(280, 250);
  model.colours.choose({ scale: "magma" });
  model.chooseVariable("rain");
  await until(() => last(worker.of("show")).selection.variable === "rain");
  t.equal(model.colours.scale.value, "viridis");
  model.colours.setRange(1, 2);
  model.colours.toggleLock();
  model.chooseVariable("t2m");
  t.match(model.colours.range.value, { low: 1, high: 2 });
});

t.test("a worker that stops is told of", async (t: Test) => {
  const { worker, model } = await open();
  worker.crash("out of memory");
  t.match(statusOf(model).messages[0]?.text, /has stopped \(out of memory\). Reload the page/);
});

t.test("the value under the pointer is asked for one at a time, the last place counts", async (t) => {
  const { worker, model } = await open();
  for (const x of [1, 2, 3]) model.probes.hover({ x, y: 50 });
  const [first] = worker.of("probe");
  t.equal(worker.of("probe").length, 1);
  worker.answer(first!.id, { kind: "value", cell: [0, 9, 0], x: 0, y: 52, value: 280, text: "280" });
  t.equal(model.probes.pointer.value?.text, "280");
  t.match(worker.of("probe")[1], { x: 3, y: 50 });
  model.probes.hover(undefined);
  worker.answer(last(worker.of("probe")).id, {
    kind: "value",
    cell: [0, 9, 1],
    x: 4,
    y: 52,
    value: 1,
    text: "1",
  });
  t.equal(model.probes.pointer.value, undefined, "the pointer has left");
});

t.test("an address is readable", async (t) => {
  const view: View = {
    ...EMPTY_VIEW,
    variable: "surface/t2m",
    at: { time: { value: "2013-01-01T06" }, level: { value: 850 }, member: { index: 12 }, run: "last" },
    box: { left: -30, bottom: 45, right: 30, top: 72 },
    colour: { ...EMPTY_VIEW.colour, scale: "viridis", range: { percentiles: [2, 98] }, isReversed: true },
    probe: { x: 12.5, y: 48, along: "time", plot: "series" },
  };
  const hash =
    "v=surface/t2m&d.time=2013-01-01T06&d.level=850&d.member=i12&d.run=last&box=-30,45,30,72&c=viridis&r=p2-98&p=12.5,48&along=time&rev";
  t.equal(formatViewHash(view), hash);
  t.equal(formatViewHash(EMPTY_VIEW), "", "an address that says nothing leaves everything to rule");
  t.strictSame(parseViewHash(`#${hash}`), { view, problems: [] });
});

t.test("every view comes back from its address", async (t) => {
  const number = fc.oneof(
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0),
  );
  const name = fc.string({ minLength: 1, unit: "binary" });
  const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
  const position = fc.oneof(
    fc.constant("last" as const),
    fc.nat().map((index) => ({ index })),
    number.map((value) => ({ value })),
    fc.oneof(name, fc.constantFrom("", "last", "i7", "850", "'", "'1", "-1e5")).map((value) => ({ value })),
  );
  const range = fc.oneof(
    fc.constant(undefined),
    fc.record({ low: number, high: number }).filter(({ low, high }) => low < high),
    fc
      .tuple(fc.integer({ min: 0, max: 99 }), fc.constantFrom(99.5, 100))
      .map((percentiles) => ({ percentiles })),
  );
  const view: fc.Arbitrary<View> = fc.record({
    variable: optional(fc.string({ unit: "binary" })),
    x: optional(name),
    y: optional(name),
    at: fc.dictionary(name, position, { noNullPrototype: true }),
    box: optional(
      fc
        .record({ left: number, right: number, bottom: number, top: number })
        .filter(({ left, right, bottom, top }) => left !== right && bottom !== top),
    ),
    asImage: fc.boolean(),
    colour: fc.record({
      scale: optional(fc.constantFrom(...(Object.keys(COLOUR_SCALES) as ColourScaleName[]))),
      isReversed: fc.boolean(),
      isLog: fc.boolean(),
      isSymmetric: fc.boolean(),
      isLocked: fc.boolean(),
      range,
    }),
    probe: optional(
      fc.record({
        x: number,
        y: number,
        along: optional(name),
        plot: fc.constantFrom("series" as const, "histogram" as const),
      }),
    ),
  });
  fc.assert(
    fc.property(view, (given) => {
      const { view: read, problems } = parseViewHash(formatViewHash(given));
      // Records of fast-check have no prototype.
      return isDeepStrictEqual(read, structuredClone(given)) && problems.length === 0;
    }),
    { numRuns: effort(1000) },
  );
  t.pass();
});

t.test("bad values are left out with a sentence, unknown keys without", async (t) => {
  const { view, problems } = parseViewHash("v=t&c=jet&r=5,1&box=1,2,3&p=a,b&new=1&r2&d.time=%zz");
  t.strictSame(view, { ...EMPTY_VIEW, variable: "t" });
  t.strictSame(problems, [
    "The address contains “d.time=%zz”, which is not escaped correctly.",
    "The address contains “c=jet”: expected the name of a colour scale.",
    "The address contains “r=5,1”: expected a range such as “240,310” or “p2-98”.",
    "The address contains “box=1,2,3”: expected left, bottom, right and top.",
    "The address contains “p=a,b”: expected two coordinates.",
  ]);
  for (const box of ["1,2,1,3", "1,2,3,2", "1,2,3,1e999", "1,2,3,4,5"]) {
    t.equal(parseViewHash(`box=${box}`).view.box, undefined, box);
  }
});

function series(first: number, step: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => first + step * index);
}

const LATITUDES = series(75, -2.5, 25);
const LONGITUDES = series(0, 10, 36);

t.test("a cell is visible if a part of it is", async (t) => {
  const axis = createAxis(25, axisValues(LATITUDES));
  t.same(visibleCells(axis, 39, 71), [[2, 15]]);
  t.same(visibleCells(axis, 71, 39), [[2, 15]], "in a reversed box too");
  t.same(visibleCells(axis, 68.75, 71.25), [[2, 3]], "an edge is no part");
  t.equal(visibleCells(axis, 0, 90), "all");
  t.same(visibleCells(cellAxis(9), -0.5, 3.2), [[0, 4]]);
  t.same(visibleCells(axis, 80, 85), [[0, 0]], "no cell is visible outside of the data");
});

t.test("longitudes repeat, and a box across the seam shows two runs", async (t) => {
  const axis = createAxis(36, axisValues(LONGITUDES), { isLongitude: true });
  t.same(visibleCells(axis, -30, 20), [
    [33, 36],
    [0, 3],
  ]);
  t.equal(visibleCells(axis, -180, 180), "all");
  t.same(visibleCells(axis, 366, 384), [[1, 3]]);
  fc.assert(
    fc.property(
      fc.double({ min: -700, max: 700, noNaN: true }),
      fc.double({ min: 1, max: 340, noNaN: true }),
      fc.double({ min: 0.01, max: 0.99, noNaN: true }),
      (left, width, part) => {
        const visible = visibleCells(axis, left, left + width);
        const index = indexAt(axis, left + width * part);
        return (
          visible === "all" ||
          (typeof visible === "object" && visible.some(([begin, end]) => index >= begin && index < end))
        );
      },
    ),
  );
});

const AIR = describeVariable("model/air", {
  name: "air",
  shape: [2, 25, 36],
  dataType: parseDataType("<i2"),
  packing: { ...packingOf({ scale_factor: 2 }), missing: [-1] },
  axes: describeVariable("air").axes.map((axis, index) => ({
    ...axis,
    length: [2, 25, 36][index]!,
    coordinate: index === 2 ? "lon" : `model/${axis.dim}`,
  })),
});

const DATES = ["2013-01-01T00:00:00", "2013-01-01T06:00:00"];
const VALUES = [
  axisValues([0, 6], { texts: DATES, calendar: "standard" }),
  axisValues(LATITUDES),
  axisValues(LONGITUDES),
];
const PICTURE = {
  variable: AIR,
  axes: { x: 2, y: 1 },
  bands: undefined,
  at: [1, 0, 0],
  values: VALUES,
  places: AIR.axes.map((axis, index) => createAxis(axis.length, VALUES[index], axis)),
  problems: [],
};
const BOX = { left: 15, right: 45, bottom: 40, top: 60 };

t.test("code reads the visible cells at the step that is shown", async (t) => {
  const { axes, packing } = pictureVariable(PICTURE, BOX, false);
  t.same(
    axes.map(({ part }) => part),
    [1, [[6, 15]], [[2, 5]]],
  );
  t.same(packing, { missing: [-1], scale: 2, offset: 0 });
  t.same(axes[0]?.coordinate, { dates: DATES });
  t.equal(axes[2]?.coordinate, undefined, "xarray knows no coordinate of another group");
});

t.test("code reads a whole curvilinear grid, and cells of its image", async (t) => {
  const picture = { ...PICTURE, places: AIR.axes.map(({ length }) => cellAxis(length)) };
  const partsOf = (isCurved: boolean) =>
    pictureVariable(picture, { left: 1, right: 3, bottom: 5, top: 1 }, isCurved).axes.map(({ part }) => part);
  t.same(partsOf(true), [1, "all", "all"]);
  t.same(partsOf(false), [1, [[1, 6]], [[1, 4]]]);
});

t.test("dates that numpy does not hold, durations and texts are selected by index", async (t) => {
  const coordinateOf = (values: AxisValues) =>
    seriesVariable(AIR, [values], [0, 0, 0], 1).axes[0]?.coordinate;
  t.ok(coordinateOf(axisValues([0, 6], { texts: DATES, calendar: "proleptic_gregorian" })));
  t.notOk(coordinateOf(axisValues([0, 6], { texts: DATES, calendar: "noleap" })));
  t.notOk(
    coordinateOf(axisValues([0, 6], { texts: ["0850-01-01T00:00:00", DATES[0]!], calendar: "standard" })),
  );
  t.notOk(coordinateOf(axisValues([0, 6], { units: "hours" })));
  t.ok(coordinateOf(axisValues([0, 6], { units: "m" })));
  t.notOk(coordinateOf(axisValues([0, 0])), "equal values");
  t.notOk(coordinateOf(axisValues([], { numbers: undefined, texts: ["a", "b"] })));
});
