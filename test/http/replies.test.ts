import { randomBytes } from "node:crypto";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import t from "tap";
import { ZpublishError } from "../../src/errors.js";
import { runNow } from "../../src/event-loop/cooperative-task.js";
import { createDocument, documentSteps } from "../../src/http/create-document.js";
import type { BodyReply } from "../../src/http/reply.js";
import { jsonOf, type RawRequest, rawRequest } from "../support/servers/raw-request.js";
import { bodyOf, bodyReplyOf, routeOf, serveRoutes } from "../support/servers/serve-routes.js";

const bytes = Uint8Array.from({ length: 1000 }, (_, i) => i % 251);

/** A reply that counts what is asked of it. */
function counted(more: Partial<BodyReply> = {}) {
  const calls = { open: 0 };
  const reply = bodyReplyOf(bytes, '"tag"', {
    cacheControl: "public, max-age=31536000, immutable",
    open: async () => {
      calls.open += 1;
      return bodyOf(bytes, [
        ["Server-Timing", "read;dur=1.5"],
        ["X-Cache", "MISS"],
      ]);
    },
    ...more,
  });
  return { calls, reply };
}

async function ask(t: Parameters<typeof serveRoutes>[0], reply: BodyReply, request: RawRequest = {}) {
  const { port, lines } = await serveRoutes(t, [routeOf("/chunk", () => reply, "chunk")]);
  return { ...(await rawRequest(port, "/chunk", request)), lines };
}

t.test("sends a body with its headers", async (t) => {
  const { reply } = counted();
  const answer = await ask(t, reply, { headers: { "Accept-Encoding": "br, gzip" } });
  t.equal(answer.status, 200);
  t.ok(answer.body.equals(bytes));
  t.match(answer.headers, {
    "content-type": "application/octet-stream",
    "content-length": "1000",
    etag: '"tag"',
    "cache-control": "public, max-age=31536000, immutable",
    "accept-ranges": "bytes",
    "server-timing": "read;dur=1.5",
    "x-cache": "MISS",
  });
  t.notOk("content-encoding" in answer.headers);
  t.notOk("vary" in answer.headers);
});

t.test("decides conditions before it makes a body", async (t) => {
  for (const [headers, status, opened] of [
    [{ "If-None-Match": '"tag"' }, 304, 0],
    [{ "If-None-Match": '"a", W/"tag"' }, 304, 0],
    [{ "If-None-Match": '"other"' }, 200, 1],
    [{ "If-None-Match": "*" }, 304, 1],
    [{ "If-Match": '"tag"' }, 200, 1],
    [{ "If-Match": "*" }, 200, 1],
    [{ "If-Match": '"other"' }, 412, 0],
    [{ "If-Match": 'W/"tag"' }, 412, 0],
    [{ "If-Match": '"other"', "If-None-Match": '"tag"' }, 412, 0],
    [{ Range: "bytes=0-1", "If-Range": '"tag"' }, 206, 1],
    [{ Range: "bytes=0-1", "If-Range": '"other"' }, 200, 1],
    [{ Range: "bytes=0-1", "If-None-Match": '"tag"' }, 304, 0],
  ] as const) {
    const { calls, reply } = counted();
    const answer = await ask(t, reply, { headers });
    t.equal(answer.status, status, JSON.stringify(headers));
    t.strictSame(calls, { open: opened }, JSON.stringify(headers));
    if (status === 304) {
      t.match(answer.headers, { etag: '"tag"', "cache-control": /immutable/ });
      t.notOk("content-length" in answer.headers);
    }
  }
});

t.test("sends parts", async (t) => {
  for (const [range, start, end] of [
    ["bytes=0-0", 0, 0],
    ["bytes=10-19", 10, 19],
    ["bytes=990-", 990, 999],
    ["bytes=-7", 993, 999],
    ["bytes=500-9999", 500, 999],
  ] as const) {
    const answer = await ask(t, counted().reply, { headers: { Range: range } });
    t.equal(answer.status, 206);
    t.equal(answer.headers["content-range"], `bytes ${start}-${end}/1000`);
    t.ok(answer.body.equals(bytes.subarray(start, end + 1)), range);
    t.match(answer.headers, { etag: '"tag"', "cache-control": /immutable/, "x-cache": "MISS" });
  }
  const none = await ask(t, counted().reply, { headers: { Range: "bytes=1000-" } });
  t.equal(none.status, 416);
  t.equal(none.headers["content-range"], "bytes */1000");
  const empty = bodyReplyOf(new Uint8Array(0), '"e"');
  t.equal((await ask(t, empty, { headers: { Range: "bytes=0-" } })).status, 416);
  t.equal((await ask(t, empty)).headers["content-length"], "0");
});

