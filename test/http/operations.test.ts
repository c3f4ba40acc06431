import { gunzipSync } from "node:zlib";
import t from "tap";
import { createHttpServer } from "../../src/http/server.js";
import { createHealthEndpoints } from "../../src/server/readiness.js";
import { jsonOf, rawRequest } from "../support/servers/raw-request.js";
import { bodyReplyOf, createTestLog, routeOf, startTestServer } from "../support/servers/serve-routes.js";

const report = { ready: true, checks: { metadata: "ok", pool: "ok" } };
const readiness = { check: async () => report };
const text = "# HELP up Whether it is up.\n# TYPE up gauge\nup 1\n".repeat(100);

function metricsOf(render: () => Promise<string>) {
  return { contentType: "text/plain; version=0.0.4; charset=utf-8", render };
}

t.test("who runs a server is told that it lives, whether it is ready, and how it fares", async (t) => {
  const endpoints = createHealthEndpoints({ readiness, metrics: metricsOf(async () => text) });
  const { port } = await startTestServer(t, [], { endpoints, rootPath: "/root" });
  const alive = await rawRequest(port, "/healthz");
  t.match(alive, {
    status: 200,
    headers: { "cache-control": "no-store", "content-type": "application/json" },
  });
  t.strictSame(jsonOf(alive), { status: "ok" });
  const ready = await rawRequest(port, "/readyz");
  t.equal(ready.status, 200);
  t.strictSame(jsonOf(ready), report);
  const metrics = await rawRequest(port, "/metrics");
  t.match(metrics, { status: 200, headers: { "content-type": /^text\/plain; version=0\.0\.4/ } });
  t.equal(metrics.body.toString(), text);
  const compressed = await rawRequest(port, "/metrics", { headers: { "Accept-Encoding": "gzip" } });
  t.equal(compressed.headers["content-encoding"], "gzip");
  t.equal(gunzipSync(compressed.body).toString(), text);
  for (const coding of ["br", "br, gzip;q=0", "identity"]) {
    const plain = await rawRequest(port, "/metrics", { headers: { "Accept-Encoding": coding } });
    t.same([plain.headers["content-encoding"], plain.body.toString()], [undefined, text], coding);
  }
  for (const path of ["/healthz", "/readyz", "/metrics"]) {
    const [get, head] = [await rawRequest(port, path), await rawRequest(port, path, { method: "HEAD" })];
    t.match(head, { status: 200, headers: { "content-length": String(get.body.byteLength) } });
    t.equal((await rawRequest(port, path, { method: "POST" })).status, 405);
    t.equal((await rawRequest(port, `${path}?a=1`)).status, 200);
  }
  t.equal((await rawRequest(port, "/root/healthz")).status, 404);
  t.equal((await rawRequest(port, "/healthz/")).status, 404);
});

t.test("a server that is not ready says why, and when to ask again", async (t) => {
  const notReady = { ready: false, reason: "draining", checks: {} };
  const endpoints = createHealthEndpoints({ readiness: { check: async () => notReady } });
  const { port } = await startTestServer(t, [], { endpoints });
  const answer = await rawRequest(port, "/readyz");
  t.match(answer, { status: 503, headers: { "retry-after": "1", "cache-control": "no-store" } });
  t.strictSame(jsonOf(answer), notReady);
  t.equal((await rawRequest(port, "/healthz")).status, 200);
  t.equal((await rawRequest(port, "/metrics")).status, 404, "not there where nobody wants it");
});

t.test("they are answered before there is a site", async (t) => {
  const server = createHttpServer({
    log: createTestLog().log,
    endpoints: createHealthEndpoints({ readiness: { check: async () => ({ ...report, ready: false }) } }),
  });
  t.teardown(() => server.close(0));
  const { port } = await server.listen("127.0.0.1", 0);
  t.equal((await rawRequest(port, "/healthz")).status, 200);
  t.equal((await rawRequest(port, "/readyz")).status, 503);
  t.match(await rawRequest(port, "/datasets"), { status: 503, headers: { "retry-after": "1" } });
});

t.test("none is in the way of a route", async (t) => {
  const endpoints = createHealthEndpoints({ readiness });
  const own = routeOf("/healthz", () => bodyReplyOf(Buffer.from("own"), '"o"'));
  const any = routeOf("/{name}", () => bodyReplyOf(Buffer.from("any"), '"a"'));
  const { port } = await startTestServer(t, [own, any], { endpoints });
  t.equal((await rawRequest(port, "/healthz")).body.toString(), "own");
  t.strictSame(
    jsonOf(await rawRequest(port, "/readyz")),
    report,
    "but a route for any name is not one of that name",
  );
  const rooted = await startTestServer(t, [own], { endpoints, rootPath: "/root" });
  t.equal((await rawRequest(rooted.port, "/root/healthz")).body.toString(), "own");
  t.strictSame(jsonOf(await rawRequest(rooted.port, "/healthz")), { status: "ok" });
});

t.test("metrics that cannot be made are an error like any other", async (t) => {
  let isBroken = true;
  const endpoints = createHealthEndpoints({
    readiness,
    metrics: metricsOf(async () => {
      if (isBroken) throw new Error("cannot read /proc/self/status");
      return text;
    }),
  });
  const { port } = await startTestServer(t, [], { endpoints });
  const failed = await rawRequest(port, "/metrics");
  t.equal(failed.status, 500);
  t.notMatch(failed.body.toString(), "/proc");
  isBroken = false;
  t.equal((await rawRequest(port, "/metrics")).status, 200);
});
