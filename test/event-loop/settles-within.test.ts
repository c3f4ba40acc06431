import t from "tap";
import { settlesWithin } from "../../src/event-loop/settles-within.js";

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
  fail(new Error("late"));
  // An unhandled rejection would end the test here.
  await new Promise((resolve) => setImmediate(resolve));
});
