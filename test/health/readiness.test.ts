import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { pino } from "pino";
import t, { type Test } from "tap";
import type { ChunkCache } from "../../src/cache/chunk-cache.js";
import { createNullCache } from "../../src/cache/null-chunk-cache.js";
import { ZpublishError } from "../../src/errors.js";
import { createProbeChunk } from "../../src/health/probe-chunk.js";
import {
  createReadiness,
  type Readiness,
  type ReadinessParts,
  type ReadinessReport,
} from "../../src/health/readiness.js";
import { createEncodePool, type EncodePool, type EncodePoolOptions } from "../../src/pool/encode-pool.js";
import { createTurnPool } from "../../src/processes/turn-pool.js";
import { createMemorySource } from "../../src/source/memory.js";
import { createEncodingPlan } from "../../src/zarr/create-encoding-plan.js";
import { createTestLog } from "../http/start-test-server.js";
import { startServer } from "../server/start-server.js";
import { storedArray } from "../zarr/stored-array.js";

t.setTimeout(120_000);
const log = pino({ level: "silent" });
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

function openPool(t: Test, options: Partial<EncodePoolOptions> = {}): EncodePool {
  const pool = createEncodePool({ threads: 1, log, ...options });
  t.teardown(() => pool.close());
  return pool;
}

/** Serving. */
function createBegun(parts: Partial<ReadinessParts>) {
  const readiness = createReadiness({
    metadata: () => "ok",
    pool: () => undefined,
    cache: () => undefined,
    chunkTimeoutMs: 120_000,
    log,
    ...parts,
  });
  readiness.begin();
  return readiness;
}

/** The first report that does not say that a part takes its time: starting a thread may, on a busy machine. */
async function settled(readiness: Readiness): Promise<ReadinessReport> {
  for (;;) {
    const report = await readiness.check();
    if (report.checks.pool !== "busy") return report;
    await pause(200);
  }
}

t.test("starting, ready, draining", async (t) => {
  const readiness = createReadiness({
    metadata: () => "none open",
    pool: () => undefined,
    cache: () => undefined,
    chunkTimeoutMs: 1,
    log,
  });
  t.same(await readiness.check(), { ready: false, reason: "starting", checks: {} });
  readiness.begin();
  t.same(await readiness.check(), {
    ready: true,
    checks: { metadata: "none open", pool: "none", cache: "none" },
  });
  readiness.drain();
  t.same(await readiness.check(), { ready: false, reason: "draining", checks: {} });
  readiness.begin();
  t.same(await readiness.check(), { ready: false, reason: "draining", checks: {} }, "for good");
});

t.test("however many ask, it is tried once in a second", async (t) => {
  let tried = 0;
  const readiness = createBegun({
    metadata: async () => {
      tried++;
      return "ok";
    },
  });
  await Promise.all(Array.from({ length: 50 }, () => readiness.check()));
  await readiness.check();
  t.equal(tried, 1);
  await pause(1_050);
  await readiness.check();
  t.equal(tried, 2);
});

t.test("a chunk is made, and what keeps it from being made is the reason", async (t) => {
  const pool = openPool(t);
  t.match(await settled(createBegun({ pool: () => pool })), { ready: true, checks: { pool: "ok" } });
  t.ok(pool.stats.completed >= 1);
  t.equal(pool.stats.threads, 1);

  const directory = t.testdir({
    "wrong.mjs": `export default () => ({ status: "encoded", bytes: new Uint8Array(3), stamp: "0", timings: { read: 0, decode: 0, encode: 0 } });`,
    "broken.mjs": `import { existsSync } from "node:fs";
if (!existsSync(new URL("./allowed", import.meta.url))) throw new Error(import.meta.url);
export { default } from ${JSON.stringify(new URL("../../workers/make-chunk.js", import.meta.url).href)};`,
  });
  const wrong = openPool(t, { workerFile: join(directory, "wrong.mjs") });
  t.match(await settled(createBegun({ pool: () => wrong })), {
    ready: false,
    reason: "pool: expected the bytes of the probe, received others",
  });
  const broken = openPool(t, { workerFile: join(directory, "broken.mjs") });
  const readiness = createBegun({ pool: () => broken });
  t.match(await settled(readiness), {
    ready: false,
    reason: "pool: expected a worker to start, none does",
    checks: { metadata: "ok", pool: "failed" },
  });
  writeFileSync(join(directory, "allowed"), "");
  while (!(await readiness.check()).ready) await pause(100);
  t.pass("it starts again when it can");
});

