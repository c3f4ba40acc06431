import { once } from "node:events";
import { type IncomingHttpHeaders, type IncomingMessage, request } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import t from "tap";
import { ZpublishError } from "../../src/errors.js";
import { createDocument } from "../../src/http/create-document.js";
import type { BodyClient, ByteRange, StreamReply } from "../../src/http/reply.js";
import { eventually } from "../support/servers/open-files.js";
import { openConnection, rawRequest, requestText } from "../support/servers/raw-request.js";
import { routeOf, serveRoutes, type TestServer } from "../support/servers/serve-routes.js";

const MIB = 2 ** 20;
const content = Buffer.alloc(9 * MIB);
for (let i = 0; i < content.length; i += 4) content.writeUInt32LE(i, i);

/** What a stream was asked for. */
interface Asked {
  ranges: (ByteRange | undefined)[];
  pieces: number;
  ended: number;
  readonly signals: AbortSignal[];
}

/** Pieces of some bytes, which note what is asked for. */
function piecesOf(
  bytes: Uint8Array,
  pieceBytes: number,
  asked: Asked,
  at: (piece: number) => unknown = () => undefined,
) {
  return async function* (range: ByteRange | undefined, client: BodyClient) {
    asked.ranges.push(range);
    asked.signals.push(client.signal);
    const { start, byteLength } = range ?? { start: 0, byteLength: bytes.byteLength };
    try {
      for (let from = start; from < start + byteLength; from += pieceBytes) {
        await at(asked.pieces);
        asked.pieces += 1;
        yield bytes.subarray(from, Math.min(from + pieceBytes, start + byteLength));
      }
    } finally {
      asked.ended += 1;
    }
  };
}

const nothingAsked = (): Asked => ({ ranges: [], pieces: 0, ended: 0, signals: [] });

function streamOf(pieces: StreamReply["pieces"], more: Partial<StreamReply> = {}): StreamReply {
  return { kind: "stream", contentType: "application/octet-stream", pieces, ...more };
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** Whether the body ended as its head says. */
  readonly isComplete: boolean;
}

async function ask(port: number, path: string, headers = {}, method = "GET"): Promise<Answer> {
  const asked = request({ port, path, method, headers, agent: false });
  asked.end();
  const [response] = (await once(asked, "response")) as [IncomingMessage];
  const pieces: Buffer[] = [];
  response.on("data", (piece: Buffer) => pieces.push(piece));
  await new Promise<void>((resolve) => {
    response.once("close", resolve);
    response.once("error", () => resolve());
  });
  const { statusCode: status = 0, complete: isComplete } = response;
  return { status, headers: response.headers, body: Buffer.concat(pieces), isComplete };
}

t.test(
  "a stream of known length has a length, ranges and conditions, and makes what is sent only",
  async (t) => {
    const asked = nothingAsked();
    const pieces = piecesOf(content, MIB, asked);
    const reply = streamOf(pieces, { byteLength: content.length, etag: '"s"', headers: [["X-Own", "yes"]] });
    const { port, server } = await serveRoutes(t, [routeOf("/s", () => reply, "chunk")]);
    const whole = await ask(port, "/s");
    t.match(whole, { status: 200, isComplete: true });
    t.match(whole.headers, {
      "content-length": `${content.length}`,
      etag: '"s"',
      "accept-ranges": "bytes",
      "x-own": "yes",
    });
    t.ok(whole.body.equals(content));
    t.strictSame(asked.ranges, [undefined]);
    const made = asked.pieces;
    for (const [headers, method, status] of [
      [{}, "HEAD", 200],
      [{ "If-None-Match": '"s"' }, "GET", 304],
      [{ "If-None-Match": "*" }, "GET", 304],
      [{ "If-Match": '"other"' }, "GET", 412],
      [{ Range: "bytes=99999999-" }, "GET", 416],
    ] as const) {
      const answer = await ask(port, "/s", headers, method);
      t.equal(answer.status, status, JSON.stringify(headers));
      if (method === "HEAD") t.match(answer.headers, { "content-length": `${content.length}`, etag: '"s"' });
      if (status === 416) t.equal(answer.headers["content-range"], `bytes */${content.length}`);
    }
    t.equal(asked.pieces, made, "no piece was made for them");
    for (const [range, start, end] of [
      ["bytes=5-9", 5, 10],
      ["bytes=1000000-4000000", 1_000_000, 4_000_001],
      ["bytes=-7", content.length - 7, content.length],
      ["bytes=9000000-", 9_000_000, content.length],
    ] as const) {
      asked.ranges.length = 0;
      const part = await ask(port, "/s", { Range: range, "If-Range": '"s"' });
      t.equal(part.status, 206);
      t.equal(part.headers["content-range"], `bytes ${start}-${end - 1}/${content.length}`);
      t.ok(part.body.equals(content.subarray(start, end)), range);
      t.strictSame(asked.ranges, [{ start, byteLength: end - start }]);
    }
    t.equal((await ask(port, "/s", { Range: "bytes=5-9", "If-Range": '"old"' })).body.length, content.length);
    t.ok(await eventually(() => asked.ended === 6), "each iteration was ended");
    t.match(server.stats, { requestsInFlight: 0, bodyBytesInFlight: 0 });
  },
);

