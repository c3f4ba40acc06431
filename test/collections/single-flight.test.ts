import t from "tap";
import { createSingleFlight } from "../../src/collections/single-flight.js";

t.test("concurrent calls for one key share one flight", async (t) => {
  const flights = createSingleFlight<number>();
  let made = 0;
  const make = async () => {
    await new Promise((resolve) => setImmediate(resolve));
    return ++made;
  };
  const results = await Promise.all([flights.run("a", make), flights.run("a", make), flights.run("b", make)]);
  t.same(results, [1, 1, 2]);
  t.equal(flights.size, 0);
  t.equal(await flights.run("a", make), 3, "a settled flight is forgotten");
});

t.test("a failure reaches all callers, and the next call tries again", async (t) => {
  const flights = createSingleFlight<string>();
  let made = 0;
  const make = async () => {
    await new Promise((resolve) => setImmediate(resolve));
    if (++made === 1) throw new Error("no");
    return "yes";
  };
  const outcomes = await Promise.allSettled([flights.run("a", make), flights.run("a", make)]);
  t.same(
    outcomes.map(({ status }) => status),
    ["rejected", "rejected"],
  );
  t.equal(made, 1);
  t.equal(await flights.run("a", make), "yes");
});

t.test("a throw before the first await is a rejection, and is forgotten", async (t) => {
  const flights = createSingleFlight<string>();
  await t.rejects(
    flights.run("a", () => {
      throw new Error("at once");
    }),
    { message: "at once" },
  );
  t.equal(flights.size, 0);
});

t.test("a caller that tries again after a failure starts a new flight", async (t) => {
  const flights = createSingleFlight<string>();
  const again = flights
    .run("a", () => Promise.reject(new Error("no")))
    .catch(() => flights.run("a", async () => "yes"));
  t.equal(await again, "yes");
});

t.test("a flight is cancelled when all callers have gone, and the next call begins another", async (t) => {
  const flights = createSingleFlight<string>();
  const [first, second] = [new AbortController(), new AbortController()];
  const signals: AbortSignal[] = [];
  const make = async (signal: AbortSignal) => {
    signals.push(signal);
    await new Promise((resolve) => setImmediate(resolve));
    return `made ${signals.length}`;
  };
  const results = [flights.run("a", make, first.signal), flights.run("a", make, second.signal)];
  first.abort();
  t.equal(signals[0]?.aborted, false);
  second.abort();
  t.equal(signals[0]?.aborted, true);
  results.push(flights.run("a", make));
  t.equal(signals.length, 2);
  t.equal(signals[1]?.aborted, false, "a caller without a signal waits to the end");
  t.same(await Promise.all(results), ["made 2", "made 2", "made 2"]);
  t.equal(flights.size, 0);
});