t.test(
  "what fails is logged when it begins to, when it fails otherwise, and when it works again",
  async (t) => {
    const { log, lines } = createTestLog();
    let failure: Error | undefined = new Error("ENOENT: open '/somewhere/secret'");
    const metadata = () => (failure === undefined ? "ok" : Promise.reject(failure));
    const readiness = createBegun({ metadata, log });
    const checkTwice = async () => {
      for (let time = 0; time < 2; time++) {
        await readiness.check();
        await pause(1_050);
      }
      return readiness.check();
    };
    t.equal((await checkTwice()).reason, "metadata: internal");
    failure = new ZpublishError("source-unreadable", "expected '/somewhere/secret' to be readable");
    t.equal((await checkTwice()).reason, "metadata: source-unreadable");
    failure = undefined;
    t.equal((await checkTwice()).ready, true);
    t.match(lines, [
      { level: 50, part: "metadata", err: { message: "ENOENT: open '/somewhere/secret'" } },
      { level: 50, part: "metadata", err: { message: "expected '/somewhere/secret' to be readable" } },
      { level: 30, part: "metadata", msg: "a part of the server works again" },
    ]);
    t.equal(lines.length, 3);
  },
);

t.test("load is no reason, and the chunk that is tried goes before others", async (t) => {
  const workerFile = fileURLToPath(new URL("../pool/crashing-worker.js", import.meta.url));
  const pool = openPool(t, { workerFile });
  const { plan } = createEncodingPlan(storedArray(), { compressor: null });
  const busy = Array.from({ length: 20 }, () => pool.makeChunk({ plan, chunkCoords: [10, 300] }));
  const readiness = createBegun({ pool: () => pool });
  // That worker makes nothing of what it is asked for: only whether it is waited for is of interest.
  t.match(await settled(readiness), { reason: "pool: not-found" });
  t.ok(pool.stats.queued > 0, "before others were made that had waited");
  await pool.close();
  await Promise.all(busy);

  const stuck = openPool(t, { workerFile });
  const outcome = stuck.makeChunk({ plan, chunkCoords: [4] });
  t.match(await createBegun({ pool: () => stuck }).check(), { ready: true, checks: { pool: "busy" } });
  await stuck.close();
  await outcome;
});

t.test("a pool that does nothing is stuck", async (t) => {
  const { stats } = openPool(t);
  const pool: EncodePool = { makeChunk: () => new Promise(() => undefined), stats, close: async () => {} };
  const readiness = createBegun({ pool: () => pool });
  let report = await readiness.check();
  t.match(report, { ready: true, checks: { pool: "busy" } });
  while (report.ready) {
    await pause(500);
    report = await readiness.check();
  }
  t.match(report.reason, /^pool: expected a chunk to be made, none was for \d+ s$/);
});

t.test("the pool of one of several processes is asked without waiting for its turn", async (t) => {
  const sent: unknown[] = [];
  const pool = openPool(t);
  const turns = createTurnPool({ pool, send: (message) => sent.push(message), log, maxWaiting: 10 });
  t.match(await settled(createBegun({ pool: () => turns })), { ready: true });
  t.ok(turns.stats.completed > 0);
  t.same(sent, []);
});

t.test("a cache that is off or full is no reason, one that gives other bytes is", async (t) => {
  const kept = new Map<string, Uint8Array>();
  const cache: ChunkCache = {
    ...createNullCache(),
    stats: { ...createNullCache().stats, isOff: false },
    get: (key) => kept.get(key.id),
    put: (key, chunk) => void kept.set(key.id, chunk as Uint8Array),
  };
  t.match(await createBegun({ cache: () => cache }).check(), { ready: true, checks: { cache: "ok" } });
  t.equal(kept.size, 1);
  t.match(await createBegun({ cache: () => cache }).check(), { ready: true, checks: { cache: "ok" } });
  for (const key of kept.keys()) kept.set(key, new Uint8Array(512));
  t.match(await createBegun({ cache: () => cache }).check(), {
    ready: false,
    reason: "cache: expected the bytes that were put into it, received others",
  });
  const off = { ...cache, stats: { ...cache.stats, isOff: true } };
  t.match(await createBegun({ cache: () => off }).check(), { ready: true, checks: { cache: "off" } });
});

