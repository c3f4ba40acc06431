import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pino } from "pino";
import t, { type Test } from "tap";
import type { ChunkOutcome } from "../../src/codec/make-chunk.js";
import { ZpublishError } from "../../src/errors.js";
import { createMemorySource } from "../../src/open/memory-source.js";
import { createEncodePool, type EncodePool, type EncodePoolOptions } from "../../src/pool/encode-pool.js";
import { createReadiness, type ReadinessParts, type ReadinessReport } from "../../src/server/readiness.js";
import { createTestLog } from "../support/servers/serve-routes.js";
import { startServer } from "../support/servers/start-server.js";

t.setTimeout(600_000);
const log = pino({ level: "silent" });
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

function openPool(t: Test, options: Partial<EncodePoolOptions> = {}): EncodePool {
  const pool = createEncodePool({ threads: 1, log, ...options });
  t.teardown(() => pool.close());
  return pool;
}

function createStarting(parts: Partial<ReadinessParts> = {}) {
  return createReadiness({ pool: () => undefined, cacheState: () => "none", log, ...parts });
}

function createBegun(parts: Partial<ReadinessParts>) {
  const readiness = createStarting(parts);
  readiness.begin(0);
  return readiness;
}

const createWithPool = (pool: EncodePool) => createBegun({ pool: () => pool });

/** Asks until a chunk was tried: workers start slowly on a busy machine, and a balancer does not wait for them. */
async function checkTried({ check }: ReturnType<typeof createWithPool>): Promise<ReadinessReport> {
  for (;;) {
    const report = await check();
    if (report.reason !== "starting") return report;
  }
}

/** A pool whose only chunk is made by a test. */
function fakePool(makeChunk: () => Promise<void>, isBroken = () => false) {
  const outcome: ChunkOutcome = { status: "absent" };
  const stats = {
    get isBroken() {
      return isBroken();
    },
  } as EncodePool["stats"];
  return { stats, makeChunk: () => makeChunk().then(() => outcome) };
}

t.test("starting, ready, draining", async (t) => {
  const readiness = createStarting();
  t.same(await readiness.check(), { ready: false, reason: "starting", checks: {} });
  readiness.begin(0);
  t.notOk(readiness.isReady, "nothing was tried yet");
  t.same(await readiness.check(), { ready: true, checks: { pool: "none", cache: "none" } });
  t.ok(readiness.isReady);
  readiness.drain();
  t.notOk(readiness.isReady);
  t.same(await readiness.check(), { ready: false, reason: "draining", checks: {} });
  readiness.begin(0);
  t.same(await readiness.check(), { ready: false, reason: "draining", checks: {} }, "for good");
});

t.test("workers start with the server, whether or not they can", async (t) => {
  let runs = 0;
  let haveStarted = () => {};
  const started = new Promise<void>((resolve) => {
    haveStarted = resolve;
  });
  const pool = fakePool(async () => {
    runs++;
    if (runs === 3) haveStarted();
    if (runs <= 3) throw new Error("no memory");
  });
  const readiness = createStarting({ pool: () => pool });
  readiness.begin(3);
  readiness.begin(3);
  t.equal(runs, 0, "after what the caller still does");
  await started;
  t.notOk(readiness.isReady);
  t.ok((await readiness.check()).ready);
  t.equal(runs, 4);
});

t.test("a chunk is made once at a time, and not again once that has worked", async (t) => {
  let failures = 1;
  let runs = 0;
  const pool = fakePool(async () => {
    runs++;
    if (failures-- > 0) throw new Error("no memory");
  });
  const readiness = createBegun({ pool: () => pool });
  for (const reason of ["pool: internal", undefined, undefined]) {
    const reports = await Promise.all(Array.from({ length: 50 }, () => readiness.check()));
    for (const report of reports) t.equal(report.reason, reason);
  }
  t.equal(runs, 2);
});