t.test("a stream of unknown length is sent in chunks, on a connection that stays open", async (t) => {
  const asked = nothingAsked();
  const reply = streamOf(piecesOf(content, MIB + 1, asked), { etag: '"u"', status: 203 });
  const empty = streamOf(async function* () {});
  const { port, server } = await serveRoutes(t, [
    routeOf("/u", () => reply, "chunk"),
    routeOf("/same", () => ({ ...reply, status: 200 }), "chunk"),
    routeOf("/empty", () => empty, "chunk"),
  ]);
  const whole = await ask(port, "/u", { Range: "bytes=0-4" });
  t.match(whole, { status: 203, isComplete: true });
  t.match(whole.headers, {
    "transfer-encoding": "chunked",
    "content-length": undefined,
    "accept-ranges": undefined,
  });
  t.ok(whole.body.equals(content));
  const head = await rawRequest(port, "/u", { method: "HEAD" });
  t.match(head, { status: 203, headers: { "content-length": undefined, etag: '"u"' } });
  t.equal((await ask(port, "/same", { "If-None-Match": '"u"' })).status, 304);
  t.equal(asked.ranges.length, 1, "only one of them was made");
  t.match(await ask(port, "/empty"), { status: 200, isComplete: true, body: Buffer.alloc(0) });
  const { socket, send, received } = await openConnection(port);
  for (let i = 1; i <= 3; i += 1) {
    send(requestText("/empty"));
    await eventually(() => received().split("HTTP/1.1 200").length === i + 1);
    send(requestText("/u"));
    t.ok(await eventually(() => received().split("\r\n0\r\n\r\n").length >= i + 1));
  }
  socket.destroy();
  t.ok(await eventually(() => server.stats.requestsInFlight === 0));
  const { bytes } = [...server.metrics.counts.all()].find(({ route }) => route === "/u") ?? {};
  t.equal(bytes, 4 * content.length, "bytes of the body are counted");
});

t.test(
  "an answer with a status of its own is whole, whatever part is asked for, and has no conditions",
  async (t) => {
    const own = { etag: '"o"', status: 203 };
    const reply = streamOf(piecesOf(content, MIB, nothingAsked()), { ...own, byteLength: content.length });
    const document = createDocument("0123456789", "text/plain");
    const { port } = await serveRoutes(t, [
      routeOf("/stream", () => reply, "chunk"),
      routeOf("/document", () => ({ kind: "document", document, status: 203 })),
    ]);
    for (const [path, length] of [
      ["/stream", content.length],
      ["/document", 10],
    ] as const)
      for (const headers of [
        { Range: "bytes=2-4" },
        { Range: "bytes=99999999-" },
        { "If-None-Match": "*" },
      ]) {
        const answer = await ask(port, path, headers);
        t.match(answer, { status: 203, isComplete: true }, `${path} ${JSON.stringify(headers)}`);
        t.match(answer.headers, { "content-length": `${length}`, "content-range": undefined });
        t.equal(answer.body.length, length);
      }
  },
);

