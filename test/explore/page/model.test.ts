import { setImmediate, setTimeout } from "node:timers/promises";
import t, { type Test } from "tap";
import { shortBox } from "../../../src/explore/page/map/camera.js";
import { ExploreModel } from "../../../src/explore/page/model.js";
import { statusOf } from "../../../src/explore/page/status-text.js";
import { parseViewHash } from "../../../src/explore/page/view-hash.js";
import { WorkerClient } from "../../../src/explore/page/worker-client.js";
import { EMPTY_VIEW, type FrameAnswer, type ShowRequest } from "../../../src/explore/protocol.js";
import { AXES, DATASET, StubWorker } from "../../support/explore/stub-worker.js";

const SOURCE = {
  store: "http://x/zarr/",
  overviews: undefined,
  group: "",
  dataset: "x",
  title: "x",
  page: "http://x/",
  coasts: { coarse: "", fine: "" },
  token: "secret",
};

/** Makes an answer to a request of a picture. */
function frame(request: ShowRequest, done = 1, total = 1, byte = 9): FrameAnswer {
  const { width, height } = request.viewport;
  const pixels = new Uint8Array(width * height).fill(byte);
  return { kind: "frame", pixels, width, height, done, total, level: 0, cells: 100, missing: 0 };
}

/** Opens a model on a stub; pictures are answered by the test. */
async function open(hash = "") {
  const worker = new StubWorker();
  worker.on("open", () => ({ kind: "opened", dataset: DATASET }));
  worker.on("axis", ({ axis }) => ({ kind: "axis", values: AXES[axis]!, curvilinearExtent: undefined }));
  const range = { low: 240, high: 300, isDiverging: false };
  worker.on("range", () => ({
    kind: "range",
    range,
    least: 230,
    greatest: 310,
    bins: [1],
    count: 1,
    missing: 0,
  }));
  const model = new ExploreModel(new WorkerClient(worker), SOURCE);
  model.view.value = parseViewHash(hash).view;
  model.camera.canvas.value = { width: 36, height: 18, ratio: 2 };
  await model.open();
  await until(() => hash.includes("station") || worker.of("show").length > 0);
  return { worker, model };
}

/** Waits for what follows from answers of the stub, or from a timer. */
async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await setTimeout(1);
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await setImmediate();
}

const last = <T>(items: readonly T[]): T => items.at(-1) as T;

t.test(
  "opens the store, reads each coordinate and the range once, and asks for the first picture",
  async (t) => {
    const { worker, model } = await open();
    t.match(worker.of("open"), [{ store: SOURCE.store, token: "secret", group: "" }]);
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
    t.equal(model.view.value, model.view.value, "nothing was chosen");
    t.strictSame(model.view.value, { ...EMPTY_VIEW });
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
    "“time” has nothing at index 99; showing 2013-01-01 00:00.",
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
  t.match(statusOf(model).progress, /^4\/4 chunks · \d+ ms$/);
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
  model.playback.play(0);
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

t.test("a failure is a sentence with the request's id, and can be tried again", async (t) => {
  const { worker, model } = await open();
  const request = last(worker.of("show"));
  const sentence = "Chunk 0.0.0 of t2m could not be read.";
  worker.answer(request.id, { kind: "failed", sentence, requestId: "7f3a", mayRetry: true });
  const [message] = statusOf(model).messages;
  t.match(message, { kind: "error", text: `${sentence} (request 7f3a)`, actions: [{ label: "Retry" }] });
  const count = worker.of("show").length;
  message?.actions[0]?.run(model);
  t.equal(worker.of("show").length, count + 1);
  t.strictSame(statusOf(model).messages, []);
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
    t.match(messages[0]?.text, /^The server does not answer\. What is shown was read before \d\d:\d\d\.$/);
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
});

t.test("what is too much to read unasked is read when a person agrees", async (t) => {
  const { worker, model } = await open("box=0,0,10,10");
  worker.answer(last(worker.of("show")).id, { kind: "too-much", chunks: 412, bytes: 1.6e9 });
  const [message] = statusOf(model).messages;
  t.match(message?.text, "This picture is 412 chunks, 1.6 GB, and this dataset has no overviews.");
  message?.actions[1]?.run(model);
  t.equal(last(worker.of("show")).isConfirmed, true);
});

t.test("of a picture that is too much, the centre is shown unless the address names a part", async (t) => {
  const { worker, model } = await open();
  worker.answer(last(worker.of("show")).id, { kind: "too-much", chunks: 412, bytes: 1.6e9 });
  const centre = model.view.value.box;
  t.not(centre, undefined);
  await until(() => worker.of("show").at(-1)?.viewport.box !== worker.of("show")[0]?.viewport.box);
  const [message] = statusOf(model).messages;
  t.match(
    message?.text,
    "The whole picture is 412 chunks, 1.6 GB, and this dataset has no overviews: this is its",
  );
  message?.actions[0]?.run(model);
  t.equal(model.view.value.box, undefined);
  await until(() => last(worker.of("show")).isConfirmed);
  t.strictSame(statusOf(model).messages, []);
});

t.test("a missing picture says so", async (t) => {
  const { worker, model } = await open();
  const request = last(worker.of("show"));
  worker.answer(request.id, { ...frame(request, 1, 1, 0), cells: 1325, missing: 1325 });
  t.strictSame(
    statusOf(model).messages.map(({ text }) => text),
    ["No values here: all 1,325 cells are missing."],
  );
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
