import t from "tap";
import { createGate, type Gate } from "../../src/chunk/create-gate.js";

const ALWAYS = () => true;
const turn = () => new Promise(setImmediate);

/** Jobs that end when they are told to. */
function jobsIn(gate: Gate) {
  const running: { store: string; end: () => void }[] = [];
  const refused: { store: string; message: string; abandoned: unknown }[] = [];
  let done = 0;
  return {
    refused,
    done: () => done,
    start(store: string, count = 1, isWanted = ALWAYS) {
      for (let index = 0; index < count; index++) {
        const job = () => new Promise<void>((end) => running.push({ store, end }));
        gate.run(store, job, isWanted).then(
          () => done++,
          (error) => refused.push({ store, message: error.message, abandoned: error.details.abandoned }),
        );
      }
    },
    async end(store: string, count = 1) {
      for (let index = 0; index < count; index++) {
        const at = running.findIndex((job) => job.store === store);
        if (at < 0) throw new Error(`expected a job of ${store} to run`);
        running.splice(at, 1)[0]?.end();
        await turn();
      }
    },
    of: (store: string) => running.filter((job) => job.store === store).length,
    all: () => running.length,
  };
}

t.test("a store that is alone has most places, and another finds some", async (t) => {
  const gate = createGate(12, 100);
  const jobs = jobsIn(gate);
  jobs.start("slow", 50);
  t.equal(jobs.of("slow"), 8);
  t.equal(gate.waiting, 42);
  jobs.start("other", 2);
  t.equal(jobs.of("other"), 2, "at once");
  await jobs.end("other", 2);
  await jobs.end("slow", 3);
  t.equal(jobs.of("slow"), 8, "the next ones have their places");
  t.equal(gate.waiting, 39);
  t.equal(jobs.done(), 5);
});

t.test("however many stores hang, others go on", async (t) => {
  const gate = createGate(12, 10_000);
  const jobs = jobsIn(gate);
  for (let store = 0; store < 30; store++) jobs.start(`hangs ${store}`, 100);
  for (let store = 0; store < 30; store++) t.ok(jobs.of(`hangs ${store}`) >= 1);
  jobs.start("sound", 3);
  for (let done = 1; done <= 3; done++) {
    t.equal(jobs.of("sound"), 1);
    await jobs.end("sound");
  }
  for (let store = 30; store < 100; store++) jobs.start(`hangs ${store}`);
  t.equal(jobs.all(), 48, "there is a bound");
});

t.test("stores take turns, and have as much as each other", async (t) => {
  const gate = createGate(12, 1_000);
  const jobs = jobsIn(gate);
  jobs.start("a", 100);
  jobs.start("b", 100);
  jobs.start("c", 100);
  const began = { a: jobs.of("a"), b: jobs.of("b"), c: jobs.of("c") };
  t.ok(began.a > began.c);
  for (let round = 0; round < 20; round++) {
    for (const store of ["a", "b", "c"]) await jobs.end(store);
  }
  const now = ["a", "b", "c"].map(jobs.of);
  t.ok(Math.max(...now) - Math.min(...now) <= 1, now.join());
});

t.test("what nobody waits for is not begun", async (t) => {
  const gate = createGate(1, 10);
  const jobs = jobsIn(gate);
  jobs.start("a");
  jobs.start("a", 3, () => false);
  jobs.start("a");
  t.equal(gate.waiting, 4);
  await jobs.end("a");
  t.equal(gate.waiting, 0);
  t.same(
    jobs.refused.map(({ abandoned }) => abandoned),
    [true, true, true],
  );
  t.equal(jobs.of("a"), 1, "the one behind them");
});

t.test("beyond what may wait the store of which most wait makes room", async (t) => {
  const gate = createGate(1, 4);
  const jobs = jobsIn(gate);
  jobs.start("a", 2);
  jobs.start("a", 3, () => false);
  jobs.start("a", 3);
  await turn();
  t.equal(
    jobs.refused.filter(({ abandoned }) => abandoned === true).length,
    3,
    "what nobody waits for first",
  );
  t.equal(gate.waiting, 4);
  jobs.start("a");
  await turn();
  t.match(jobs.refused[3], { message: "expected at most 4 chunk reads to wait, received one more" });
  jobs.start("b", 3);
  await turn();
  t.equal(jobs.of("b"), 1);
  t.same(
    jobs.refused.slice(4).map(({ store }) => store),
    ["a", "a"],
  );
  jobs.start("b");
  await turn();
  t.equal(jobs.refused.at(-1)?.store, "b", "as many wait of it");
  t.equal(gate.waiting, 4);
});

t.test("a job that fails gives its place back", async (t) => {
  const gate = createGate(1, 1);
  await t.rejects(
    gate.run("a", () => Promise.reject(new Error("no")), ALWAYS),
    { message: "no" },
  );
  t.equal(await gate.run("a", async () => 1, ALWAYS), 1);
});
