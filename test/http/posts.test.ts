import { request as httpRequest } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import t from "tap";
import { ZpublishError } from "../../src/errors.js";
import { createDocument } from "../../src/http/create-document.js";
import type { Route } from "../../src/http/router.js";
import { eventually } from "../support/servers/open-files.js";
import { jsonOf, openConnection, rawRequest } from "../support/servers/raw-request.js";
import { isNodeHttp, routeOf, serveRoutes } from "../support/servers/serve-routes.js";

const MAX_BYTES = 1_000;

/** Answers with the length and the beginning of the body. */
const echo: Route = {
  ...routeOf("/echo", async (request) => {
    const body = Buffer.from(await request.body());
    const again = await request.body();
    const text = JSON.stringify({
      method: request.method,
      byteLength: body.byteLength,
      begin: body.toString("utf8", 0, 20),
      isSame: body.equals(again),
      type: request.header("content-type"),
    });
    return { kind: "document", document: createDocument(text, "application/json"), status: 201 };
  }),
  methods: ["GET", "POST"],
  maxBodyBytes: MAX_BYTES,
};
const routes: readonly Route[] = [
  echo,
  { ...echo, path: "/post-only", methods: ["POST"] },
  { ...echo, path: "/wide", methods: ["POST"], maxBodyBytes: 64 * 2 ** 20 },
  routeOf("/page", () => ({ kind: "document", document: createDocument("{}", "application/json") })),
  {
    ...routeOf("/refuse", () => {
      throw new ZpublishError("not-found", "There is no such thing");
    }),
    methods: ["GET", "POST"],
  },
];

const head = (path: string, headers: Readonly<Record<string, string | number>>) =>
  `POST ${path} HTTP/1.1\r\nHost: test\r\n${Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join("")}\r\n`;

t.test("a body is received whole, however it is cut, and the connection stays open", async (t) => {
  const { port, server } = await serveRoutes(t, routes);
  const { socket, send, answer } = await openConnection(port);
  const parts = async (...texts: readonly string[]) => {
    for (const text of texts) {
      send(text);
      await delay(5);
    }
    return answer();
  };
  const body = "lat,lon\n".repeat(100);
  for (const sent of [
    [head("/echo", { "Content-Length": body.length, "Content-Type": "text/csv" }) + body],
    [
      head("/echo", { "Content-Length": body.length, "Content-Type": "text/csv" }),
      body.slice(0, 9),
      body.slice(9),
    ],
    [
      head("/echo", { "Transfer-Encoding": "chunked", "Content-Type": "text/csv" }),
      `14\r\n${body.slice(0, 20)}\r\n`,
      `${(780).toString(16)}\r\n${body.slice(20)}\r\n0\r\n\r\n`,
    ],
  ]) {
    const received = await parts(...sent);
    t.equal(received.status, 201);
    t.strictSame(jsonOf(received), {
      method: "POST",
      byteLength: 800,
      begin: "lat,lon\nlat,lon\nlat,",
      isSame: true,
      type: "text/csv",
    });
  }
  t.match(jsonOf(await parts(head("/echo", { "Content-Length": 0 }))), { byteLength: 0 });
  t.match(jsonOf(await parts("GET /echo HTTP/1.1\r\nHost: test\r\n\r\n")), { method: "GET", byteLength: 0 });
  socket.destroy();
  t.ok(await eventually(() => server.stats.requestsInFlight === 0));
  t.equal(server.stats.bodyBytesInFlight, 0);
  const counts = [...server.metrics.counts.all()].find(({ route }) => route === "/echo");
  t.equal(counts?.requests.POST.get("201 Created"), 4);
});

