import { setImmediate as turn } from "node:timers/promises";
import t from "tap";
import { workThrough } from "../../src/event-loop/work-through.js";

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

t.test("no items settle at once, and work may be synchronous", async (t) => {
  await workThrough([], 4, () => void t.fail());
  let sum = 0;
  await workThrough(Array.from({ length: 10_000 }).keys(), 4, (item) => {
    sum += item;
  });
  t.equal(sum, (10_000 * 9_999) / 2);
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
