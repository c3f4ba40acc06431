import { randomBytes } from "node:crypto";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import t from "tap";
import { runNow } from "../../src/event-loop/cooperative-task.js";
import { createDocument, documentSteps } from "../../src/http/create-document.js";

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
  t.equal(document.encodedNow("br"), null);
  const [first, second] = await Promise.all([document.encoded("br"), document.encoded("br")]);
  t.ok(first !== undefined && first === second);
  t.equal(document.encodedNow("br"), first);
  t.equal(document.encodedNow("gzip"), null, "the other coding is not made yet");
  const gzip = await document.encoded("gzip");
  t.equal(brotliDecompressSync(first ?? "").toString(), TEXT);
  t.equal(gunzipSync(gzip ?? "").toString(), TEXT);
});

t.test("does not compress what is small, or gains nothing", async (t) => {
  const small = createDocument("a".repeat(1024), "text/plain");
  t.equal(small.encodedNow("br"), undefined);
  t.equal(await small.encoded("br"), undefined);
  const noise = createDocument(randomBytes(5000), "application/octet-stream");
  t.equal(noise.encodedNow("gzip"), null);
  t.equal(await noise.encoded("gzip"), undefined);
  t.equal(noise.encodedNow("gzip"), undefined);
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
