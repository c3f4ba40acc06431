import { spawnSync } from "node:child_process";
import t from "tap";
import { defaultValues, optionConfig } from "../../src/config/options.js";
import { createHistogram, processMetrics, renderMetrics } from "../../src/observe/metrics.js";
import { createMemorySource } from "../../src/open/memory-source.js";
import { createEncodePool } from "../../src/pool/encode-pool.js";
import { type MetricSources, serverMetrics } from "../../src/server/metrics.js";
import { parseMetrics } from "../support/servers/parse-metrics.js";
import { rawRequest } from "../support/servers/raw-request.js";
import { bodyReplyOf, routeOf, serveRoutes } from "../support/servers/serve-routes.js";
import { startServer } from "../support/servers/start-server.js";

const routes = [
  routeOf("/chunk/{key}", () => bodyReplyOf(Buffer.from("0123456789"), '"c"'), "chunk"),
  routeOf("/page", () => bodyReplyOf(Buffer.from("page"), '"p"')),
];
const { limits } = optionConfig(defaultValues({}));

function histogramOf(...seconds: number[]) {
  const made = createHistogram();
  for (const each of seconds) made.observe(each);
  return made;
}

const collectMetrics = async (from: MetricSources) => [...(await processMetrics()), ...serverMetrics(from)];

async function sources(t: Parameters<typeof serveRoutes>[0]): Promise<MetricSources & { port: number }> {
  const { server, port } = await serveRoutes(t, routes, { maxConnections: 77 });
  const stats = Object.create(server.stats, { clientsDropped: { value: 3 } }) as typeof server.stats;
  return {
    port,
    http: { metrics: server.metrics, stats },
    limits,
    isReady: () => true,
    pool: () => ({
      queued: 3,
      running: 2,
      threads: 2,
      completed: 10,
      failed: 1,
      retried: 1,
      workerDeaths: { crashed: 1, outOfMemory: 2, timedOut: 0, couldNotStart: 0 },
      quarantined: 0,
      isBroken: false,
      wait: histogramOf(0.0002, 0.3, 1_000),
      stages: { read: histogramOf(0.001), decode: histogramOf(), encode: histogramOf(0.01, 0.02) },
    }),
    chunks: () => ({
      answered: { hit: 5, pass: 1, miss: 2 },
      bytes: { hit: 50, pass: 10, miss: 20 },
      reads: { waiting: 7 },
    }),
    caches: () => [],
    datasets: () => ({ datasets: 4, open: 3, failedRefreshes: 0, providers: [] }),
  };
}

t.test("Prometheus reads all counts in its units, by route template", async (t) => {
  const from = await sources(t);
  for (const key of ["0", "1", "2?token=abc", "%ff"]) await rawRequest(from.port, `/chunk/${key}`);
  await rawRequest(from.port, "/nowhere/in/particular");
  await rawRequest(from.port, "/chunk/0", { method: "HEAD" });
  const text = await renderMetrics([{ families: await collectMetrics(from) }]);
  const { value, families } = parseMetrics(text);
  t.equal(value("zpublish_http_requests_total", { route: "/chunk/{key}", method: "GET", status: "200" }), 3);
  t.equal(value("zpublish_http_requests_total", { route: "/chunk/{key}", method: "HEAD", status: "200" }), 1);
  t.equal(value("zpublish_http_requests_total", { route: "unmatched", method: "GET", status: "404" }), 1);
  t.equal(value("zpublish_http_requests_total", { route: "unmatched", method: "GET", status: "422" }), 1);
  t.equal(value("zpublish_http_response_bytes_total", { route: "/chunk/{key}" }), 30);
  t.equal(value("zpublish_http_request_duration_seconds_count", { route: "/chunk/{key}" }), 4);
  t.equal(value("zpublish_http_request_duration_seconds_bucket", { route: "/chunk/{key}", le: "+Inf" }), 4);
  t.equal(value("zpublish_http_max_requests_in_flight", { priority: "chunk" }), limits.maxRequests);
  t.equal(value("zpublish_max_connections", {}), 77, "the limit in effect, not the configured one");
  t.equal(value("zpublish_http_clients_dropped_total", {}), 3);
  t.equal(value("zpublish_pool_worker_restarts_total", { reason: "out_of_memory" }), 2);
  t.equal(value("zpublish_pool_wait_seconds_bucket", { le: "0.00025" }), 1);
  t.equal(value("zpublish_pool_wait_seconds_bucket", { le: "0.5" }), 2);
  t.equal(value("zpublish_pool_wait_seconds_count", {}), 3);
  t.equal(value("zpublish_chunk_stage_duration_seconds_count", { stage: "encode" }), 2);
  t.equal(value("zpublish_chunks_total", { origin: "hit" }), 5);
  t.equal(value("zpublish_chunk_reads_waiting", {}), 7);
  t.equal(value("zpublish_ready", {}), 1);
  t.ok((value("process_resident_memory_bytes", {}) ?? 0) > 2 ** 20);
  for (const name of [
    "process_cpu_seconds_total",
    "process_open_fds",
    "process_start_time_seconds",
    "nodejs_eventloop_lag_p99_seconds",
    "nodejs_gc_duration_seconds",
    "nodejs_heap_size_used_bytes",
    "zpublish_build_info",
    "zpublish_shed_requests_total",
    "zpublish_connections",
  ]) {
    t.ok(families.has(name), name);
  }
  t.notOk(
    [...families.keys()].some((name) => name.startsWith("zpublish_cache")),
    "no cache, no metrics of it",
  );
  t.notMatch(text, /particular|token|%ff/, "no label comes from a request");
  // promtool checks more about names and units than a test could.
  if (spawnSync("promtool", ["--version"]).error === undefined) {
    const checked = spawnSync("promtool", ["check", "metrics"], { input: text, encoding: "utf8" });
    t.equal(checked.status, 0, checked.stderr + checked.stdout);
  }
});

