import { setTimeout as delay } from "node:timers/promises";
import t from "tap";
import { settlesWithin } from "../../src/event-loop/settles-within.js";

t.test("tells if work was done in time", async (t) => {
  t.equal(await settlesWithin(Promise.resolve("done"), 1_000), true);
  t.equal(await settlesWithin(delay(200), 5), false);
});

t.test("a failure in time is thrown, a later one ignored", async (t) => {
  await t.rejects(settlesWithin(Promise.reject(new Error("early")), 1_000), { message: "early" });
  const late = delay(20).then(() => {
    throw new Error("late");
  });
  t.equal(await settlesWithin(late, 5), false);
  await delay(40);
});
