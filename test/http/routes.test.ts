import { setTimeout as delay } from "node:timers/promises";
import { gunzipSync } from "node:zlib";
import t from "tap";
import { createDocument } from "../../src/http/create-document.js";
import type { DocumentReply } from "../../src/http/reply.js";
import { createHttpServer } from "../../src/http/server.js";
import { createHealthEndpoints } from "../../src/server/readiness.js";
import { jsonOf, openConnection, rawRequest, requestText } from "../support/servers/raw-request.js";
import {
  bodyReplyOf,
  createTestLog,
  isNodeHttp,
  routeOf,
  serveRoutes,
} from "../support/servers/serve-routes.js";

const document = createDocument('{"a":1}', "application/json");
const chunk = new Uint8Array(5000).fill(7);
const routes = [
  routeOf("/doc", () => ({ kind: "document", document })),
  routeOf("/chunk", () => bodyReplyOf(chunk, '"c"'), "chunk"),
  routeOf("/dir", () => ({ kind: "redirect", to: "with-slash" })),
];

t.test("GET answers with what every answer has", async (t) => {
  const { port } = await serveRoutes(t, routes);
  for (const path of ["/doc", "/chunk", "/dir", "/nope", "/datasets/%zz"]) {
    const { headers } = await rawRequest(port, path);
    t.match(
      headers,
      {
        "access-control-allow-origin": "*",
        "access-control-expose-headers":
          "Content-Range, Content-Length, Content-Encoding, ETag, Accept-Ranges, Link, Server-Timing",
        "cross-origin-resource-policy": "cross-origin",
        "x-content-type-options": "nosniff",
        "cache-control": /./,
      },
      path,
    );
    const date = Date.parse(headers.date ?? "");
    t.ok(Math.abs(date - Date.now()) < 5000, `a valid Date: ${headers.date}`);
    t.equal(new Date(date).toUTCString(), headers.date);
    t.notOk("uwebsockets" in headers);
  }
});

t.test("HEAD answers with the headers of GET, the exact Content-Length once and no body", async (t) => {
  const { port } = await serveRoutes(t, routes);
  const connection = await openConnection(port);
  for (const path of ["/doc", "/chunk", "/dir", "/nope", "/chunk?again"]) {
    const get = await rawRequest(port, path);
    connection.send(requestText(path, { method: "HEAD" }));
    const head = await connection.answer(true);
    t.equal(head.status, get.status, path);
    t.strictSame({ ...head.headers, date: "" }, { ...get.headers, date: "" }, path);
    t.match(head.headers["content-length"], /^\d+$/);
    connection.send(requestText("/doc"));
    t.equal((await connection.answer()).body.toString(), '{"a":1}', "the connection goes on");
  }
  connection.socket.destroy();
});

t.test("OPTIONS answers preflights on any path with 204", async (t) => {
  const { port } = await serveRoutes(t, routes);
  for (const path of ["/doc", "/nope", "/%zz"]) {
    const answer = await rawRequest(port, path, {
      method: "OPTIONS",
      headers: { Origin: "https://a.example", "Access-Control-Request-Method": "GET" },
    });
    t.equal(answer.status, 204);
    t.match(answer.headers, {
      "access-control-allow-origin": "*",
      "access-control-allow-methods": "GET, HEAD, OPTIONS",
      "access-control-allow-headers": "Range, If-None-Match, If-Match, Authorization",
      "access-control-max-age": "86400",
      allow: "GET, HEAD, OPTIONS",
    });
    t.notOk("content-length" in answer.headers, "RFC 9110 §8.6 forbids it");
  }
});

t.test("other methods are answered 405, with or without a body", async (t) => {
  const { port } = await serveRoutes(t, routes);
  const unknownToNode = isNodeHttp ? [] : ["CONNECT", "BREW", "get"];
  for (const method of ["POST", "PUT", "DELETE", "PATCH", "TRACE", "PROPFIND", ...unknownToNode]) {
    const answer = await rawRequest(port, "/doc", { method });
    t.equal(answer.status, 405, method);
    t.equal(answer.headers.allow, "GET, HEAD, OPTIONS");
    t.strictSame(jsonOf(answer), { detail: "Method Not Allowed" });
  }
});

