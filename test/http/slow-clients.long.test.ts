import { setTimeout as delay } from "node:timers/promises";
import t from "tap";
import { createDocument } from "../../src/http/create-document.js";
import type { StreamReply } from "../../src/http/reply.js";
import { eventually, openFiles } from "../support/servers/open-files.js";
import { openConnection, rawRequest, requestText } from "../support/servers/raw-request.js";
import { bodyOf, bodyReplyOf, routeOf, serveRoutes } from "../support/servers/serve-routes.js";

const BODY_BYTES = 16 * 2 ** 20;
const content = Buffer.alloc(BODY_BYTES, "0123456789abcdef");
const document = createDocument("{}", "application/json");
const routes = [
  routeOf("/page", () => ({ kind: "document", document })),
  routeOf("/held", () => bodyReplyOf(content, '"t"'), "chunk"),
  routeOf(
    "/view",
    () => bodyReplyOf(content, '"t"', { open: () => ({ ...bodyOf(content), heldByteLength: 0 }) }),
    "chunk",
  ),
];

// They wait for timers most of the time. The first one counts this process's files, so it runs alone.
t.jobs = 2;

t.test(
  "clients that take bodies slowly do not keep others from theirs for ever",
  { buffered: false },
  async (t) => {
    const { port, server } = await serveRoutes(t, routes, {
      limits: { maxBodyBytesInFlight: 20 * BODY_BYTES },
    });
    const files = openFiles();
    const slow = await Promise.all(
      Array.from({ length: 200 }, async () => {
        const connection = await openConnection(port);
        connection.socket.pause();
        connection.send(requestText("/held"));
        return connection;
      }),
    );
    t.ok(await eventually(() => server.stats.waiting === 180));
    t.ok(server.stats.bodyBytesInFlight <= 20 * BODY_BYTES, "no more is held than there may be");
    // One that takes its body at a fair pace is not among those that make room, though it is in the middle of it.
    t.ok((await rawRequest(port, "/view")).body.equals(content), "what takes no memory is answered at once");
    t.equal((await rawRequest(port, "/page")).status, 200);
    // A place among those that are let in becomes free by and by; none would, for as long as a client may stall.
    t.ok(await droppedBy(() => server.stats.clientsDropped >= 20));
    t.ok(server.stats.bodyBytesInFlight <= 20 * BODY_BYTES);
    for (const { socket } of slow) socket.destroy();
    t.ok((await rawRequest(port, "/held")).body.equals(content));
    t.ok(await eventually(() => server.stats.connections === 0));
    t.match(server.stats, { requestsInFlight: 0, bodyBytesInFlight: 0, waiting: 0 });
    t.ok(await eventually(() => (openFiles() ?? 0) <= (files ?? 0) + 2), "no file is left open");
  },
);

/** Waits for what takes ten seconds and some. */
async function droppedBy(holds: () => boolean): Promise<boolean> {
  for (let tries = 0; tries < 12; tries += 1) if (await eventually(holds)) return true;
  return false;
}

t.test("uWebSockets.js ends connections that send a request for ever, or none", async (t) => {
  const { port, server } = await serveRoutes(t, routes);
  const begins: readonly (readonly [name: string, begin: string, drip: string])[] = [
    ["nothing", "", ""],
    ["a head that never ends", "GET /page HTTP/1.1\r\nHost: a\r\nX: ", "x"],
    ["headers without end", "GET /page HTTP/1.1\r\nHost: a\r\n", "X: y\r\n"],
    ["a request, then the next slowly", `${requestText("/page")}GET /page HTTP/1.1\r\nHost: `, "a"],
    ["a body that nobody reads", "POST /page HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n", "x"],
    [
      "a body in chunks",
      "POST /page HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
      "1\r\nx\r\n",
    ],
    ["a request that is read no answer of", requestText("/page"), ""],
  ];
  const dripping = await Promise.all(
    Array.from({ length: 210 }, async (_, i) => {
      const [name = "", begin = "", drip = ""] = begins[i % begins.length] ?? [];
      const connection = await openConnection(port);
      connection.send(begin);
      return { name, drip, connection };
    }),
  );
  t.equal((await rawRequest(port, "/page")).status, 200);
  while (server.stats.connections > 0) {
    for (const { drip, connection } of dripping)
      if (drip !== "" && !connection.closed()) connection.send(drip);
    await delay(500);
  }
  for (const { name, connection } of dripping) t.ok(await eventually(connection.closed), name);
  t.match(server.stats, { requestsInFlight: 0, connections: 0 });
  t.equal((await rawRequest(port, "/page")).status, 200);
});

/** The content in pieces, of unknown length. */
const stream: StreamReply = {
  kind: "stream",
  contentType: "application/octet-stream",
  async *pieces() {
    for (let at = 0; at < BODY_BYTES; at += 2 ** 20) yield content.subarray(at, at + 2 ** 20);
  },
};

/** The same in one piece, after which the answer ends while the socket is full. */
const piece: StreamReply = {
  ...stream,
  async *pieces() {
    yield content;
  },
};

t.test("a client that pauses is waited for, one that has stalled is dropped", async (t) => {
  const big = [
    routeOf("/big", () => bodyReplyOf(content, '"t"'), "chunk"),
    routeOf("/stream", () => stream, "chunk"),
    routeOf("/piece", () => piece, "chunk"),
  ];
  const patient = await serveRoutes(t, big);
  const hasty = await serveRoutes(t, big, { limits: { stallTimeoutMs: 3_000 } });
  const connect = async (port: number, path: string) => {
    const connection = await openConnection(port);
    connection.socket.pause();
    connection.send(requestText(path));
    return connection;
  };
  const pausing = await connect(patient.port, "/big");
  const pausingStreams = [await connect(patient.port, "/stream"), await connect(patient.port, "/piece")];
  const stalled = [await connect(hasty.port, "/big"), await connect(hasty.port, "/stream")];
  // uWebSockets.js by itself drops a connection after ten to fourteen seconds.
  await delay(17_000);
  t.equal(hasty.server.stats.requestsInFlight, 0);
  t.equal(hasty.server.stats.clientsDropped, 2);
  t.equal(patient.server.stats.requestsInFlight, 3);
  pausing.socket.resume();
  t.ok((await pausing.answer()).body.equals(content));
  for (const { socket } of pausingStreams) socket.resume();
  t.ok(await eventually(() => patient.server.stats.requestsInFlight === 0));
  for (const { received } of pausingStreams)
    t.ok(await eventually(() => received().endsWith("\r\n0\r\n\r\n")));
  for (const { socket, closed, received } of stalled) {
    socket.resume();
    t.ok(await eventually(closed));
    t.ok(received().length < BODY_BYTES);
  }
});