t.test("metadata that cannot be made are a reason, such that take long are none", async (t) => {
  const failing = createBegun({ metadata: () => Promise.reject(new Error("no")) });
  t.match(await failing.check(), { ready: false, reason: "metadata: internal" });
  const long = createBegun({ metadata: () => new Promise(() => undefined) });
  t.match(await long.check(), { ready: true, checks: { metadata: "busy" } });
});

t.test("the chunk that is tried is made again where it could not be made", async (t) => {
  let failures = 1;
  const pool = openPool(t);
  const readiness = createBegun({
    pool: () => pool,
    createProbe: () => (failures-- > 0 ? Promise.reject(new Error("no memory")) : createProbeChunk()),
  });
  t.match(await readiness.check(), { ready: false, reason: "pool: internal" });
  await pause(1_050);
  t.match(await settled(readiness), { ready: true, checks: { pool: "ok" } });
});

t.test("what a chunk failed of that nobody waited for is said once", async (t) => {
  const { stats } = openPool(t);
  const pool: EncodePool = { makeChunk: () => new Promise(() => undefined), stats, close: async () => {} };
  const fails: (() => void)[] = [];
  const readiness = createBegun({
    pool: () => pool,
    createProbe: async () => ({
      bytes: new Uint8Array(0),
      make: () => new Promise((_, reject) => fails.push(() => reject(new Error("no memory")))),
    }),
  });
  const look = async () => {
    await pause(1_050);
    return readiness.check();
  };
  t.match(await look(), { ready: true, checks: { pool: "busy" } });
  fails[0]?.();
  t.match(await look(), { ready: false, reason: "pool: internal" }, "by the next look");
  t.match(await look(), { ready: true, checks: { pool: "busy" } }, "and by no other");
  const third = look();
  await pause(1_300);
  fails[1]?.();
  t.match(await third, { ready: false, reason: "pool: internal" }, "by the look that waited for it");
  t.match(await look(), { ready: true, checks: { pool: "busy" } }, "and by no other");
});

t.test("a balancer that waits two seconds gets an answer, whatever takes its time", async (t) => {
  const { stats } = openPool(t);
  const pool: EncodePool = { makeChunk: () => new Promise(() => undefined), stats, close: async () => {} };
  const readiness = createBegun({ pool: () => pool, metadata: () => new Promise(() => undefined) });
  const first = await Promise.race([readiness.check(), pause(2_000)]);
  t.match(first, { ready: true, checks: { metadata: "busy", pool: "busy" } });
});

t.test("what is said of metadata is what was found", async (t) => {
  const { json } = await startServer(t, { datasets: [] });
  t.match(await json("/readyz"), { ready: true, checks: { metadata: "none open" } });
});

t.test("a server is ready by its whole way, and nobody sees what was tried", async (t) => {
  const source = createMemorySource({
    groups: [{ path: "/", arrays: [{ name: "v", data: new Uint8Array(4), shape: [4] }] }],
  });
  const dataset = { id: "d", location: "memory", immutable: false, encoding: {}, variables: {}, source };
  const { get, json } = await startServer(t, { datasets: [dataset] });
  // Nobody has asked /readyz yet. What a busy machine takes long for is not waited for here.
  while (!/^zpublish_ready 1$/m.test(await (await get("/metrics")).text())) await pause(250);
  let report: unknown;
  do {
    const ready = await get("/readyz");
    t.equal(ready.status, 200);
    report = await ready.json();
    await pause(250);
  } while ((report as ReadinessReport).checks.pool === "busy");
  t.same(report, { ready: true, checks: { metadata: "ok", pool: "ok", cache: "none" } });
  t.same(await json("/datasets"), ["d"]);
  const without = await startServer(t, { datasets: [dataset], plugins: [{ name: "plugin_info" }] });
  t.match(await without.json("/readyz"), { ready: true, checks: { pool: "none" } });
});
