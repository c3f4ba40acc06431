import { setTimeout as delay } from "node:timers/promises";
import t, { type Test } from "tap";
import { ZpublishError } from "../../src/errors.js";
import { createBurstLog } from "../../src/http/request-log.js";
import { jsonOf, openConnection, rawRequest, requestText } from "../support/servers/raw-request.js";
import { bodyReplyOf, routeOf, serveRoutes } from "../support/servers/serve-routes.js";

const bytes = Buffer.from("0123456789");
const routes = [
  routeOf("/chunk/{key}", () => ({ ...bodyReplyOf(bytes, '"c"') }), "chunk"),
  routeOf("/dir/{name}", () => ({ kind: "redirect", to: "with-slash" })),
  routeOf("/broken", () => {
    throw new ZpublishError("corrupt-chunk", "no");
  }),
];

t.test("requests are counted by route template, method and status, kept replies too", async (t) => {
  const { port, server } = await serveRoutes(t, routes);
  const { counts } = server.metrics;
  for (const path of ["/chunk/0", "/chunk/0", "/chunk/0", "/chunk/0", "/chunk/1"])
    await rawRequest(port, path);
  await rawRequest(port, "/chunk/0", { method: "HEAD" });
  await rawRequest(port, "/chunk/0", { headers: { "If-None-Match": '"c"' } });
  await rawRequest(port, "/chunk/0", { headers: { Range: "bytes=0-3" } });
  await rawRequest(port, "/chunk/0", { headers: { Range: "bytes=99-" } });
  await rawRequest(port, "/dir/a");
  await rawRequest(port, "/broken");
  for (const path of ["/nowhere", "/chunk/%ff", "/also/nowhere"]) await rawRequest(port, path);
  await rawRequest(port, "/chunk/0", { method: "OPTIONS" });
  await rawRequest(port, "/chunk/0", { method: "PROPFIND" });

  const chunk = counts.of("/chunk/{key}");
  t.strictSame([...chunk.requests.HEAD], [["200 OK", 1]]);
  t.strictSame(Object.fromEntries(chunk.requests.GET), {
    "200 OK": 5,
    "304 Not Modified": 1,
    "206 Partial Content": 1,
    "416 Range Not Satisfiable": 1,
  });
  t.equal(
    chunk.bytes,
    5 * 10 +
      4 +
      JSON.stringify({ detail: "The range is not satisfiable: expected one that begins within 10 bytes" })
        .length,
  );
  t.equal(chunk.brokenOff, 0);
  const sum = (values: Iterable<number>) => [...values].reduce((total, value) => total + value, 0);
  t.equal(sum(chunk.whole.counts), 9);
  t.equal(sum(chunk.firstByte.counts), 9);
  t.strictSame([...counts.of("/dir/{name}").requests.GET], [["301 Moved Permanently", 1]]);
  t.strictSame([...counts.of("/broken").requests.GET], [["500 Internal Server Error", 1]]);
  t.strictSame(Object.fromEntries(counts.unmatched.requests.GET), {
    "404 Not Found": 2,
    "422 Unprocessable Content": 1,
  });
  t.strictSame([...counts.unmatched.requests.OPTIONS], [["204 No Content", 1]]);
  t.strictSame([...counts.unmatched.requests.other], [["405 Method Not Allowed", 1]]);
  t.strictSame(
    [...counts.all()].map(({ route }) => route).toSorted(),
    ["/broken", "/chunk/{key}", "/dir/{name}", "unmatched"],
    "no label comes from a request",
  );
});

