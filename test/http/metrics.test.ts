import { pino } from "pino";
import t, { type Test } from "tap";
import { ZpublishError } from "../../src/errors.js";
import { createFailureLog, parseTraceParent } from "../../src/http/request-log.js";
import { jsonOf, openConnection, rawRequest, requestText } from "../support/servers/raw-request.js";
import { bodyReplyOf, routeOf, serveRoutes } from "../support/servers/serve-routes.js";

interface Line {
  readonly level: number;
  readonly msg: string;
  readonly path?: string;
  readonly failed?: number;
}

t.test("of many failures, the first ones are logged and the others are counted", async (t) => {
  const lines: Line[] = [];
  let told: () => void = () => undefined;
  const end = new Promise<void>((resolve) => {
    told = resolve;
  });
  const write = (text: string) => {
    const line: Line = JSON.parse(text);
    lines.push(line);
    if (line.failed !== undefined) told();
  };
  const failures = createFailureLog(pino({ base: null }, { write }), 10);
  for (let index = 0; index < 250; index++) failures.note("error", { path: `/${index}` }, `broken ${index}`);
  t.equal(lines.length, 100);
  t.match(lines[99], { level: 50, path: "/99", msg: "broken 99" });
  const alive = setTimeout(() => undefined, 60_000);
  await end;
  clearTimeout(alive);
  t.match(lines[100], { failed: 150, msg: "further requests failed, the last one: broken 249" });
  failures.note("warn", { path: "/next" }, "broken again");
  t.match(lines[101], { level: 40, path: "/next" });
  t.equal(lines.length, 102);
});

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
  t.equal(chunk.ok, 5);
  t.strictSame([...chunk.requests.HEAD], [["200 OK", 1]]);
  t.strictSame(Object.fromEntries(chunk.requests.GET), {
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
  t.equal(counts.ok, 1, "its status was 200");
  t.equal((await rawRequest(port, "/big")).body.byteLength, big.byteLength);
  t.equal(counts.bytes, big.byteLength);
});

/** A line of the log about a request. */
interface RequestLine {
  readonly msg: string;
  readonly level: number;
  readonly id?: string;
  readonly trace_id?: string;
  readonly parent_span_id?: string;
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

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const TRACEPARENT = `00-${TRACE}-b7ad6b7169203331-01`;

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
  const made = await rawRequest(port, "/broken", { headers: { traceparent: TRACEPARENT } });
  const { id } = jsonOf(made) as { id: string };
  t.match(id, /^[0-9a-f-]{36}$/);
  t.equal(made.headers["x-request-id"], id);
  t.match(all().at(-1), {
    level: 50,
    id,
    trace_id: TRACE,
    parent_span_id: "b7ad6b7169203331",
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

t.test("nothing is logged of requests that are answered, unless a share is asked for", async (t) => {
  const { port, access } = await start(t);
  await rawRequest(port, "/chunk/0");
  t.strictSame(access(), []);
});

t.test("a logged request says all that is known of it, and no query", async (t) => {
  const { port, access } = await start(t, { accessLogShare: 1 });
  const headers = { "X-Request-Id": "r1", traceparent: TRACEPARENT };
  await rawRequest(port, "/chunk/0.1?token=secret", { headers });
  t.match(access().at(-1), {
    level: 30,
    id: "r1",
    trace_id: TRACE,
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

t.test("a share is the same traces on every server", async (t) => {
  const servers = [await start(t, { accessLogShare: 0.3 }), await start(t, { accessLogShare: 0.3 })];
  const more = await start(t, { accessLogShare: 0.6 });
  const requests = Array.from({ length: 400 }, (_, index) => {
    const id = `request-${index}`;
    // Trace ids whose random part is spread evenly.
    const random = Math.floor((index / 400) * 2 ** 32)
      .toString(16)
      .padStart(8, "0");
    const traceparent = `00-${"a".repeat(18)}${random}000000-b7ad6b7169203331-01`;
    return { "X-Request-Id": id, traceparent };
  });
  for (const { port } of [...servers, more]) {
    const connection = await openConnection(port);
    t.teardown(() => connection.socket.destroy());
    for (const headers of requests) {
      connection.send(requestText("/chunk/0", { headers }));
      await connection.answer();
    }
  }
  const [ids = [], others] = servers.map(({ access }) => access().map(({ id }) => id));
  t.strictSame(ids, others);
  t.ok(Math.abs(ids.length - 120) <= 1, `${ids.length} of 400 are three tenths`);
  const moreIds = new Set(more.access().map(({ id }) => id));
  t.ok(
    ids.every((id) => moreIds.has(id)),
    "who logs more logs those, too",
  );
  const traced = servers[0]?.access().filter(({ trace_id }) => trace_id !== undefined) ?? [];
  t.ok(traced.every(({ trace_id = "" }) => Number.parseInt(trace_id.slice(-14), 16) >= 0.7 * 2 ** 56));
});

t.test("a share of requests without a trace is drawn by chance", async (t) => {
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

t.test("failures are logged whatever the share", async (t) => {
  const { port, access } = await start(t, { accessLogShare: 1e-9 });
  await rawRequest(port, "/broken", { headers: { "X-Request-Id": "f" } });
  t.match(access(), [{ id: "f", status: 500 }]);
});

const PARENT = "b7ad6b7169203331";

t.test("a traceparent of version 00 says trace and parent", async (t) => {
  for (const flags of ["01", "02"]) {
    t.strictSame(parseTraceParent(`00-${TRACE}-${PARENT}-${flags}`), { traceId: TRACE, parentId: PARENT });
  }
});

t.test("later versions are read as far as they are like it", async (t) => {
  for (const header of [
    `01-${TRACE}-${PARENT}-01`,
    `cc-${TRACE}-${PARENT}-01-what-the-future-will-be-like`,
  ]) {
    t.match(parseTraceParent(header), { traceId: TRACE, parentId: PARENT }, header);
  }
});

t.test("an invalid header is ignored", async (t) => {
  for (const header of [
    "",
    "00",
    `00-${TRACE}-${PARENT}`,
    `00-${TRACE}-${PARENT}-01-more`,
    `00-${TRACE}-${PARENT}-0`,
    `00-${TRACE}-${PARENT}-0x`,
    `ff-${TRACE}-${PARENT}-01`,
    `00-${"0".repeat(32)}-${PARENT}-01`,
    `00-${TRACE}-${"0".repeat(16)}-01`,
    `00-${TRACE.toUpperCase()}-${PARENT}-01`,
    `00-${TRACE.slice(1)}-${PARENT}-01`,
    `01-${TRACE}-${PARENT}-01.more`,
    ` 00-${TRACE}-${PARENT}-01`,
    `01-${TRACE}-${PARENT}-01-${"x".repeat(600)}`,
  ]) {
    t.equal(parseTraceParent(header), undefined, header);
  }
});