t.test("a chunk is made, and the error that prevents it is the reason", async (t) => {
  const pool = openPool(t);
  t.match(await checkTried(createWithPool(pool)), { ready: true, checks: { pool: "ok" } });
  t.equal(pool.stats.completed, 1);

  const directory = t.testdir({
    "broken.mjs": `import { existsSync } from "node:fs";
if (!existsSync(new URL("./allowed", import.meta.url))) throw new Error(import.meta.url);
export { default } from ${JSON.stringify(new URL("../../workers/make-chunk.js", import.meta.url).href)};`,
  });
  const broken = openPool(t, { workerFile: join(directory, "broken.mjs") });
  const readiness = createWithPool(broken);
  t.same(await checkTried(readiness), {
    ready: false,
    reason: "pool: expected a worker to start, none does",
    checks: {},
  });
  writeFileSync(join(directory, "allowed"), "");
  while (!(await readiness.check()).ready) await pause(100);
  t.pass("it starts again when it can");
});

t.test("a pool that breaks later is not ready until it can make a chunk again", async (t) => {
  let isBroken = false;
  const pool = fakePool(
    async () => {},
    () => isBroken,
  );
  const readiness = createBegun({ pool: () => pool });
  t.equal((await readiness.check()).ready, true);
  isBroken = true;
  t.notOk(readiness.isReady);
  t.equal((await readiness.check()).reason, "pool: expected a worker to start, none does");
  isBroken = false;
  t.equal((await readiness.check()).ready, true);
});

t.test(
  "the pool is logged when it fails, when it fails for another reason, and when it works again",
  async (t) => {
    const { log, lines } = createTestLog();
    let failure: Error | undefined = new Error("ENOENT: open '/somewhere/secret'");
    const pool = fakePool(async () => {
      if (failure !== undefined) throw failure;
    });
    const readiness = createBegun({ pool: () => pool, log });
    const checkTwice = async () => {
      await readiness.check();
      return readiness.check();
    };
    t.equal((await checkTwice()).reason, "pool: internal");
    failure = new ZpublishError("source-unreadable", "expected '/somewhere/secret' to be readable");
    t.equal((await checkTwice()).reason, "pool: source-unreadable");
    failure = undefined;
    t.equal((await checkTwice()).ready, true);
    t.match(lines, [
      { level: 50, err: { message: "ENOENT: open '/somewhere/secret'" } },
      { level: 50, err: { message: "expected '/somewhere/secret' to be readable" } },
      { level: 30, msg: "workers make chunks again" },
    ]);
    t.equal(lines.length, 3);
  },
);

t.test("a balancer gets an answer in time, even if the pool is slow", async (t) => {
  const readiness = createBegun({ pool: () => fakePool(() => new Promise(() => undefined)) });
  const first = await Promise.race([readiness.check(), pause(5_000)]);
  t.same(first, { ready: false, reason: "starting", checks: {} });
});

t.test("a server is ready once a worker has made a chunk, which clients do not see", async (t) => {
  const source = createMemorySource({
    groups: [{ path: "/", arrays: [{ name: "v", data: new Uint8Array(4), shape: [4] }] }],
  });
  const dataset = { id: "d", location: "memory", immutable: false, encoding: {}, variables: {}, source };
  const { get, json } = await startServer(t, { datasets: [dataset] });
  // There was no request for /readyz yet.
  while (!/^zpublish_ready 1$/m.test(await (await get("/metrics")).text())) await pause(250);
  const ready = await get("/readyz");
  t.equal(ready.status, 200);
  const report = (await ready.json()) as ReadinessReport;
  t.same(report, { ready: true, checks: { pool: "ok", cache: "none" } });
  t.same(await json("/datasets"), ["d"]);
  const without = await startServer(t, { datasets: [dataset], plugins: [{ name: "plugin_info" }] });
  t.match(await without.json("/readyz"), { ready: true, checks: { pool: "none" } });
});
