import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import fc from "fast-check";
import t from "tap";
import { ZpublishError } from "../../src/errors.js";
import { createDocument } from "../../src/http/create-document.js";
import type { Body, BodyReply, DocumentReply, Reply } from "../../src/http/reply.js";
import { effort } from "../support/effort.js";
import { openConnection, type RawAnswer, rawRequest, requestText } from "../support/servers/raw-request.js";
import { bodyOf, bodyReplyOf, routeOf, serveRoutes } from "../support/servers/serve-routes.js";

const BODY_BYTES = 24 * 2 ** 20;
const content = Buffer.alloc(BODY_BYTES);
for (let i = 0; i < BODY_BYTES; i += 4) content.writeUInt32LE(i, i);

/** A body whose views die when their turn of the loop is over, as those of LMDB may. */
function volatileBody(reads: { count: number }, evicted: () => boolean = () => false): Body {
  return {
    byteLength: BODY_BYTES,
    headers: [],
    read(offset) {
      if (evicted()) return undefined;
      reads.count += 1;
      const view = Uint8Array.prototype.slice.call(content, offset, offset + 4 * 2 ** 20);
      setImmediate(() => view.fill(0xee));
      return view;
    },
  };
}

/** Asks, waits so that the socket fills, then reads a piece now and then. */
async function readSlowly(port: number, path: string, headers = {}): Promise<Buffer> {
  const socket = connect({ port, host: "127.0.0.1" });
  await once(socket, "connect");
  socket.pause();
  socket.write(requestText(path, { headers: { Connection: "close", ...headers } }));
  await delay(100);
  const pieces: Buffer[] = [];
  let pauses = 0;
  socket.on("data", (piece) => {
    pieces.push(piece);
    pauses += 1;
    if (pauses % 16 === 0) {
      socket.pause();
      setTimeout(() => socket.resume(), 2);
    }
  });
  socket.resume();
  await once(socket, "close");
  return Buffer.concat(pieces);
}

t.test("nothing is sent from a view that is dead, however slowly a client reads", async (t) => {
  const reads = { count: 0 };
  const reply = bodyReplyOf(content, '"t"', { open: async () => volatileBody(reads) });
  const { port, server } = await serveRoutes(t, [routeOf("/big", () => reply, "chunk")]);
  const received = await readSlowly(port, "/big");
  t.ok(received.subarray(received.indexOf("\r\n\r\n") + 4).equals(content));
  t.ok(reads.count > 6, `read again as the socket takes it: ${reads.count} times`);
  const part = await readSlowly(port, "/big", { Range: "bytes=1234567-20000000" });
  t.ok(part.subarray(part.indexOf("\r\n\r\n") + 4).equals(content.subarray(1_234_567, 20_000_001)));
  t.match(server.stats, { requestsInFlight: 0, bodyBytesInFlight: 0 });
});

t.test("a body that is evicted while it is sent is opened again", async (t) => {
  let opens = 0;
  const reads = { count: 0 };
  const open: BodyReply["open"] = async () => {
    opens += 1;
    const until = reads.count + 2;
    return volatileBody(reads, () => reads.count >= until);
  };
  const { port } = await serveRoutes(t, [
    routeOf("/big", () => bodyReplyOf(content, '"t"', { open }), "chunk"),
  ]);
  const received = await readSlowly(port, "/big");
  t.ok(received.subarray(received.indexOf("\r\n\r\n") + 4).equals(content));
  t.ok(opens > 1, `opened ${opens} times`);
});

t.test("the connection is dropped where it cannot be opened again, or is another body", async (t) => {
  const reads = { count: 0 };
  const again: Record<string, BodyReply["open"]> = {
    "/fails": () => Promise.reject(new Error("gone")),
    "/throws": () => {
      throw new Error("gone");
    },
    "/other": async () => ({ ...volatileBody(reads), byteLength: 5 }),
    "/empty": async () => ({ ...volatileBody(reads), read: () => undefined }),
  };
  const routes = Object.entries(again).map(([path, reopen]) =>
    routeOf(
      path,
      () => {
        let opens = 0;
        let count = 0;
        const first = volatileBody(reads, () => count++ > 0);
        return bodyReplyOf(content, '"t"', {
          open: (request, wanted) => (opens++ === 0 ? Promise.resolve(first) : reopen(request, wanted)),
        });
      },
      "chunk",
    ),
  );
  const { port, server, lines } = await serveRoutes(t, routes);
  for (const path of Object.keys(again)) {
    const received = await readSlowly(port, path);
    t.ok(received.byteLength < BODY_BYTES, path);
    t.ok(
      lines.some(
        (line) => line.path === path && line.level === 50 && line.msg.startsWith("answer broken off"),
      ),
    );
  }
  t.match(server.stats, { requestsInFlight: 0, bodyBytesInFlight: 0 });
});

