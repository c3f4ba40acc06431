import t from "tap";
import { createDocument } from "../../src/http/create-document.js";
import { jsonOf, openConnection, rawRequest, requestText } from "../support/servers/raw-request.js";
import { bodyReplyOf, isNodeHttp, routeOf, startTestServer } from "../support/servers/serve-routes.js";

const document = createDocument('{"a":1}', "application/json");
const chunk = new Uint8Array(5000).fill(7);
const routes = [
  routeOf("/doc", () => ({ kind: "document", document })),
  routeOf("/chunk", () => bodyReplyOf(chunk, '"c"'), "chunk"),
  routeOf("/dir", () => ({ kind: "redirect", to: "with-slash" })),
];

t.test("GET answers with what every answer has", async (t) => {
  const { port } = await startTestServer(t, routes);
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
  const { port } = await startTestServer(t, routes);
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
  const { port } = await startTestServer(t, routes);
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
  const { port } = await startTestServer(t, routes);
  const unknownToNode = isNodeHttp ? [] : ["CONNECT", "BREW", "get"];
  for (const method of ["POST", "PUT", "DELETE", "PATCH", "TRACE", "PROPFIND", ...unknownToNode]) {
    const answer = await rawRequest(port, "/doc", { method });
    t.equal(answer.status, 405, method);
    t.equal(answer.headers.allow, "GET, HEAD, OPTIONS");
    t.strictSame(jsonOf(answer), { detail: "Method Not Allowed" });
  }
});

t.test("a request's body does not get into the way of what follows it", async (t) => {
  const { port } = await startTestServer(t, routes);
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
  const { port } = await startTestServer(t, routes, { maxRequestBodyBytes: 100 });
  const connection = await openConnection(port);
  connection.send(requestText("/doc", { method: "POST", headers: { "Content-Length": "101" } }));
  const answer = await connection.answer();
  t.equal(answer.status, 405);
  t.equal(answer.headers.connection, "close");
  await new Promise((resolve) => connection.socket.once("close", resolve));
  t.ok(connection.closed());
});

t.test("redirects to the path as it came with a slash behind it, query kept", async (t) => {
  const { port } = await startTestServer(t, [
    ...routes,
    routeOf("/d/{x}", () => ({ kind: "redirect", to: "with-slash" })),
  ]);
  const answer = await rawRequest(port, "/d/a%20%C3%A9?b=%20c");
  t.equal(answer.status, 301);
  t.equal(answer.headers.location, "/d/a%20%C3%A9/?b=%20c");
  t.equal(answer.body.byteLength, 0);
});

t.test("a root path is part of every path", async (t) => {
  const { port, url } = await startTestServer(t, routes, { rootPath: "/pre/fix" });
  t.equal(url, `http://127.0.0.1:${port}/pre/fix`);
  t.equal((await rawRequest(port, "/pre/fix/doc")).status, 200);
  t.equal((await rawRequest(port, "/pre/fix/dir")).headers.location, "/pre/fix/dir/");
  t.equal((await rawRequest(port, "/pre/fix?x")).headers.location, "/pre/fix/?x");
  for (const path of ["/doc", "/pre/doc", "/pre/fixdoc", "/", "/x/pre/fix/doc"]) {
    t.equal((await rawRequest(port, path)).status, 404, path);
  }
  for (const rootPath of ["pre", "/pre/", "/", "/a b"]) {
    t.rejects(startTestServer(t, routes, { rootPath }), { code: "invalid-config" }, rootPath);
  }
});

t.test("answers depend on the origin where one is configured, and say so", async (t) => {
  const { port } = await startTestServer(t, routes, { corsOrigin: "https://a.example,https://b.example" });
  const allowed = await rawRequest(port, "/doc", { headers: { Origin: "https://b.example" } });
  t.equal(allowed.headers["access-control-allow-origin"], "https://b.example");
  t.equal(allowed.headers.vary, "Accept-Encoding, Origin");
  const other = await rawRequest(port, "/nope", { headers: { Origin: "https://c.example" } });
  t.notOk("access-control-allow-origin" in other.headers);
  t.equal(other.headers.vary, "Origin");
});