t.test("text of unknown length is compressed if the client accepts that", async (t) => {
  const text = Buffer.from("time,t2m\n".repeat(300_000));
  const asked = nothingAsked();
  const csv = streamOf(piecesOf(text, 65_000, asked), {
    contentType: "text/csv; charset=utf-8",
    etag: '"c"',
  });
  const { port } = await serveRoutes(t, [
    routeOf("/csv", () => csv, "chunk"),
    routeOf("/sized", () => ({ ...csv, byteLength: text.length }), "chunk"),
    routeOf("/bytes", () => ({ ...csv, contentType: "application/octet-stream" }), "chunk"),
  ]);
  for (const [coding, etag, decode] of [
    ["gzip", '"c-gz"', gunzipSync],
    ["br", '"c-br"', brotliDecompressSync],
    ["identity", '"c"', (bytes: Buffer) => bytes],
  ] as const) {
    const answer = await ask(port, "/csv", { "Accept-Encoding": coding });
    t.equal(answer.headers["content-encoding"], coding === "identity" ? undefined : coding);
    t.match(answer.headers, { etag, vary: /Accept-Encoding/ });
    t.ok(decode(answer.body).equals(text), coding);
    t.equal((await ask(port, "/csv", { "Accept-Encoding": coding, "If-None-Match": etag })).status, 304);
    const other = etag === '"c-gz"' ? '"c"' : '"c-gz"';
    const whole = await ask(port, "/csv", { "Accept-Encoding": coding, "If-None-Match": other });
    t.equal(whole.status, 200, "the client has it in another coding");
    t.ok(decode(whole.body).equals(text));
  }
  for (const path of ["/sized", "/bytes"]) {
    const answer = await ask(port, path, { "Accept-Encoding": "gzip" });
    t.equal(answer.headers["content-encoding"], undefined);
    t.ok(answer.body.equals(text), path);
  }
});

t.test("a compressed body of another length than it was said to have is broken off", async (t) => {
  const text = Buffer.from("time,t2m\n".repeat(300_000));
  const sized = (byteLength: number) =>
    streamOf(piecesOf(text, 65_000, nothingAsked()), { byteLength, etag: '"c"', isCompressible: true });
  const { port } = await serveRoutes(t, [
    routeOf("/right", () => sized(text.length), "chunk"),
    routeOf("/wrong", () => sized(text.length + 1), "chunk"),
  ]);
  const gzip = { "Accept-Encoding": "gzip" };
  const right = await ask(port, "/right", gzip);
  t.ok(right.isComplete && gunzipSync(right.body).equals(text));
  t.equal((await ask(port, "/wrong", gzip)).isComplete, false);
  const head = await ask(port, "/right", gzip, "HEAD");
  t.match(head.headers, { "content-length": `${text.length}`, "content-encoding": undefined });
});

t.test("an error before the first piece is answered, a later one breaks the connection", async (t) => {
  const failing = (after: number) =>
    piecesOf(content, MIB, nothingAsked(), (piece) => {
      if (piece === after) throw new ZpublishError("too-large", "expected at most 5 bytes, received 6");
    });
  const known = { byteLength: content.length, etag: '"f"' };
  const text = { contentType: "text/plain" };
  const { port, server, lines } = await serveRoutes(t, [
    routeOf("/first", () => streamOf(failing(0)), "chunk"),
    routeOf("/first-known", () => streamOf(failing(0), known), "chunk"),
    routeOf("/later", () => streamOf(failing(3)), "chunk"),
    routeOf("/later-known", () => streamOf(failing(3), known), "chunk"),
    routeOf("/later-text", () => streamOf(failing(3), text), "chunk"),
    routeOf(
      "/short",
      () => streamOf(piecesOf(content, MIB, nothingAsked()), { byteLength: content.length + 1 }),
      "chunk",
    ),
    routeOf(
      "/long",
      () => streamOf(piecesOf(content, MIB, nothingAsked()), { byteLength: content.length - 1 }),
      "chunk",
    ),
  ]);
  for (const path of ["/first", "/first-known"]) {
    const answer = await ask(port, path);
    t.equal(answer.status, 413);
    t.strictSame(JSON.parse(answer.body.toString()), { detail: "expected at most 5 bytes, received 6" });
  }
  for (const path of ["/later", "/later-known", "/later-text", "/short", "/long"]) {
    const answer = await ask(port, path, { "Accept-Encoding": "gzip" });
    t.match(answer, { status: 200, isComplete: false }, path);
    t.ok(
      lines.some((line) => line.path === path && line.msg.startsWith("answer broken off")),
      path,
    );
  }
  t.match(server.stats, { requestsInFlight: 0, bodyBytesInFlight: 0 });
});