t.test("an answer that its client does not take to the end is broken off", async (t) => {
  const big = Buffer.alloc(32 * 2 ** 20);
  const { port, server } = await serveRoutes(t, [routeOf("/big", () => bodyReplyOf(big, '"b"'), "chunk")]);
  const connection = await openConnection(port);
  connection.socket.once("data", () => connection.socket.destroy());
  connection.send(requestText("/big"));
  const counts = server.metrics.counts.of("/big");
  while (counts.brokenOff === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  t.equal(counts.bytes, 0);
  t.equal(counts.requests.GET.get("200 OK"), 1);
  t.equal((await rawRequest(port, "/big")).body.byteLength, big.byteLength);
  t.equal(counts.bytes, big.byteLength);
});

/** A line of the log about a request. */
interface RequestLine {
  readonly msg: string;
  readonly level: number;
  readonly id?: string;
  readonly method?: string;
  readonly path?: string;
  readonly route?: string;
  readonly status?: number;
  readonly bytes?: number;
  readonly durationMs?: number;
  readonly client?: string;
  readonly cache?: string;
  readonly isWhole?: boolean;
}

let release: () => void = () => undefined;
const held = new Promise<void>((resolve) => {
  release = resolve;
});
const loggedRoutes = [
  routeOf("/chunk/{key}", () => bodyReplyOf(Buffer.from("12345"), '"e"'), "chunk"),
  routeOf("/hit", () => ({
    ...bodyReplyOf(Buffer.from("12345"), '"h"'),
    open: () => ({ byteLength: 5, headers: [["X-Cache", "HIT"]], read: () => Buffer.from("12345") }),
  })),
  routeOf("/broken", async () => {
    throw new ZpublishError("source-unreadable", "EACCES: '/srv/secret'");
  }),
  routeOf("/held", async () => {
    await held;
    return bodyReplyOf(Buffer.from("late"), '"l"');
  }),
];

async function start(t: Test, options: Parameters<typeof serveRoutes>[2] = {}) {
  const started = await serveRoutes(t, loggedRoutes, options);
  const all = () => started.lines as unknown as readonly RequestLine[];
  return { ...started, access: () => all().filter(({ msg }) => msg === "request"), all };
}

t.test("an answer says the name a balancer gave its request, and that alone", async (t) => {
  const { port } = await start(t);
  const named = await rawRequest(port, "/chunk/0", { headers: { "X-Request-Id": "balancer-17" } });
  t.equal(named.headers["x-request-id"], "balancer-17");
  const kept = await openConnection(port);
  t.teardown(() => kept.socket.destroy());
  for (const id of ["a", "b", "c"]) {
    kept.send(requestText("/hit", { headers: { "X-Request-Id": id } }));
    t.equal(
      (await kept.answer()).headers["x-request-id"],
      id,
      "of this request, whatever was kept of another",
    );
  }
  kept.send(requestText("/hit"));
  t.equal((await kept.answer()).headers["x-request-id"], undefined);
  t.equal((await rawRequest(port, "/nowhere")).headers["x-request-id"], undefined);
  for (const id of ["two words", "x".repeat(129), "tab\there"]) {
    const answer = await rawRequest(port, "/chunk/0", { headers: { "X-Request-Id": id } });
    t.equal(answer.headers["x-request-id"], undefined, `not ${id.slice(0, 20)}`);
  }
});

t.test("a failure has one name in its answer, its header and the log", async (t) => {
  const { port, all } = await start(t);
  const made = await rawRequest(port, "/broken");
  const { id } = jsonOf(made) as { id: string };
  t.match(id, /^[0-9a-f-]{36}$/);
  t.equal(made.headers["x-request-id"], id);
  t.match(all().at(-1), {
    level: 50,
    id,
    method: "GET",
    path: "/broken",
  });
  const given = await rawRequest(port, "/broken", { headers: { "X-Request-Id": "lb-1" } });
  t.match(jsonOf(given), { id: "lb-1" });
  t.match(all().at(-1), { id: "lb-1" });
});

t.test("the name comes from the header that is configured, never from one with a secret", async (t) => {
  const { port, server } = await start(t, { requestIdHeader: "x-amzn-trace-id" });
  const headers = { "X-Amzn-Trace-Id": "Root=1-67891233-abcdef012345678912345678", "X-Request-Id": "other" };
  t.equal(
    (await rawRequest(port, "/chunk/0", { headers })).headers["x-request-id"],
    headers["X-Amzn-Trace-Id"],
  );
  for (const requestIdHeader of ["authorization", "cookie"]) {
    t.throws(() => server.use({ routes: loggedRoutes, requestIdHeader }), { code: "invalid-config" });
  }
});

t.test("a logged request says all that is known of it, and no query", async (t) => {
  const { port, access } = await start(t, { accessLogShare: 1 });
  const headers = { "X-Request-Id": "r1" };
  await rawRequest(port, "/chunk/0.1?token=secret", { headers });
  t.match(access().at(-1), {
    level: 30,
    id: "r1",
    method: "GET",
    path: "/chunk/0.1",
    route: "/chunk/{key}",
    status: 200,
    bytes: 5,
    client: "127.0.0.1",
  });
  t.ok((access().at(-1)?.durationMs ?? -1) >= 0);
  await rawRequest(port, "/hit");
  t.match(access().at(-1), { cache: "HIT", bytes: 5 });
  await rawRequest(port, "/hit", { method: "HEAD" });
  t.match(access().at(-1), { method: "HEAD", bytes: 0, status: 200 });
  await rawRequest(port, "/hit", { headers: { "If-None-Match": '"h"' } });
  t.match(access().at(-1), { status: 304, bytes: 0 });
  await rawRequest(port, "/nowhere");
  t.match(access().at(-1), { status: 404, route: "unmatched" });
  await rawRequest(port, "/hit", { method: "DELETE" });
  t.match(access().at(-1), { status: 405, method: "other" });
  await rawRequest(port, "/broken");
  t.match(access().at(-1), { status: 500, route: "/broken", client: "127.0.0.1" });
  t.equal(access().length, 7, "one line each");
});

t.test("the client is the one a trusted proxy names, all of several headers together", async (t) => {
  const { port, access } = await start(t, { accessLogShare: 1, trustedProxies: ["127.0.0.1"] });
  const connection = await openConnection(port);
  t.teardown(() => connection.socket.destroy());
  const first = "X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-For: 203.0.113.9\r\n";
  for (const path of ["/chunk/0", "/held"]) {
    connection.send(`GET ${path} HTTP/1.1\r\nHost: test\r\n${first}\r\n`);
    if (path === "/held") release();
    await connection.answer();
    t.match(access().at(-1), { path, client: "203.0.113.9" });
  }
});

t.test("a client that goes away before its answer is logged as such", async (t) => {
  const never = routeOf("/never", () => new Promise(() => undefined));
  const { port, lines } = await serveRoutes(t, [never], { accessLogShare: 1 });
  const connection = await openConnection(port);
  connection.send(requestText("/never"));
  // Answered after the first has begun: the loop takes one connection after the other.
  await rawRequest(port, "/nowhere");
  connection.socket.destroy();
  const gone = () => (lines as unknown as readonly RequestLine[]).find(({ status }) => status === 499);
  while (gone() === undefined) await rawRequest(port, "/nowhere");
  t.match(gone(), { path: "/never", client: "127.0.0.1", isWhole: false });
});

t.test("a share of requests is logged, drawn by chance", async (t) => {
  const { port, access } = await start(t, { accessLogShare: 0.3 });
  const connection = await openConnection(port);
  t.teardown(() => connection.socket.destroy());
  for (let request = 0; request < 400; request++) {
    connection.send(requestText("/chunk/0"));
    await connection.answer();
  }
  const logged = access().length;
  t.ok(logged > 50 && logged < 200, `${logged} of 400`);
});

t.test("of many events, the first ones are logged, and the number of the others", async (t) => {
  const lines: string[] = [];
  const note = createBurstLog(2, 10, (count, last) => lines.push(`${count} more, the last one: ${last}`));
  for (let index = 0; index < 5; index++) note(`event ${index}`, () => lines.push(`${index}`));
  await delay(50);
  t.same(lines, ["0", "1", "3 more, the last one: event 4"]);
  note("next", () => lines.push("next"));
  t.equal(lines.at(-1), "next");
});

t.test("failures are logged whatever the share", async (t) => {
  const { port, access } = await start(t, { accessLogShare: 1e-9 });
  await rawRequest(port, "/broken", { headers: { "X-Request-Id": "f" } });
  t.match(access(), [{ id: "f", status: 500 }]);
});