t.test("a client that goes away takes nothing down", async (t) => {
  const reply = bodyReplyOf(content, '"t"', { open: async () => volatileBody({ count: 0 }) });
  const slow = bodyReplyOf(content, '"t"', {
    open: async () => {
      await delay(30);
      return volatileBody({ count: 0 });
    },
  });
  const { port, server, lines } = await serveRoutes(t, [
    routeOf("/big", () => reply, "chunk"),
    routeOf("/slow", () => slow, "chunk"),
    routeOf("/late", async () => {
      await delay(30);
      throw new Error("too late");
    }),
  ]);
  for (const path of ["/big", "/slow", "/late", "/big", "/slow"]) {
    const { socket, send } = await openConnection(port);
    socket.pause();
    send(requestText(path));
    await delay(10);
    socket.resetAndDestroy();
  }
  await delay(100);
  t.match(server.stats, { requestsInFlight: 0, bodyBytesInFlight: 0, waiting: 0 });
  t.equal((await rawRequest(port, "/nope")).status, 404);
  t.notOk(lines.some((line) => line.level >= 50 && line.path !== "/late"));
});

t.test("chunks wait while too many bytes are on their way, and none is turned away", async (t) => {
  const reply = bodyReplyOf(content, '"t"');
  const { port, server } = await serveRoutes(t, [routeOf("/big", () => reply, "chunk")], {
    limits: { maxBodyBytesInFlight: 2 ** 20 },
  });
  const stalled = await openConnection(port);
  stalled.socket.pause();
  stalled.send(requestText("/big"));
  await delay(50);
  t.equal(server.stats.bodyBytesInFlight, BODY_BYTES);
  const gone = await openConnection(port);
  gone.send(requestText("/big"));
  await delay(20);
  const waiting = [1, 2, 3].map(() => rawRequest(port, "/big"));
  await delay(50);
  t.equal(server.stats.waiting, 4);
  gone.socket.destroy();
  stalled.socket.destroy();
  for (const answer of await Promise.all(waiting)) t.ok(answer.body.equals(content));
  t.match(server.stats, { requestsInFlight: 0, bodyBytesInFlight: 0, waiting: 0 });
});

t.test("of many chunks asked for at once, no more are made than there is room for", async (t) => {
  let held = 0;
  let heldMax = 0;
  const reply = bodyReplyOf(content, '"t"', {
    open: async (request) => {
      await request.reserve(BODY_BYTES);
      held += 1;
      heldMax = Math.max(heldMax, held);
      await delay(5);
      return { byteLength: BODY_BYTES, headers: [], read: (offset) => content.subarray(offset) };
    },
  });
  const { port, server } = await serveRoutes(t, [routeOf("/big", () => reply, "chunk")], {
    limits: { maxBodyBytesInFlight: 3 * BODY_BYTES },
  });
  const stalled = [];
  for (let i = 0; i < 20; i += 1) {
    const connection = await openConnection(port);
    connection.socket.pause();
    connection.send(requestText("/big"));
    stalled.push(connection);
  }
  await delay(150);
  t.equal(heldMax, 3);
  t.match(server.stats, { waiting: 17, bodyBytesInFlight: 3 * BODY_BYTES });
  for (const { socket } of stalled) socket.resume();
  for (const { answer } of stalled) t.equal((await answer()).status, 200);
  t.match(server.stats, { requestsInFlight: 0, bodyBytesInFlight: 0, waiting: 0 });
});

t.test("a body at hand that takes no memory waits for no room", async (t) => {
  const held = bodyReplyOf(content, '"t"');
  const view: Body = {
    byteLength: BODY_BYTES,
    heldByteLength: 0,
    headers: [],
    read: (offset) => content.subarray(offset),
  };
  const atHand = bodyReplyOf(content, '"t"', { open: () => view });
  const routes = [routeOf("/held", () => held, "chunk"), routeOf("/view", async () => atHand, "chunk")];
  const { port, server } = await serveRoutes(t, routes, { limits: { maxBodyBytesInFlight: 1 } });
  const stalled = await openConnection(port);
  stalled.socket.pause();
  stalled.send(requestText("/held"));
  while (server.stats.bodyBytesInFlight < BODY_BYTES) await delay(5);
  t.ok((await rawRequest(port, "/view")).body.equals(content));
  t.equal(server.stats.bodyBytesInFlight, BODY_BYTES);
  stalled.socket.destroy();
});