/** Opens connections that ask for a stream and do not read. */
async function stalledClients({ port }: TestServer, path: string, count: number) {
  const clients = Array.from({ length: count }, async () => {
    const connection = await openConnection(port);
    connection.socket.pause();
    connection.send(requestText(path));
    return connection;
  });
  return Promise.all(clients);
}

t.test("a client that does not read costs one piece, counted, and its pieces end when it goes", async (t) => {
  for (const known of [{ byteLength: 1024 * MIB, etag: '"x"' }, {}]) {
    const asked = nothingAsked();
    const endless = async function* (_: unknown, { signal }: BodyClient) {
      asked.signals.push(signal);
      try {
        for (let i = 0; i < 1024; i += 1) {
          asked.pieces += 1;
          yield Buffer.alloc(MIB, i);
        }
      } finally {
        asked.ended += 1;
      }
    };
    const reply = streamOf(endless, { ...known, heldByteLength: MIB });
    const server = await serveRoutes(t, [routeOf("/x", () => reply, "chunk")]);
    const before = process.memoryUsage().arrayBuffers + process.memoryUsage().external;
    const clients = await stalledClients(server, "/x", 50);
    let pieces = 0;
    // The kernel's buffers are full when no further piece was asked for.
    while (pieces < asked.pieces || pieces < 50) {
      pieces = asked.pieces;
      await delay(200);
    }
    t.ok(asked.pieces < 50 * 12, `${asked.pieces} pieces for 50 clients`);
    t.equal(server.server.stats.bodyBytesInFlight, 50 * MIB);
    const { arrayBuffers, external } = process.memoryUsage();
    t.ok(arrayBuffers + external - before < 250 * MIB, `${(arrayBuffers + external - before) / MIB} MiB`);
    for (const { socket } of clients) socket.destroy();
    t.ok(await eventually(() => asked.ended === 50), "the iterators ended");
    t.ok(asked.signals.every(({ aborted }) => aborted));
    t.match(server.server.stats, { requestsInFlight: 0, bodyBytesInFlight: 0 });
  }
});

t.test("a client that reads slowly gets all of it", async (t) => {
  for (const known of [{ byteLength: content.length, etag: '"x"' }, {}]) {
    const reply = streamOf(piecesOf(content, 700_001, nothingAsked()), known);
    const { port } = await serveRoutes(t, [routeOf("/slow", () => reply, "chunk")]);
    const asked = request({ port, path: "/slow", agent: false });
    asked.end();
    const [response] = (await once(asked, "response")) as [IncomingMessage];
    const pieces: Buffer[] = [];
    await delay(100);
    for await (const piece of response) {
      pieces.push(piece as Buffer);
      if (pieces.length % 16 === 0) await delay(2);
    }
    t.ok(Buffer.concat(pieces).equals(content));
  }
});

t.test("streams wait for room, and a redirect may lead to another URL", async (t) => {
  const reply = streamOf(piecesOf(content, MIB, nothingAsked()), { heldByteLength: 8 * MIB });
  const server = await serveRoutes(
    t,
    [
      routeOf("/x", () => reply, "chunk"),
      routeOf("/to", () => ({ kind: "redirect", to: { url: "https://data.example/a?b", status: 303 } })),
    ],
    { limits: { maxBodyBytesInFlight: 8 * MIB } },
  );
  const [first] = await stalledClients(server, "/x", 1);
  t.ok(await eventually(() => server.server.stats.bodyBytesInFlight === 8 * MIB));
  const second = ask(server.port, "/x");
  t.ok(await eventually(() => server.server.stats.waiting === 1));
  first?.socket.destroy();
  t.ok((await second).body.equals(content));
  t.match(await ask(server.port, "/to"), { status: 303, headers: { location: "https://data.example/a?b" } });
});