t.test("a pool that has not started has values: zeros", async (t) => {
  const from = { ...(await sources(t)), pool: () => undefined, chunks: () => undefined };
  const { value } = parseMetrics(await renderMetrics([{ families: await collectMetrics(from) }]));
  for (const name of [
    "zpublish_pool_queued_tasks",
    "zpublish_pool_running_tasks",
    "zpublish_pool_threads",
    "zpublish_pool_wait_seconds_count",
    "zpublish_pool_wait_seconds_sum",
    "zpublish_pool_failed_tasks_total",
    "zpublish_pool_broken",
    "zpublish_chunk_reads_waiting",
  ]) {
    t.equal(value(name, {}), 0, name);
  }
  t.equal(value("zpublish_pool_wait_seconds_bucket", { le: "+Inf" }), 0);
  t.equal(value("zpublish_pool_worker_restarts_total", { reason: "crashed" }), 0);
});

t.test("metrics of several processes are one text, each with its own label", async (t) => {
  const families = await collectMetrics(await sources(t));
  // As they arrive from another process.
  const others = structuredClone(families);
  const text = await renderMetrics([
    { process: "1", families },
    { process: "2", families: others },
  ]);
  const { value } = parseMetrics(text);
  for (const process of ["1", "2"]) {
    t.equal(value("zpublish_pool_queued_tasks", { process }), 3);
    t.equal(value("zpublish_pool_wait_seconds_bucket", { process, le: "+Inf" }), 3);
    t.ok((value("process_resident_memory_bytes", { process }) ?? 0) > 0);
  }
});

const MAX_QUEUED = 16_384;

t.test("pages are shed while the queue of chunks is full", async (t) => {
  const source = createMemorySource({
    groups: [{ path: "/", arrays: [{ name: "v", data: new Uint8Array(4), shape: [4] }] }],
  });
  const dataset = { id: "d", location: "memory", immutable: false, encoding: {}, variables: {}, source };
  const waiting = { queued: 0 };
  const { get } = await startServer(
    t,
    { datasets: [dataset] },
    {
      createPool(options) {
        const alone = createEncodePool(options);
        return {
          makeChunk: async () => ({ status: "absent" }),
          callModule: (call) => alone.callModule(call),
          stats: Object.create(alone.stats, { queued: { get: () => waiting.queued } }),
          close: () => alone.close(),
        };
      },
    },
  );
  await get("/datasets/d/zarr/v/0");
  const statusOf = async () => (await get("/datasets")).status;
  t.equal(await statusOf(), 200);
  waiting.queued = MAX_QUEUED;
  t.equal(await statusOf(), 503);
  waiting.queued = 0;
  t.equal(await statusOf(), 200);
});