t.test("an absent body is 404, whatever the conditions", async (t) => {
  const absent = async () => {
    throw new ZpublishError("not-found", "Chunk '0.0' of 'a/b' is absent");
  };
  for (const request of [
    {},
    { method: "HEAD" },
    { headers: { "If-None-Match": "*" } },
    { headers: { "If-Match": "*" } },
    { headers: { Range: "bytes=0-1" } },
  ]) {
    const answer = await ask(t, counted({ open: absent }).reply, request);
    t.equal(answer.status, 404, JSON.stringify(request));
    t.equal(answer.headers["cache-control"], "no-cache");
    if (request.method !== "HEAD") t.strictSame(jsonOf(answer), { detail: "Chunk '0.0' of 'a/b' is absent" });
  }
});

t.test("a failure is 500 with an id that the log has too, and says nothing of the machine", async (t) => {
  for (const [error, detail] of [
    [
      new ZpublishError("corrupt-chunk", "expected 100 bytes in /srv/x/0.0, received 3"),
      "The stored data is corrupt",
    ],
    [new Error("ENOENT: /srv/x"), "Internal Server Error"],
    ["thrown text", "Internal Server Error"],
    [undefined, "Internal Server Error"],
  ] as const) {
    const { lines, ...answer } = await ask(t, counted({ open: () => Promise.reject(error) }).reply);
    t.equal(answer.status, 500);
    t.equal(answer.headers["content-type"], "application/json");
    const body = jsonOf(answer) as { readonly detail: string; readonly id: string };
    t.equal(body.detail, detail);
    t.notMatch(answer.body.toString(), "/srv");
    t.ok(lines.some((line) => line.level === 50 && line.id === body.id && line.path === "/chunk"));
  }
});

t.test("begins a request again whose source changes under it, a few times", async (t) => {
  let calls = 0;
  const handler = (failures: number) => () => {
    calls += 1;
    const tag = `"v${calls}"`;
    if (calls > failures) return bodyReplyOf(bytes, tag);
    const open = () => Promise.reject(new ZpublishError("source-changed", "changed"));
    return bodyReplyOf(bytes, tag, { open });
  };
  const { port } = await serveRoutes(t, [
    routeOf("/twice", handler(2), "chunk"),
    routeOf("/forever", handler(1000), "chunk"),
  ]);
  const answer = await rawRequest(port, "/twice", { headers: { Range: "bytes=5-6" } });
  t.equal(answer.status, 206, "with the headers it came with");
  t.equal(answer.headers.etag, '"v3"');
  calls = 0;
  const refused = await rawRequest(port, "/forever");
  t.equal(refused.status, 503);
  t.match(refused.headers["retry-after"], /^\d+$/);
  t.equal(calls, 3);
});

t.test("a body that is evicted before it is sent is asked for again, a few times", async (t) => {
  let opens = 0;
  const open = async () => {
    opens += 1;
    const late = opens > 1;
    return {
      byteLength: 1000,
      headers: [],
      read: (offset: number) => (late ? bytes.subarray(offset) : undefined),
    };
  };
  const answer = await ask(t, counted({ open }).reply);
  t.equal(answer.status, 200);
  t.ok(answer.body.equals(bytes));
  const never = async () => ({ byteLength: 1000, headers: [], read: () => undefined });
  t.equal((await ask(t, counted({ open: never }).reply)).status, 503);
});

t.test("handlers read the request's headers for as long as it is not answered", async (t) => {
  const seen: (string | undefined)[] = [];
  const { port } = await serveRoutes(t, [
    routeOf("/x", async (request) => {
      seen.push(request.header("x-test"));
      await new Promise((resolve) => setTimeout(resolve, 5));
      seen.push(request.header("x-test"), request.header("x-none"));
      const open = async () => {
        seen.push(request.header("x-test"));
        return bodyOf(bytes);
      };
      return bodyReplyOf(bytes, '"t"', { open });
    }),
  ]);
  await rawRequest(port, "/x", { headers: { "X-Test": "value" } });
  t.strictSame(seen, ["value", "value", undefined, "value"]);
});

t.test("a reply that cannot be sent is 500, not a broken answer", async (t) => {
  for (const reply of [
    bodyReplyOf(bytes, '"t"\r\nX: y'),
    bodyReplyOf(bytes, '"é"'),
    bodyReplyOf(bytes, '"t"', { contentType: "a\nb" }),
    bodyReplyOf(bytes, '"t"', { open: async () => bodyOf(bytes, [["X Y", "z"]]) }),
    undefined as unknown as BodyReply,
    { kind: "else" } as unknown as BodyReply,
  ]) {
    const answer = await ask(t, reply);
    t.equal(answer.status, 500);
    t.notOk("x" in answer.headers);
  }
});

