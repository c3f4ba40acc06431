import { brotliDecompressSync, gunzipSync } from "node:zlib";
import t from "tap";
import { createDocument } from "../../src/http/create-document.js";
import { jsonOf, openConnection, rawRequest, requestText } from "../support/servers/raw-request.js";
import { routeOf, startTestServer } from "../support/servers/serve-routes.js";

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
  const { port } = await startTestServer(t, routes);
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
  const { port } = await startTestServer(t, routes);
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
  const { port } = await startTestServer(t, routes);
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
  const { port } = await startTestServer(t, routes);
  for (const tag of [large.etag, large.etag.replace(/"$/, '-gz"'), "*"]) {
    t.equal((await rawRequest(port, "/large", { headers: { "If-Match": tag } })).status, 200, tag);
  }
  const refused = await rawRequest(port, "/large", { headers: { "If-Match": `W/${large.etag}` } });
  t.equal(refused.status, 412);
  t.match(jsonOf(refused), { detail: /If-Match/ });
});

t.test("sends parts, never compressed", async (t) => {
  const { port } = await startTestServer(t, routes);
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
  const { port } = await startTestServer(t, routes);
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

t.test("compresses a document that many ask for at the same time once", async (t) => {
  const document = createDocument(text, "application/json");
  let calls = 0;
  const encoded = (coding: "br" | "gzip") => {
    calls += 1;
    return document.encoded(coding);
  };
  const counted = { ...document, encoded };
  const { port } = await startTestServer(t, [routeOf("/x", () => ({ kind: "document", document: counted }))]);
  const connections = await Promise.all(Array.from({ length: 5 }, () => openConnection(port)));
  for (const { send } of connections) send(requestText("/x", { headers: { "Accept-Encoding": "br" } }));
  const bodies = await Promise.all(connections.map(({ answer }) => answer()));
  for (const { body } of bodies) t.equal(brotliDecompressSync(body).toString(), text);
  t.ok(calls >= 1);
  for (const { socket } of connections) socket.destroy();
});
