import t from "tap";
import { createLimiter, type Limiter, type LimiterOptions } from "../../src/collections/limiter.js";

const settled = () => new Promise(setImmediate);

/** Jobs that end when the test ends them. */
function jobsIn(limiter: Limiter) {
  const running: { key: string; end: () => void }[] = [];
  const refused: string[] = [];
  return {
    refused,
    start(key: string, count = 1, signal?: AbortSignal, cost?: number) {
      for (let index = 0; index < count; index++) {
        const job = () => new Promise<void>((end) => running.push({ key, end }));
        limiter.run(key, job, signal, cost).catch(({ code }) => refused.push(`${key} ${code}`));
      }
    },
    async end(key: string, count = 1) {
      for (let index = 0; index < count; index++) {
        const at = running.findIndex((job) => job.key === key);
        if (at < 0) throw new Error(`expected a job of ${key} to run`);
        running.splice(at, 1)[0]?.end();
        await settled();
      }
    },
    running: () => running.map(({ key }) => key).join(""),
  };
}

function limit(options: Partial<LimiterOptions>) {
  const limiter = createLimiter({ maxRunning: 4, maxPerKey: 4, maxWaiting: 100, ...options });
  return { limiter, jobs: jobsIn(limiter) };
}

t.test("jobs of one key run in the order in which they came", async (t) => {
  const { limiter } = limit({ maxRunning: 1 });
  const order: number[] = [];
  const jobs = [1, 2, 3, 4].map((n) => limiter.run("a", async () => order.push(n)));
  t.equal(limiter.waiting, 3);
  t.same(await Promise.all(jobs), [1, 2, 3, 4]);
  t.same(order, [1, 2, 3, 4]);
  t.equal(limiter.waiting, 0);
});

t.test("keys take turns, however many jobs each has", async (t) => {
  const { jobs } = limit({ maxRunning: 1 });
  jobs.start("a", 3);
  jobs.start("b", 2);
  jobs.start("c");
  let order = "";
  for (let n = 0; n < 6; n++) {
    const [key = ""] = jobs.running();
    order += key;
    await jobs.end(key);
  }
  t.equal(order, "aabcab", "the first at once, then by turns");
});

t.test("a key whose jobs hang leaves places for others", async (t) => {
  const { limiter, jobs } = limit({ maxPerKey: 3 });
  jobs.start("a", 10);
  t.equal(jobs.running(), "aaa");
  jobs.start("b", 2);
  t.equal(jobs.running(), "aaab");
  await jobs.end("b");
  t.equal(jobs.running(), "aaab", "the next one of b, not of a");
  await jobs.end("b");
  t.equal(jobs.running(), "aaa");
  await jobs.end("a");
  t.equal(jobs.running(), "aaa", "the next one of a");
  t.equal(limiter.waiting, 6);
});

t.test("a cancelled job leaves the queue at once and takes no place", async (t) => {
  const { limiter, jobs } = limit({ maxRunning: 1 });
  const controller = new AbortController();
  jobs.start("a");
  jobs.start("b", 2, controller.signal);
  jobs.start("c");
  controller.abort();
  t.equal(limiter.waiting, 1);
  await settled();
  t.same(jobs.refused, ["b cancelled", "b cancelled"]);
  await jobs.end("a");
  t.equal(jobs.running(), "c");
  jobs.start("b", 1, controller.signal);
  await settled();
  t.equal(jobs.refused.length, 3, "a signal that was aborted before");
});

t.test("if too many jobs wait, further ones are refused", async (t) => {
  const { limiter, jobs } = limit({ maxRunning: 1, maxWaiting: 4 });
  jobs.start("a", 6);
  await settled();
  t.same(jobs.refused, ["a overloaded"]);
  t.equal(limiter.waiting, 4);
  await t.rejects(
    createLimiter({ maxRunning: 0, maxPerKey: 1, maxWaiting: 0 }).run("a", async () => 1),
    {
      message: "expected at most 0 waiting jobs, received one more",
    },
  );
});

t.test(
  "jobs with a cost wait for each other, one may always run, and none holds up those without",
  async (t) => {
    const { limiter, jobs } = limit({ maxCost: 10 });
    jobs.start("a", 1, undefined, 6);
    jobs.start("b", 1, undefined, 100);
    jobs.start("c", 1, undefined, 4);
    jobs.start("d", 2);
    t.equal(jobs.running(), "add", "c fits, but b came before it");
    await jobs.end("d", 2);
    t.equal(jobs.running(), "a");
    await jobs.end("a");
    t.equal(jobs.running(), "b", "alone");
    await jobs.end("b");
    t.equal(jobs.running(), "c");
    jobs.start("a", 1, undefined, 6);
    t.equal(jobs.running(), "ca");
    t.equal(limiter.waiting, 0);
  },
);

t.test("a job that fails leaves its place", async (t) => {
  const { limiter } = limit({ maxRunning: 1 });
  const fail = () => {
    throw new Error("no");
  };
  t.throws(() => limiter.run("a", fail), { message: "no" });
  await t.rejects(
    limiter.run("a", async () => fail()),
    { message: "no" },
  );
  t.equal(await limiter.run("a", async () => 1), 1);
});

t.test("in any order of events, bounds hold and no job is lost", async (t) => {
  const { limiter } = limit({ maxRunning: 5, maxPerKey: 2, maxWaiting: 10_000 });
  const running = new Map<string, number>();
  let all = 0;
  let state = 1;
  const random = (n: number) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return (state >>> 8) % n;
  };
  const results = Array.from({ length: 3_000 }, async () => {
    const key = `${random(200)}`;
    const controller = new AbortController();
    if (random(4) === 0) setImmediate(() => controller.abort());
    const job = async () => {
      const own = (running.get(key) ?? 0) + 1;
      running.set(key, own);
      if (own > 2 || ++all > 5) t.fail(`${own} of a key, ${all} in all`);
      for (let turns = random(3); turns > 0; turns--) await settled();
      running.set(key, (running.get(key) ?? 0) - 1);
      all--;
      return true;
    };
    return limiter.run(key, job, controller.signal).catch(({ code }) => code === "cancelled");
  });
  t.ok((await Promise.all(results)).every(Boolean));
  t.equal(limiter.waiting, 0);
});