const text = JSON.stringify(Array.from({ length: 20_000 }, (_, i) => `entry ${i % 100}`));
const large = createDocument(text, "application/json");
const small = createDocument("{}", "application/json");
const empty = createDocument("", "text/plain");
const routes = [
  routeOf("/large", () => ({ kind: "document", document: large, cacheControl: "public, max-age=60" })),
  routeOf("/small", async () => ({ kind: "document", document: small })),
  routeOf("/empty", () => ({ kind: "document", document: empty })),
];

t.test("sends a document whole, with its headers", async (t) => {
  const { port } = await serveRoutes(t, routes);
  const answer = await rawRequest(port, "/large");
  t.equal(answer.status, 200);
  t.equal(answer.body.toString(), text);
  t.match(answer.headers, {
    etag: large.etag,
    "cache-control": "public, max-age=60",
    "content-type": "application/json",
    "accept-ranges": "bytes",
    vary: "Accept-Encoding",
    "content-length": String(text.length),
  });
  t.notOk("content-encoding" in answer.headers);
  const other = await rawRequest(port, "/small");
  t.equal(other.headers["cache-control"], "public, max-age=0, must-revalidate");
  t.strictSame(jsonOf(other), {});
  t.equal((await rawRequest(port, "/empty")).headers["content-length"], "0");
});

