import { setTimeout as delay } from "node:timers/promises";
import t from "tap";
import { createDocument } from "../../src/http/create-document.js";
import { jsonOf, openConnection, rawRequest, requestText } from "../support/servers/raw-request.js";
import { isNodeHttp, routeOf, startTestServer } from "../support/servers/serve-routes.js";

const document = createDocument("{}", "application/json");
const routes = [
  routeOf("/doc", () => ({ kind: "document", document })),
  routeOf("/dir", () => ({ kind: "redirect", to: "with-slash" })),
  routeOf("/late", async () => {
    await delay(20);
    return { kind: "document", document };
  }),
  routeOf("/echo/{name}", ({ params, rawPath, query, method }) => ({
    kind: "document",
    document: createDocument(JSON.stringify({ params, rawPath, query, method }), "application/json"),
  })),
];

t.test("handlers see the request", async (t) => {
  const { port } = await startTestServer(t, routes);
  t.strictSame(jsonOf(await rawRequest(port, "/echo/a%20b?x=%20&y")), {
    params: { name: "a b" },
    rawPath: "/echo/a%20b",
    query: "x=%20&y",
    method: "GET",
  });
  t.match(jsonOf(await rawRequest(port, "/echo/a")), { query: "" });
  // Node.js answers 400 to what is not percent-encoded.
  if (isNodeHttp) return;
  t.strictSame(jsonOf(await rawRequest(port, "/echo/caf\xc3\xa9")), {
    params: { name: "café" },
    rawPath: "/echo/café",
    query: "",
    method: "GET",
  });
});

t.test("a parameter that is no valid string is 422 with a body in strict JSON", async (t) => {
  const { port } = await startTestServer(t, routes);
  for (const [path, type, input] of [
    ["/echo/%zz", "percent_encoding", "%zz"],
    ["/echo/%ff", "string_unicode", "%ff"],
    ...(isNodeHttp ? [] : [["/echo/\xff", "string_unicode", "\ufffd"] as const]),
    ["/echo/a%00", "string_control_character", "a%00"],
    [`/echo/${"%C3%A9".repeat(513)}`, "string_too_long", `${"%C3%A9".repeat(17).slice(0, 100)}…`],
  ] as const) {
    const answer = await rawRequest(port, path);
    t.equal(answer.status, 422, path);
    t.match(jsonOf(answer), { detail: [{ type, loc: ["path", "name"], msg: /^Expected/, input }] });
  }
});

t.test("a connection serves one request after the other, and closes when asked to", async (t) => {
  const { port } = await startTestServer(t, routes);
  const connection = await openConnection(port);
  for (const path of ["/doc", "/late", "/nope", "/doc"]) {
    connection.send(requestText(path));
    t.equal((await connection.answer()).status, path === "/nope" ? 404 : 200);
  }
  for (const [path, request, status] of [
    ["/doc", { headers: { "If-None-Match": "*" } }, 304],
    ["/doc", { headers: { "If-Match": '"x"' } }, 412],
    ["/doc", { headers: { Range: "bytes=9-" } }, 416],
    ["/doc", { headers: { Range: "bytes=0-0" } }, 206],
    ["/doc", { method: "OPTIONS" }, 204],
    ["/doc", { method: "DELETE" }, 405],
    ["/echo/%zz", {}, 422],
    ["/dir", {}, 301],
    ["/doc", {}, 200],
  ] as const) {
    connection.send(requestText(path, request));
    t.equal((await connection.answer()).status, status, `${status} leaves the connection open`);
  }
  connection.send(requestText("/late", { headers: { Connection: "close" } }));
  t.equal((await connection.answer()).status, 200);
  await delay(50);
  t.ok(connection.closed());
});