t.test("a request's body does not get into the way of what follows it", async (t) => {
  const { port } = await serveRoutes(t, routes);
  for (const [headers, body] of [
    [{ "Content-Length": "5" }, "GET /"],
    [{ "Transfer-Encoding": "chunked" }, "5\r\nGET /\r\n0\r\n\r\n"],
  ] as const) {
    const connection = await openConnection(port);
    connection.send(`${requestText("/doc", { method: "GET", headers })}${body}${requestText("/doc")}`);
    t.equal((await connection.answer()).status, 200);
    t.equal((await connection.answer()).status, 200);
    connection.send(`${requestText("/doc", { method: "POST", headers: { "Content-Length": "5" } })}GET /`);
    t.equal((await connection.answer()).status, 405);
    connection.send(requestText("/doc"));
    t.equal((await connection.answer()).status, 200);
    connection.socket.destroy();
  }
});

t.test("a long body that nobody wants has its connection closed", async (t) => {
  const { port } = await serveRoutes(t, routes);
  const connection = await openConnection(port);
  connection.send(
    requestText("/doc", { method: "POST", headers: { "Content-Length": String(2 ** 24 + 1) } }),
  );
  const answer = await connection.answer();
  t.equal(answer.status, 405);
  t.equal(answer.headers.connection, "close");
  await new Promise((resolve) => connection.socket.once("close", resolve));
  t.ok(connection.closed());
});

t.test("a root path is part of every path", async (t) => {
  const { port, url } = await serveRoutes(t, routes, { rootPath: "/pre/fix" });
  t.equal(url, `http://127.0.0.1:${port}/pre/fix`);
  t.equal((await rawRequest(port, "/pre/fix/doc")).status, 200);
  t.equal((await rawRequest(port, "/pre/fix/dir")).headers.location, "/pre/fix/dir/");
  t.equal((await rawRequest(port, "/pre/fix?x")).headers.location, "/pre/fix/?x");
  for (const path of ["/doc", "/pre/doc", "/pre/fixdoc", "/", "/x/pre/fix/doc"]) {
    t.equal((await rawRequest(port, path)).status, 404, path);
  }
  for (const rootPath of ["pre", "/pre/", "/", "/a b"]) {
    t.rejects(serveRoutes(t, routes, { rootPath }), { code: "invalid-config" }, rootPath);
  }
});

t.test("answers depend on the origin where one is configured, and say so", async (t) => {
  const { port } = await serveRoutes(t, routes, { corsOrigin: "https://a.example,https://b.example" });
  const allowed = await rawRequest(port, "/doc", { headers: { Origin: "https://b.example" } });
  t.equal(allowed.headers["access-control-allow-origin"], "https://b.example");
  t.equal(allowed.headers.vary, "Accept-Encoding, Origin");
  const other = await rawRequest(port, "/nope", { headers: { Origin: "https://c.example" } });
  t.notOk("access-control-allow-origin" in other.headers);
  t.equal(other.headers.vary, "Origin");
});

function page(text: string): DocumentReply {
  return {
    kind: "document",
    document: createDocument(`"${text}"`, "application/json"),
  };
}

t.test("a server may listen before it has an app, and says that it starts", async (t) => {
  const server = createHttpServer({ log: createTestLog().log });
  t.teardown(() => server.close(0));
  const { port } = await server.listen("127.0.0.1", 0);
  const early = await rawRequest(port, "/page");
  t.equal(early.status, 503);
  t.match(early.headers, { "retry-after": "1", "access-control-allow-origin": "*" });
  t.strictSame(jsonOf(early), { detail: "The server is starting; try again later" });
  server.use({ routes: [routeOf("/page", () => page("here"))] });
  t.equal(jsonOf(await rawRequest(port, "/page")), "here");
});