t.test("a body is made with a signal that aborts when the client has gone", async (t) => {
  const signals: AbortSignal[] = [];
  const reply = bodyReplyOf(content, '"t"', {
    open: async ({ signal }) => {
      signals.push(signal);
      await delay(150);
      if (signal.aborted) throw new ZpublishError("overloaded", "cancelled");
      throw new ZpublishError("not-found", "nothing is here");
    },
  });
  const { port, lines } = await serveRoutes(t, [routeOf("/slow", () => reply, "chunk")]);
  for (const method of ["GET", "HEAD"]) {
    const gone = await openConnection(port);
    gone.send(requestText("/slow", { method }));
    while (signals.length < (method === "GET" ? 1 : 2)) await delay(5);
    t.notOk(signals.at(-1)?.aborted);
    gone.socket.resetAndDestroy();
    while (!signals.at(-1)?.aborted) await delay(5);
  }
  t.equal((await rawRequest(port, "/slow")).status, 404);
  t.notOk(
    lines.some(({ code }) => code === "overloaded"),
    "a client that has gone was not rejected",
  );
});

const bytes = Uint8Array.from({ length: 40_000 }, (_, i) => (i * 7) % 256);

t.test("any request is answered alike by a reply that is given again and by one just made", async (t) => {
  const document = createDocument(JSON.stringify({ text: "a text ".repeat(400) }), "application/json");
  const replies: Readonly<Record<string, Reply>> = {
    body: bodyReplyOf(bytes, '"tag"', { cacheControl: "public, max-age=60" }),
    document: { kind: "document", document } satisfies DocumentReply,
    "at-hand": bodyReplyOf(bytes, '"hand"', {
      open: () => bodyOf(bytes, Object.freeze([["X-Cache", "HIT"] as const])),
    }),
  };
  for (const corsOrigin of ["*", "https://a.example,https://b.example", ""]) {
    const { port } = await serveRoutes(
      t,
      Object.entries(replies).flatMap(([name, reply]) => [
        routeOf(`/made/${name}`, () => ({ ...reply })),
        routeOf(`/kept/${name}`, () => reply),
      ]),
      { corsOrigin },
    );
    const headers = fc.record(
      {
        "If-None-Match": fc.constantFrom('"tag"', '"hand"', document.etag, 'W/"tag"', "*", '"other"'),
        "If-Match": fc.constantFrom('"tag"', '"hand"', document.etag, "*", '"other"'),
        Range: fc.constantFrom("bytes=0-9", "bytes=-5", "bytes=100000-", "bytes=5-1", "lines=1-2"),
        "If-Range": fc.constantFrom('"tag"', '"other"', document.etag),
        "Accept-Encoding": fc.constantFrom("gzip", "br", "identity", "br;q=0, gzip;q=0.5"),
        Origin: fc.constantFrom("https://a.example", "https://c.example"),
      },
      { requiredKeys: [] },
    );
    const requests = fc.record({
      name: fc.constantFrom(...Object.keys(replies)),
      method: fc.constantFrom("GET", "HEAD"),
      headers,
      query: fc.constantFrom("", "?a=b"),
    });
    await fc.assert(
      fc.asyncProperty(requests, async ({ name, method, headers, query }) => {
        const ask = (kind: string) => rawRequest(port, `/${kind}/${name}${query}`, { method, headers });
        await ask("kept");
        await ask("kept");
        t.strictSame(comparable(await ask("kept")), comparable(await ask("made")));
      }),
      { numRuns: effort(300) },
    );
  }
});

function comparable({ status, headers, body }: RawAnswer) {
  return { status, headers: { ...headers, date: undefined }, body: body.toString("latin1") };
}

t.test("a body is released once, when it is sent, given up or not needed", async (t) => {
  let released = 0;
  let opened = 0;
  const { port } = await serveRoutes(t, [
    routeOf("/released", () =>
      bodyReplyOf(bytes, '"r"', {
        async open() {
          opened += 1;
          const release = () => {
            released += 1;
          };
          return { ...bodyOf(bytes), release };
        },
      }),
    ),
  ]);
  for (const request of [
    {},
    { method: "HEAD" },
    { headers: { Range: "bytes=1-2" } },
    { headers: { Range: "bytes=99999-" } },
    { headers: { "If-None-Match": "*" } },
  ]) {
    await rawRequest(port, "/released", request);
    t.equal(released, opened, JSON.stringify(request));
  }
  t.equal(opened, 5);
});