t.test("a body that is too long is refused, before it is read if its length is told", async (t) => {
  const { port, server } = await serveRoutes(t, routes);
  const told = await openConnection(port);
  told.send(head("/echo", { "Content-Length": 1001, Expect: "100-continue" }));
  // uWebSockets.js asks for a body before anyone can refuse it.
  if (!isNodeHttp) t.equal((await told.answer(true)).status, 100);
  const refused = await told.answer();
  t.match(refused, { status: 413, headers: { "access-control-allow-origin": "*" } });
  t.strictSame(jsonOf(refused), { detail: "Body: expected at most 1000 bytes, received 1001" });
  const chunked = await openConnection(port);
  chunked.send(head("/echo", { "Transfer-Encoding": "chunked" }));
  for (let i = 0; i < 6; i += 1) chunked.send(`c8\r\n${"x".repeat(200)}\r\n`);
  const late = await chunked.answer();
  t.equal(late.status, 413);
  t.match(jsonOf(late), { detail: /^Body: expected at most 1000 bytes, received 1\d\d\d$/ });
  t.ok(await eventually(chunked.closed), "nothing more is read");
  const exact = await openConnection(port);
  exact.send(head("/echo", { "Content-Length": 1000 }) + "x".repeat(1000));
  t.equal((await exact.answer()).status, 201);
  for (const { socket } of [told, chunked, exact]) socket.destroy();
  t.ok(await eventually(() => server.stats.requestsInFlight === 0));
  t.equal(server.stats.bodyBytesInFlight, 0);
});

t.test(
  "bodies of all clients together are bounded, and a client that is refused takes no memory",
  async (t) => {
    const limits = { maxBodyBytesInFlight: 2 ** 20 };
    const { port, server } = await serveRoutes(t, routes, { limits });
    const clients = await Promise.all([1, 2, 3].map(() => openConnection(port)));
    const [first, second, late] = clients as [(typeof clients)[0], (typeof clients)[0], (typeof clients)[0]];
    const part = "x".repeat(0.6 * 2 ** 20);
    first.send(head("/wide", { "Content-Length": 2 * part.length }) + part);
    t.ok(await eventually(() => server.stats.bodyBytesInFlight === part.length));
    second.send(head("/wide", { "Content-Length": 2 * part.length }) + part);
    t.match(await second.answer(), { status: 503, headers: { "retry-after": /^\d+$/ } });
    t.ok(await eventually(() => server.stats.bodyBytesInFlight === part.length), "it is freed");
    first.send(part);
    t.equal((await first.answer()).status, 503, "its rest is too much, too");
    t.ok(await eventually(() => server.stats.bodyBytesInFlight === 0));
    late.send(head("/wide", { "Content-Length": part.length }) + part);
    t.equal((await late.answer()).status, 201);
    for (const { socket } of clients) socket.destroy();
    t.ok(await eventually(() => server.stats.requestsInFlight === 0));
  },
);

t.test("a client that waits to be asked for its body is asked", async (t) => {
  const { port } = await serveRoutes(t, routes);
  const { socket, send, received, answer } = await openConnection(port);
  for (let i = 1; i <= 2; i += 1) {
    send(head("/echo", { "Content-Length": 5, Expect: "100-continue" }));
    const asked = await answer(true);
    t.match(asked, { status: 100, headers: {} });
    t.strictSame(asked.headers, {});
    t.equal(received(), "", "nothing but that is sent before the body");
    send("hello");
    const whole = await answer();
    t.match(whole, {
      status: 201,
      headers: { "content-type": "application/json", "access-control-allow-origin": "*" },
    });
    t.match(jsonOf(whole), { begin: "hello" });
  }
  socket.destroy();
  // As Node.js sends it, which reads answers strictly.
  const asked = httpRequest({
    port,
    path: "/post-only",
    method: "POST",
    headers: { Expect: "100-continue" },
  });
  asked.on("continue", () => asked.end("from Node.js"));
  asked.flushHeaders();
  const status = await new Promise((resolve) =>
    asked.on("response", ({ statusCode }) => resolve(statusCode)),
  );
  t.equal(status, 201);
});