t.test("another app takes over at once; requests in flight keep theirs", async (t) => {
  const server = createHttpServer({ log: createTestLog().log });
  t.teardown(() => server.close(0));
  let go = () => {};
  const waits = new Promise<void>((resolve) => {
    go = resolve;
  });
  const late = async () => {
    await waits;
    return page("old");
  };
  server.use({
    routes: [routeOf("/page", () => page("old")), routeOf("/late", late)],
    cacheControl: "max-age=1",
    corsOrigin: "https://old.example",
  });
  const { port } = await server.listen("127.0.0.1", 0);
  // Often enough for its route to be remembered.
  for (let i = 0; i < 3; i += 1) t.equal(jsonOf(await rawRequest(port, "/page")), "old");
  const began = await openConnection(port);
  began.send(requestText("/late"));
  while (server.stats.requestsInFlight === 0) await delay(5);

  server.use({ routes: [routeOf("/page", () => page("new"))], rootPath: "/data", cacheControl: "max-age=2" });
  t.equal((await rawRequest(port, "/page")).status, 404);
  const answer = await rawRequest(port, "/data/page");
  t.equal(jsonOf(answer), "new");
  t.match(answer.headers, { "cache-control": "max-age=2", "access-control-allow-origin": "*" });
  go();
  const old = await began.answer();
  t.equal(jsonOf(old), "old");
  t.match(old.headers, { "cache-control": "max-age=1", vary: /Origin/ });
  began.send(requestText("/data/page"));
  t.equal(
    jsonOf(await began.answer()),
    "new",
    "the next on the same connection is answered by the present one",
  );
});

t.test("an invalid app changes nothing", async (t) => {
  const server = createHttpServer({ log: createTestLog().log });
  t.teardown(() => server.close(0));
  server.use({ routes: [routeOf("/page", () => page("old"))] });
  const { port } = await server.listen("127.0.0.1", 0);
  t.throws(() => server.use({ routes: [], rootPath: "no" }), {
    code: "invalid-config",
    message: /received 'no'/,
  });
  const route = { ...routeOf("/page", () => page("new")), priority: undefined };
  t.throws(() => server.use({ routes: [route as never] }), {
    code: "invalid-config",
    message: /Route '\/page': expected priority 'page' or 'chunk', received undefined/,
  });
  t.equal(jsonOf(await rawRequest(port, "/page")), "old");
});

const report = { ready: true, checks: { metadata: "ok", pool: "ok" } };
const readiness = { check: async () => report };
const text = "# HELP up Whether it is up.\n# TYPE up gauge\nup 1\n".repeat(100);

function metricsOf(render: () => Promise<string>) {
  return { contentType: "text/plain; version=0.0.4; charset=utf-8", render };
}

t.test("who runs a server is told that it lives, whether it is ready, and how it fares", async (t) => {
  const endpoints = createHealthEndpoints({ readiness, metrics: metricsOf(async () => text) });
  const { port } = await serveRoutes(t, [], { endpoints, rootPath: "/root" });
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
  const { port } = await serveRoutes(t, [], { endpoints });
  const answer = await rawRequest(port, "/readyz");
  t.match(answer, { status: 503, headers: { "retry-after": "1", "cache-control": "no-store" } });
  t.strictSame(jsonOf(answer), notReady);
  t.equal((await rawRequest(port, "/healthz")).status, 200);
  t.equal((await rawRequest(port, "/metrics")).status, 404, "not there where nobody wants it");
});

t.test("none is in the way of a route", async (t) => {
  const endpoints = createHealthEndpoints({ readiness });
  const own = routeOf("/healthz", () => bodyReplyOf(Buffer.from("own"), '"o"'));
  const any = routeOf("/{name}", () => bodyReplyOf(Buffer.from("any"), '"a"'));
  const { port } = await serveRoutes(t, [own, any], { endpoints });
  t.equal((await rawRequest(port, "/healthz")).body.toString(), "own");
  t.strictSame(
    jsonOf(await rawRequest(port, "/readyz")),
    report,
    "but a route for any name is not one of that name",
  );
  const rooted = await serveRoutes(t, [own], { endpoints, rootPath: "/root" });
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
  const { port } = await serveRoutes(t, [], { endpoints });
  const failed = await rawRequest(port, "/metrics");
  t.equal(failed.status, 500);
  t.notMatch(failed.body.toString(), "/proc");
  isBroken = false;
  t.equal((await rawRequest(port, "/metrics")).status, 200);
});
