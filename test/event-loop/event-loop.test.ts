import { setImmediate as turn } from "node:timers/promises";
import fc from "fast-check";
import t from "tap";
import {
  type CooperativeTask,
  createSlice,
  runCooperatively,
  runNow,
  startCooperatively,
} from "../../src/event-loop/cooperative-task.js";
import { mapInLots } from "../../src/event-loop/maybe-promise.js";
import { settlesWithin, withinTime } from "../../src/event-loop/settles-within.js";
import { sortCooperatively } from "../../src/event-loop/sort-cooperatively.js";
import { workThrough } from "../../src/event-loop/work-through.js";

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

t.test("sorts as an array sorts itself, equal items in their order", async (t) => {
  for (const count of [0, 1, 2, 511, 512, 513, 1024, 5000]) {
    const items = fc.sample(fc.nat(100), count).map((key, index) => ({ key, index }));
    const compare = (a: { key: number }, b: { key: number }) => a.key - b.key;
    t.strictSame(runNow(sortCooperatively(items, compare)), items.toSorted(compare), `${count} items`);
  }
});

t.test("yields while it merges, and does not change its input", async (t) => {
  const items = Object.freeze(Array.from({ length: 4096 }, (_, index) => -index));
  const steps = sortCooperatively(items, (a, b) => a - b);
  let yields = 0;
  while (!steps.next().done) yields++;
  t.ok(yields > 4096 / 512);
});

t.test("works on all items, and on those added meanwhile, with a limit", async (t) => {
  const done: number[] = [];
  let running = 0;
  let most = 0;
  await workThrough([1, 2, 3], 2, async (item, add) => {
    most = Math.max(most, ++running);
    await turn();
    if (item < 10) add([item * 10, item * 10 + 1]);
    done.push(item);
    running--;
  });
  t.same(
    done.toSorted((a, b) => a - b),
    [1, 2, 3, 10, 11, 20, 21, 30, 31],
  );
  t.equal(most, 2);
});

t.test("starts no item after a failure, and waits for those that have started", async (t) => {
  const begun: number[] = [];
  const ended: number[] = [];
  const working = workThrough([1, 2, 3, 4], 2, async (item) => {
    begun.push(item);
    await turn();
    if (item === 1) throw new RangeError("one");
    await turn();
    ended.push(item);
  });
  await t.rejects(working, { message: "one" });
  t.same([begun, ended], [[1, 2], [2]]);
});

t.test("occupies the event loop for no longer than a slice", async (t) => {
  const log: string[] = [];
  setImmediate(() => log.push("loop"));
  await workThrough(Array.from({ length: 30 }), 1, () => {
    const end = performance.now() + 1;
    while (performance.now() < end);
    log.push("work");
  });
  t.ok(log.indexOf("loop") < log.length - 1);
});

t.test("tells if work was done in time", async (t) => {
  t.equal(await settlesWithin(Promise.resolve("done"), 60_000), true);
  t.equal(await settlesWithin(new Promise(() => {}), 5), false);
});

t.test("a failure in time is thrown, a later one ignored", async (t) => {
  await t.rejects(settlesWithin(Promise.reject(new Error("early")), 60_000), { message: "early" });
  let fail: (error: Error) => void = () => {};
  const late = new Promise<void>((_, reject) => {
    fail = reject;
  });
  t.equal(await settlesWithin(late, 5), false);
  await t.rejects(
    withinTime(late, 5, () => new Error("not in time")),
    { message: "not in time" },
  );
  fail(new Error("late"));
  // An unhandled rejection would end the test here.
  await new Promise((resolve) => setImmediate(resolve));
});

t.test("work that throws at once is an error with those that fail later", async (t) => {
  const work = (item: number) => {
    if (item === 1) throw new Error("at once");
    return item === 0 ? turn().then(() => Promise.reject(new Error("later"))) : item;
  };
  for (const items of [
    [0, 1],
    [2, 2, 2, 0, 1],
  ]) {
    await t.rejects(async () => mapInLots(items, 3, work), { message: "at once" });
    // A rejection that nobody handles would end the process.
    await turn();
    await turn();
  }
  t.throws(() => mapInLots([1, 0], 3, work), { message: "at once" }, "nothing has begun");
});