t.test("pipelined requests are answered in order as long as answers need no waiting", async (t) => {
  const { port } = await startTestServer(t, routes);
  const connection = await openConnection(port);
  connection.send(
    requestText("/echo/1") + requestText("/echo/2") + requestText("/nope") + requestText("/echo/3"),
  );
  t.match(jsonOf(await connection.answer()), { params: { name: "1" } });
  t.match(jsonOf(await connection.answer()), { params: { name: "2" } });
  t.equal((await connection.answer()).status, 404);
  t.match(jsonOf(await connection.answer()), { params: { name: "3" } });
  // uWebSockets.js closes a connection that pipelines behind an answer which is not ready; no client in use does.
  connection.send(requestText("/late") + requestText("/doc"));
  await t.rejects(connection.answer(), /connection closed/);
  t.equal((await rawRequest(port, "/doc")).status, 200, "the server goes on");
});

t.test("headers may come in pieces", async (t) => {
  const { port } = await startTestServer(t, routes);
  const connection = await openConnection(port);
  // Not the request line: the uWebSockets.js of Node.js 20 answers 505 to a piece of one that is longer than a method.
  const text = requestText("/doc", { headers: { "X-Long": "x".repeat(100) } });
  const line = text.indexOf("\r\n") + 2;
  connection.send(text.slice(0, line));
  for (let at = line; at < text.length; at += 7) {
    connection.send(text.slice(at, at + 7));
    await delay(1);
  }
  t.equal((await connection.answer()).status, 200);
  connection.socket.destroy();
});

t.test("a path of allowed length and ordinary headers fit, in pieces too", async (t) => {
  const { port } = await startTestServer(t, routes);
  const text = requestText(`/echo/${"%C3%A9".repeat(512)}?${"q".repeat(1000)}`, {
    headers: { Cookie: "c".repeat(8000), "User-Agent": "u".repeat(200) },
  });
  const connection = await openConnection(port);
  connection.send(text.slice(0, 6000));
  await delay(20);
  connection.send(text.slice(6000));
  t.equal((await connection.answer()).status, 200);
  connection.socket.destroy();
});

t.test("heads without an end are refused", async (t) => {
  const { port } = await startTestServer(t, routes);
  const connection = await openConnection(port);
  connection.send(`GET /doc HTTP/1.1\r\nHost: a\r\nX: ${"x".repeat(9000)}`);
  await delay(20);
  connection.send("x".repeat(9000));
  t.equal((await connection.answer().catch(() => ({ status: 431 }))).status, 431);
  connection.socket.destroy();
});

// So that nginx needs `proxy_http_version 1.1`, and HAProxy a health check that says HTTP/1.1 and a Host.
t.test("what is no HTTP/1.1 is refused by uWebSockets.js or Node.js itself", async (t) => {
  const { port } = await startTestServer(t, routes);
  for (const text of [
    "GET /doc HTTP/1.0\r\nHost: a\r\n\r\n",
    "GET /do c HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /do\x00c HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET doc HTTP/1.1\r\nHost: a\r\n\r\n",
    "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
    "nonsense\r\n\r\n",
    "POST /doc HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
    "POST /doc HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
  ]) {
    const connection = await openConnection(port);
    connection.send(text);
    await delay(20);
    t.ok(connection.closed(), JSON.stringify(text));
  }
  t.equal((await rawRequest(port, "/doc")).status, 200);
});

t.test("pages are shed first, then everything, with a time to try again", async (t) => {
  const never = () => new Promise<never>(() => {});
  const { port } = await startTestServer(t, [routeOf("/page", never), routeOf("/chunk", never, "chunk")], {
    limits: { maxPagesInFlight: 1, maxRequestsInFlight: 2 },
  });
  for (const path of ["/chunk", "/chunk"]) {
    const { send } = await openConnection(port);
    send(requestText(path));
    await delay(20);
    const shed = await rawRequest(port, "/page");
    t.equal(shed.status, 503);
    t.match(shed.headers["retry-after"], /^\d+$/);
    t.match(jsonOf(shed), { detail: /Too many requests/ });
  }
  t.equal((await rawRequest(port, "/chunk")).status, 503);
});
