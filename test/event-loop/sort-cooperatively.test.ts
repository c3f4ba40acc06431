import fc from "fast-check";
import t from "tap";
import { runNow } from "../../src/event-loop/cooperative-task.js";
import { sortCooperatively } from "../../src/event-loop/sort-cooperatively.js";

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
