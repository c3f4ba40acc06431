import t from "tap";
import {
  type CooperativeTask,
  createSlice,
  runCooperatively,
  runNow,
  startCooperatively,
} from "../../src/event-loop/cooperative-task.js";

/** Counts to `count`, each time for as long as `stepMs`. */
function* counting(count: number, stepMs: number, log: string[] = [], name = ""): CooperativeTask<number> {
  for (let i = 0; i < count; i++) {
    const end = performance.now() + stepMs;
    while (performance.now() < end);
    log.push(name);
    yield;
  }
  return count;
}

// biome-ignore lint/correctness/useYield: a task that fails before it can be interrupted.
function* failing(): CooperativeTask<never> {
  throw new RangeError("no");
}

function* failingLater(): CooperativeTask<never> {
  yield* counting(10, 1);
  throw new RangeError("later");
}

t.test("all ways to run a task give the same result", async (t) => {
  t.equal(runNow(counting(3, 0)), 3);
  t.equal(await runCooperatively(counting(3, 0)), 3);
  t.equal(startCooperatively(counting(3, 0)), 3, "at once where it is little");
  const long = startCooperatively(counting(20, 1));
  t.type(long, Promise);
  t.equal(await long, 20);
});

t.test("lets the event loop run in between", async (t) => {
  const log: string[] = [];
  const working = runCooperatively(counting(20, 1, log, "work"));
  setImmediate(() => log.push("loop"));
  await working;
  const at = log.indexOf("loop");
  t.ok(at > 0 && at < log.length - 1, "neither before nor behind it all");
});

t.test("several tasks take turns", async (t) => {
  const log: string[] = [];
  await Promise.all(["a", "b", "c"].map((name) => runCooperatively(counting(20, 1, log, name))));
  t.equal(log.length, 60);
  t.ok(log.lastIndexOf("a") > log.indexOf("c"), "none is done before the others begin");
});

t.test("fails as the task does", async (t) => {
  t.throws(() => runNow(failing()), RangeError);
  t.throws(() => startCooperatively(failing()), RangeError);
  await t.rejects(runCooperatively(failing()), RangeError);
  await t.rejects(async () => startCooperatively(failingLater()), { message: "later" });
});

t.test("a slice is over after a while, and all callers share the next one", async (t) => {
  const slice = createSlice();
  t.notOk(slice.isOver());
  runNow(counting(20, 1));
  t.ok(slice.isOver());
  t.equal(slice.next(), slice.next());
  await slice.next();
  t.notOk(slice.isOver());
});