t.test("other methods are refused with those that a path answers, and preflights name them", async (t) => {
  const { port } = await serveRoutes(t, routes);
  for (const [path, allow, post, get] of [
    ["/echo", "GET, HEAD, POST, OPTIONS", 201, 201],
    ["/post-only", "POST, OPTIONS", 201, 405],
    ["/page", "GET, HEAD, OPTIONS", 405, 200],
    ["/nothing", "GET, HEAD, OPTIONS", 405, 404],
  ] as const) {
    for (const [method, status] of [
      ["POST", post],
      ["GET", get],
      ["HEAD", get],
      ["PUT", 405],
    ] as const) {
      const answer = await rawRequest(port, path, { method, headers: { "Content-Length": "0" } });
      t.equal(answer.status, status, `${method} ${path}`);
      t.equal(answer.headers.allow, status === 405 ? allow : undefined);
    }
    const preflight = await rawRequest(port, path, {
      method: "OPTIONS",
      headers: { Origin: "https://a.example", "Access-Control-Request-Method": "POST" },
    });
    t.match(preflight, { status: 204, headers: { allow, "access-control-allow-methods": allow } });
    t.equal(
      /Content-Type/.test(preflight.headers["access-control-allow-headers"] ?? ""),
      allow.includes("POST"),
    );
  }
  const refused = await openConnection(port);
  refused.send(`${head("/refuse", { "Content-Length": 5 })}helloGET /page HTTP/1.1\r\nHost: test\r\n\r\n`);
  t.equal((await refused.answer()).status, 404);
  if (!isNodeHttp) t.equal((await refused.answer()).status, 200, "its body is no request");
  refused.socket.destroy();
});

t.test("a client that goes before its body has come costs nothing", async (t) => {
  const { port, server, lines } = await serveRoutes(t, routes);
  const { socket, send } = await openConnection(port);
  send(head("/wide", { "Content-Length": 30 * 2 ** 20 }) + "x".repeat(2 ** 20));
  t.ok(await eventually(() => server.stats.bodyBytesInFlight > 2 ** 19), "what came is counted");
  socket.destroy();
  t.ok(await eventually(() => server.stats.requestsInFlight === 0));
  t.equal(server.stats.bodyBytesInFlight, 0);
  t.notOk(lines.some(({ level }) => level >= 40));
});

t.test("errors have the shape of their route's protocol, and a status of its own", async (t) => {
  const failing =
    (error: unknown): Route["handler"] =>
    () => {
      throw error;
    };
  const dap: Route["errors"] = ({ status, detail, query }) => ({
    ...(status.startsWith("422") && { status: 400 }),
    contentType: "text/plain",
    headers: [["Content-Description", "dods-error"]],
    body: `Error { code = ${status.slice(0, 3)}; message = "${detail}"; query = "${query}"; };\n`,
  });
  const query = new ZpublishError("invalid-query", "Expected a number, received 'x'");
  const { port, lines } = await serveRoutes(t, [
    { ...routeOf("/missing", failing(new ZpublishError("not-found", "no such variable"))), errors: dap },
    { ...routeOf("/query", failing(query)), errors: dap },
    {
      ...routeOf("/late", async () => {
        await delay(5);
        throw new Error("a secret of this machine");
      }),
      errors: dap,
    },
    {
      ...routeOf("/broken", failing(query)),
      errors: () => ({ ...dap(undefined as never), contentType: "a\nb" }),
    },
  ]);
  for (const [path, status, body] of [
    ["/missing", 404, 'Error { code = 404; message = "no such variable"; query = ""; };\n'],
    [
      "/query?a=x",
      400,
      `Error { code = 422; message = "Expected a number, received 'x'"; query = "a=x"; };\n`,
    ],
    ["/late?b", 500, 'Error { code = 500; message = "Internal Server Error"; query = "b"; };\n'],
  ] as const) {
    const answer = await rawRequest(port, path, { headers: { Accept: "text/html" } });
    t.equal(answer.status, status);
    t.match(answer.headers, {
      "content-type": "text/plain",
      "content-description": "dods-error",
      "cache-control": "no-cache",
    });
    t.equal(answer.body.toString(), body);
  }
  t.match(await rawRequest(port, "/broken"), {
    status: 422,
    headers: { "content-type": "application/json" },
  });
  t.ok(lines.some(({ msg }) => msg.startsWith("the error could not be written as its route does")));
});