t.test("sends it compressed to who accepts that, under an ETag of its own", async (t) => {
  const { port } = await serveRoutes(t, routes);
  for (const [accept, coding, suffix, decode] of [
    ["gzip, br", "br", "-br", brotliDecompressSync],
    ["gzip", "gzip", "-gz", gunzipSync],
  ] as const) {
    for (const again of ["first", "again"]) {
      const answer = await rawRequest(port, "/large", { headers: { "Accept-Encoding": accept } });
      t.equal(answer.headers["content-encoding"], coding, again);
      t.equal(answer.headers.etag, large.etag.replace(/"$/, `${suffix}"`));
      t.equal(answer.headers.vary, "Accept-Encoding");
      t.equal(decode(answer.body).toString(), text);
      const head = await rawRequest(port, "/large", {
        method: "HEAD",
        headers: { "Accept-Encoding": accept },
      });
      t.strictSame({ ...head.headers, date: "" }, { ...answer.headers, date: "" });
    }
  }
  const answer = await rawRequest(port, "/small", { headers: { "Accept-Encoding": "gzip, br" } });
  t.notOk("content-encoding" in answer.headers, "not what is small");
});

t.test("answers 304 to who has the form it would get", async (t) => {
  const { port } = await serveRoutes(t, routes);
  const br = large.etag.replace(/"$/, '-br"');
  for (const [headers, status] of [
    [{ "If-None-Match": large.etag }, 304],
    [{ "If-None-Match": `"x", W/${large.etag}` }, 304],
    [{ "If-None-Match": "*" }, 304],
    [{ "If-None-Match": '"x"' }, 200],
    [{ "If-None-Match": large.etag, "Accept-Encoding": "br" }, 200],
    [{ "If-None-Match": br, "Accept-Encoding": "br" }, 304],
    [{ "If-None-Match": br }, 200],
    [{ "If-None-Match": large.etag, Range: "bytes=0-1" }, 304],
    [{ "If-None-Match": large.etag, "If-Match": '"x"' }, 412],
    [{ "If-Modified-Since": new Date().toUTCString() }, 200],
  ] as const) {
    const answer = await rawRequest(port, "/large", { headers });
    t.equal(answer.status, status, JSON.stringify(headers));
    if (status === 304) {
      t.match(answer.headers, {
        etag: /^".+"$/,
        "cache-control": "public, max-age=60",
        vary: "Accept-Encoding",
      });
      t.notOk("content-length" in answer.headers);
      t.notOk("content-type" in answer.headers);
    }
  }
});

t.test("If-Match holds for any form of the document", async (t) => {
  const { port } = await serveRoutes(t, routes);
  for (const tag of [large.etag, large.etag.replace(/"$/, '-gz"'), "*"]) {
    t.equal((await rawRequest(port, "/large", { headers: { "If-Match": tag } })).status, 200, tag);
  }
  const refused = await rawRequest(port, "/large", { headers: { "If-Match": `W/${large.etag}` } });
  t.equal(refused.status, 412);
  t.match(jsonOf(refused), { detail: /If-Match/ });
});

t.test("sends parts, never compressed", async (t) => {
  const { port } = await serveRoutes(t, routes);
  const total = text.length;
  for (const [range, start, end] of [
    ["bytes=0-99", 0, 99],
    ["bytes=100-", 100, total - 1],
    ["bytes=-5", total - 5, total - 1],
    [`bytes=5-${total * 2}`, 5, total - 1],
  ] as const) {
    const answer = await rawRequest(port, "/large", {
      headers: { Range: range, "Accept-Encoding": "br, gzip" },
    });
    t.equal(answer.status, 206, range);
    t.equal(answer.headers["content-range"], `bytes ${start}-${end}/${total}`);
    t.equal(answer.body.toString(), text.slice(start, end + 1));
    t.equal(answer.headers.etag, large.etag);
    t.match(answer.headers, { "cache-control": /./, vary: "Accept-Encoding", "accept-ranges": "bytes" });
    t.notOk("content-encoding" in answer.headers);
  }
  for (const [path, length] of [
    ["/large", total],
    ["/empty", 0],
  ] as const) {
    const answer = await rawRequest(port, path, { headers: { Range: `bytes=${length}-` } });
    t.equal(answer.status, 416);
    t.equal(answer.headers["content-range"], `bytes */${length}`);
    t.match(jsonOf(answer), { detail: /range/i });
  }
});

t.test("sends the whole where a range does not hold", async (t) => {
  const { port } = await serveRoutes(t, routes);
  for (const headers of [
    { Range: "bytes=0-1,5-6" },
    { Range: "lines=0-1" },
    { Range: "bytes=x" },
    { Range: "bytes=0-1", "If-Range": '"other"' },
    { Range: "bytes=0-1", "If-Range": new Date().toUTCString() },
  ]) {
    const answer = await rawRequest(port, "/large", { headers });
    t.equal(answer.status, 200, JSON.stringify(headers));
    t.equal(answer.body.byteLength, text.length);
  }
  const held = await rawRequest(port, "/large", { headers: { Range: "bytes=0-1", "If-Range": large.etag } });
  t.equal(held.status, 206);
  const head = await rawRequest(port, "/large", { method: "HEAD", headers: { Range: "bytes=0-1" } });
  t.equal(head.status, 200, "HEAD has no ranges");
  t.equal(head.headers["content-length"], String(text.length));
});

const TEXT = "the same words again and again. ".repeat(200);

t.test("has a strong ETag of content and content type, the same each time", async (t) => {
  const { etag } = createDocument("abc", "text/plain");
  t.match(etag, /^"[A-Za-z0-9_-]{22}"$/);
  t.equal(createDocument(Buffer.from("abc"), "text/plain").etag, etag);
  t.equal(createDocument("{}", "application/json").etag, '"L4mWaPQEDXuIIrUBmUTv2A"', "on every machine");
  t.not(createDocument("abd", "text/plain").etag, etag);
  t.not(createDocument("abc", "text/html").etag, etag);
});

t.test("compresses once, however many ask, and keeps what came out", async (t) => {
  const document = createDocument(TEXT, "text/plain");
  const [first, second] = await Promise.all([document.encoded("br"), document.encoded("br")]);
  t.ok(first !== undefined && first === second);
  t.equal(document.encoded("br"), first, "at hand");
  const gzip = await document.encoded("gzip");
  t.equal(brotliDecompressSync(first ?? "").toString(), TEXT);
  t.equal(gunzipSync(gzip ?? "").toString(), TEXT);
});

t.test("does not compress what is small, or gains nothing", async (t) => {
  const small = createDocument("a".repeat(1024), "text/plain");
  t.equal(await small.encoded("br"), undefined);
  const noise = createDocument(randomBytes(5000), "application/octet-stream");
  t.equal(await noise.encoded("gzip"), undefined);
  t.equal(noise.encoded("gzip"), undefined, "nor tried again");
});

t.test("is the same made of pieces", async (t) => {
  for (const text of ["", "abc", "grün ".repeat(50_000), "\u{1f30a}".repeat(100_000)]) {
    const whole = createDocument(text, "text/plain");
    const pieces = text.match(/.{1,700}/gsu) ?? [];
    const made = runNow(documentSteps([undefined, ...pieces, undefined], "text/plain"));
    t.equal(made.etag, whole.etag);
    t.equal(Buffer.compare(made.bytes, whole.bytes), 0);
    t.equal(made.contentType, "text/plain");
  }
});
