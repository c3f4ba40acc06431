import { execFileSync } from "node:child_process";
import { closeSync, existsSync, mkdirSync, openSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { pino } from "pino";
import t, { type Test } from "tap";
import { memoryOfTask } from "../../src/pool/chunk-task.js";
import { createEncodePool, type EncodePool, type EncodePoolOptions } from "../../src/pool/encode-pool.js";
import { createEncodingPlan } from "../../src/zarr/plan/create-encoding-plan.js";
import type { EncodingPlan } from "../../src/zarr/plan/encoding-plan.js";
import { storedArray } from "../support/datasets/stored-array.js";
import { arrayBytes, gridPositions, readerOf } from "../support/datasets/stored-chunks.js";

t.setTimeout(600_000);

function openPool(t: Test, options: Partial<EncodePoolOptions> = {}): EncodePool {
  const pool = createEncodePool({
    threads: 2,
    withChecksums: true,
    log: pino({ level: "silent" }),
    ...options,
  });
  t.teardown(() => pool.close());
  return pool;
}

const crashing = fileURLToPath(new URL("./crashing-worker.js", import.meta.url));

const { plan: PLAN } = createEncodingPlan(storedArray(), { compressor: null });
const plans = new Map<string, EncodingPlan>();

/** Creates a task that tells the crashing worker what to do. */
function order(number: number, path = "g/t", second = 0) {
  const plan = plans.get(path) ?? { ...PLAN, path };
  plans.set(path, plan);
  return { plan, chunkCoords: [number, second] };
}

async function writeChunks(directory: string): Promise<void> {
  const stored = storedArray();
  const reader = await readerOf(stored, arrayBytes(stored.shape, 4));
  mkdirSync(directory, { recursive: true });
  for (const coords of gridPositions([3, 3])) {
    const chunk = await reader.read(coords);
    if (coords.join(".") !== "1.1" && chunk !== undefined)
      writeFileSync(join(directory, coords.join(".")), chunk.bytes);
  }
}

/** Time limit that is long enough for a worker to start on a busy machine. */
const STUCK_AFTER_MS = 4_000;

t.test(
  "a chunk that crashes workers fails by name after two of them, and others notice nothing",
  async (t) => {
    const pool = openPool(t, { workerFile: crashing });
    for (const [number, path] of [
      [1, "thrown"],
      [2, "exited"],
      [5, "uncaught"],
    ] as const) {
      const poison = pool.makeChunk(order(number, path));
      const others = await Promise.all([0, 0, 0, 0].map((ordinary) => pool.makeChunk(order(ordinary))));
      for (const outcome of others) t.match(outcome, { status: "absent" });
      t.match(await poison, {
        status: "failed",
        error: { code: "codec-failed", message: `array '${path}': the worker for chunk ${number}.0 crashed` },
      });
    }
    t.match(pool.stats, { retried: 3, quarantined: 3, failed: 3, workerDeaths: { crashed: 6, timedOut: 0 } });
  },
);

t.test("a chunk whose worker crashed by accident is made by another", async (t) => {
  const pool = openPool(t, { workerFile: crashing, threads: 1 });
  t.match(await pool.makeChunk(order(9, join(t.testdir(), "seen"))), { status: "absent" });
  t.match(pool.stats, { retried: 1, quarantined: 0, failed: 0, workerDeaths: { crashed: 1 } });
});

t.test("a task whose stored bytes went to the worker that it killed is not tried again", async (t) => {
  const pool = openPool(t, { workerFile: crashing });
  const stored = [{ coords: [0, 0], version: "1", bytes: new Uint8Array(9) }];
  const outcome = await pool.makeChunk({ ...order(2, "moved"), stored });
  t.match(outcome, { status: "failed", error: { code: "codec-failed" } });
  t.equal(stored[0]?.bytes.length, 0, "they are moved, not copied");
  t.match(pool.stats, { retried: 0, workerDeaths: { crashed: 1 } });
});

t.test("a chunk that killed workers is not tried again for a while, unless it was rewritten", async (t) => {
  const pool = openPool(t, { workerFile: crashing, threads: 1 });
  const task = { ...order(2), version: "a" };
  t.match(await pool.makeChunk(task), { status: "failed" });
  const { crashed } = pool.stats.workerDeaths;
  t.match(await pool.makeChunk(task), {
    error: { code: "codec-failed", message: /worker for chunk 2\.0 crashed; it is not tried again/ },
  });
  t.equal(pool.stats.workerDeaths.crashed, crashed, "no worker tried it");
  t.match(await pool.makeChunk({ ...task, version: "b" }), { status: "failed" });
  t.equal(pool.stats.workerDeaths.crashed, crashed + 2, "the rewritten chunk is tried");
});

t.test("a worker that runs out of memory affects no other", async (t) => {
  const pool = openPool(t, { workerFile: crashing, threads: 1, workerHeapBytes: 64 * 2 ** 20 });
  t.match(await pool.makeChunk(order(6, "hoarder")), {
    status: "failed",
    error: { code: "codec-failed", message: /ran out of memory/ },
  });
  t.equal(pool.stats.workerDeaths.outOfMemory, 2);
  t.match(await pool.makeChunk(order(0)), { status: "absent" });
});

t.test("the task of a worn-out worker is made by another", async (t) => {
  const pool = openPool(t, { workerFile: crashing, threads: 1 });
  const file = join(t.testdir(), "seen");
  t.match(await pool.makeChunk(order(3, file)), { status: "absent" });
  t.match(pool.stats, { retried: 0, workerDeaths: { crashed: 0 } });
});

t.test("a worker that takes too long is terminated, and its chunk is not tried again", async (t) => {
  const pool = openPool(t, { workerFile: crashing, taskTimeoutMs: STUCK_AFTER_MS });
  const failure = {
    status: "failed",
    error: { message: new RegExp(`exceeded the time limit of ${STUCK_AFTER_MS} ms`) },
  };
  const [waiting, looping] = await Promise.all([
    pool.makeChunk(order(4, "waiting")),
    pool.makeChunk(order(7, "looping")),
  ]);
  t.match(waiting, failure);
  t.match(looping, failure);
  t.match(await pool.makeChunk(order(7, "looping")), failure);
  t.match(pool.stats, { retried: 0, quarantined: 2, workerDeaths: { timedOut: 2 } });
  t.match(await pool.makeChunk(order(0)), { status: "absent" });
});

for (const threads of [1, 2]) {
  t.test(`an array full of chunks that crash ${threads} workers takes turns with others`, async (t) => {
    const pool = openPool(t, { workerFile: crashing, threads });
    const poisoned = Array.from({ length: 30 }, (_, index) => pool.makeChunk(order(2, "poisoned", index)));
    const others = Array.from({ length: 10 }, (_, index) => pool.makeChunk(order(0, "healthy", index)));
    for (const outcome of await Promise.all(others)) t.match(outcome, { status: "absent" });
    const { quarantined } = pool.stats;
    t.ok(quarantined > 0 && quarantined <= 10 + threads, `${quarantined} of them were tried meanwhile`);
    await pool.close();
    for (const outcome of await Promise.all(poisoned)) t.match(outcome, { status: "failed" });
  });
}

t.test("workers that hang in a read are replaced", async (t) => {
  const pool = openPool(t, { workerFile: crashing, taskTimeoutMs: STUCK_AFTER_MS });
  const pipes = [1, 2].map((number) => join(t.testdir(), `pipe${number}`));
  for (const pipe of pipes) execFileSync("mkfifo", [pipe]);
  const stuck = await Promise.all(pipes.map((pipe) => pool.makeChunk(order(8, pipe))));
  for (const outcome of stuck) t.match(outcome, { error: { message: /time limit/ } });
  t.match(await pool.makeChunk(order(0)), { status: "absent" });
  // Lets the threads end.
  for (const pipe of pipes) closeSync(openSync(pipe, "w"));
});

t.test("closing settles everything", async (t) => {
  const pool = openPool(t, { workerFile: crashing, threads: 1 });
  const outcomes = [4, 0, 0].map((number) => pool.makeChunk(order(number)));
  await new Promise((resolve) => setTimeout(resolve, 200));
  await pool.close();
  for (const outcome of await Promise.all(outcomes)) {
    t.match(outcome, { status: "failed", error: { code: "draining" } });
  }
  t.match(await pool.makeChunk(order(0)), { status: "failed", error: { code: "draining" } });
});

t.test("a thread that loads its modules is not terminated before it has loaded them", async (t) => {
  const directory = t.testdir({
    "slow.mjs": `import { writeFileSync } from "node:fs";
writeFileSync(new URL("./began", import.meta.url), "");
const end = Date.now() + 300;
while (Date.now() < end);
writeFileSync(new URL("./loaded", import.meta.url), "");
export default () => ({ status: "absent" });`,
  });
  const pool = openPool(t, { workerFile: join(directory, "slow.mjs"), threads: 1 });
  const outcome = pool.makeChunk(order(0));
  while (!existsSync(join(directory, "began"))) await new Promise((resolve) => setTimeout(resolve, 5));
  await pool.close();
  t.ok(existsSync(join(directory, "loaded")));
  t.match(await outcome, { status: "failed", error: { code: "draining" } });
});

t.test(
  "a worker that cannot start fails no task at once, is not tried in a loop, and again later",
  async (t) => {
    for (const problem of ["throw new Error('cannot start')", "process.exit(3)"]) {
      const source = `import { existsSync } from "node:fs";
if (!existsSync(new URL("./allowed", import.meta.url))) ${problem};
export default () => ({ status: "absent" });`;
      const directory = t.testdir({ "broken.mjs": source });
      const pool = openPool(t, { workerFile: join(directory, "broken.mjs") });
      const outcomes = await Promise.all([0, 0, 0].map((number) => pool.makeChunk(order(number))));
      for (const outcome of outcomes) {
        t.match(outcome, { error: { code: "overloaded", message: "expected a worker to start, none does" } });
      }
      t.ok(pool.stats.isBroken);
      const { couldNotStart } = pool.stats.workerDeaths;
      t.ok(couldNotStart >= 3 && couldNotStart <= 9, `${couldNotStart} starts`);
      t.match(await pool.makeChunk(order(0)), { error: { code: "overloaded" } });
      t.equal(pool.stats.workerDeaths.couldNotStart, couldNotStart, "not tried before the pause is over");
      writeFileSync(join(directory, "allowed"), "");
      let outcome = await pool.makeChunk(order(0));
      while (outcome.status === "failed") {
        await new Promise((resolve) => setTimeout(resolve, 50));
        outcome = await pool.makeChunk(order(0));
      }
      t.match(outcome, { status: "absent" });
      t.notOk(pool.stats.isBroken);
    }
  },
);

t.test(
  "if the system cannot create a thread, no chunk goes into quarantine and the process does not end",
  async (t) => {
    const threads = createRequire(import.meta.url)("node:worker_threads") as { Worker: unknown };
    const { Worker } = threads;
    const pool = openPool(t);
    t.teardown(() => {
      threads.Worker = Worker;
    });
    threads.Worker = class {
      constructor() {
        // The error of Node.js if pthread_create fails.
        throw Object.assign(new Error("Worker initialization failure: EAGAIN"), {
          code: "ERR_WORKER_INIT_FAILED",
        });
      }
    };
    const directory = t.testdir();
    await writeChunks(directory);
    const source = { kind: "files", directory, keyEncoding: { name: "v2", separator: "." } } as const;
    const task = { plan: { ...PLAN, source }, chunkCoords: [0, 0] };
    const refused = await pool.makeChunk(task);
    t.match(refused, { error: { code: "overloaded", message: "expected a worker to start, none does" } });
    const { workerDeaths, quarantined } = pool.stats;
    t.ok(workerDeaths.couldNotStart >= 3, `${workerDeaths.couldNotStart} starts`);
    t.equal(quarantined, 0);
    threads.Worker = Worker;
    let outcome = await pool.makeChunk(task);
    while (outcome.status === "failed" && outcome.error.code === "overloaded") {
      await new Promise((resolve) => setTimeout(resolve, 50));
      outcome = await pool.makeChunk(task);
    }
    t.match(outcome, { status: "encoded" });
  },
);

t.test(
  "a chunk that arrived is taken, even if its time was over while the event loop stood still",
  async (t) => {
    const pool = openPool(t, { workerFile: crashing, threads: 1, taskTimeoutMs: 1_000 });
    // Starts a worker.
    await pool.makeChunk(order(0));
    const outcome = pool.makeChunk(order(10, "g/t", 300));
    // From this phase the loop runs timers before it receives messages.
    await new Promise((resolve) => setImmediate(resolve));
    const until = performance.now() + 2_000;
    while (performance.now() < until);
    t.not((await outcome).status, "failed");
    t.equal(pool.stats.workerDeaths.timedOut, 0);
  },
);

t.test("chunks that need much memory wait for each other", async (t) => {
  const memory = memoryOfTask({ plan: PLAN });
  const pool = openPool(t, { workerFile: crashing, memoryBudgetBytes: 2 * memory });
  const made = [1, 2].map((index) => pool.makeChunk(order(10, `large${index}`, 20)));
  t.match(pool.stats, { running: 1, queued: 1 });
  await Promise.all(made);
  const small = openPool(t, { workerFile: crashing, memoryBudgetBytes: 4 * memory });
  const both = [1, 2].map((index) => small.makeChunk(order(10, `small${index}`, 20)));
  t.match(small.stats, { running: 2, queued: 0 });
  await Promise.all(both);
});
