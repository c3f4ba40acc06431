import { setImmediate as turn } from "node:timers/promises";
import t from "tap";
import { createSingleFlight } from "../../src/collections/single-flight.js";
import { createOneAtATime, joined, memoPromise, rerunning } from "../../src/event-loop/joined.js";

t.test("later calls join the run under way, and a caller that continues begins another", async (t) => {
  let runs = 0;
  const run = joined(async (name: string) => {
    await turn();
    return `${name}, run ${++runs}`;
  });
  t.equal(run.running, undefined);
  const first = run("a");
  t.equal(run.running, first);
  t.equal(run("b"), first);
  t.equal(await first.then(() => run("c")), "c, run 2");
  t.equal(run.running, undefined);
});

t.test("work that fails, or ends before its first await, is no longer under way either", async (t) => {
  let runs = 0;
  const run = joined(() => {
    if (++runs === 1) throw new Error("at once");
    return Promise.resolve(runs);
  });
  t.equal(await run().catch(() => run()), 2);
  t.equal(await run(), 3);
});

t.test("a call during a run is followed by a whole run, and many calls by one", async (t) => {
  const log: string[] = [];
  let wanted = 0;
  const run = rerunning(async () => {
    const now = wanted;
    log.push(`begin ${now}`);
    if (now !== 3) await turn();
    log.push(`end ${now}`);
  });
  wanted = 1;
  const done = run();
  await turn();
  wanted = 2;
  t.equal(run(), done);
  t.equal(run(), done);
  await done;
  t.same(log, ["begin 1", "end 1", "begin 2", "end 2"]);
  // Each microtask around the end of a run, since a call there must be followed by one, too.
  for (let microtasks = 0; microtasks < 12; microtasks++) {
    log.length = 0;
    wanted = 3;
    const former = run();
    for (let i = 0; i < microtasks; i++) await undefined;
    wanted = 4;
    await run();
    await former;
    t.equal(log.at(-1), "end 4", `${microtasks} microtasks later`);
  }
});

t.test("a run that fails is followed by others", async (t) => {
  let runs = 0;
  const run = rerunning(async () => {
    if (++runs === 1) throw new Error("no");
  });
  await t.rejects(run(), { message: "no" });
  await run();
  t.equal(runs, 2);
});

t.test("a kept promise becomes its value, and is forgotten if it fails", async (t) => {
  const memo = memoPromise<number>();
  await t.rejects(async () => memo(() => Promise.reject(new Error("no"))), { message: "no" });
  t.throws(() =>
    memo(() => {
      throw new Error("at once");
    }),
  );
  const made = memo(async () => 1);
  t.equal(
    memo(() => 2),
    made,
  );
  t.equal(await made, 1);
  t.equal(
    memo(() => 2),
    1,
  );
});

t.test("jobs run one after the other, also after one that failed", async (t) => {
  const log: string[] = [];
  const queue = createOneAtATime();
  const job = (name: string) =>
    queue(async () => {
      log.push(name);
      await turn();
      log.push(name);
      if (name === "a") throw new Error("no");
      return name;
    });
  const all = await Promise.allSettled([job("a"), job("b")]);
  t.same(
    all.map(({ status }) => status),
    ["rejected", "fulfilled"],
  );
  t.same(log, ["a", "a", "b", "b"]);
});

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

t.test("a result that is there at once is returned, and a throw leaves no flight", async (t) => {
  const flights = createSingleFlight<string>();
  t.equal(
    flights.run("a", () => "at once"),
    "at once",
  );
  t.throws(
    () =>
      flights.run("a", () => {
        throw new Error("no");
      }),
    { message: "no" },
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
  const make = async ({ signal }: { readonly signal: AbortSignal }) => {
    signals.push(signal);
    await new Promise((resolve) => setImmediate(resolve));
    return `made ${signals.length}`;
  };
  const results = [flights.run("a", make, first), flights.run("a", make, second)];
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
