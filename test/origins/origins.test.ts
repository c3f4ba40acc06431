import { once } from "node:events";
import { get, type IncomingMessage, request } from "node:http";
import { get as getTls } from "node:https";
import t from "tap";
import { parseListing } from "../../src/stores/s3-store.js";
import { checkS3Origin, ODD_KEYS } from "../support/origins/check-s3-origin.js";
import type { Fault } from "../support/origins/fault.js";
import { startFaultyOrigin } from "../support/origins/faulty-origin.js";
import { startS3Origin } from "../support/origins/s3-origin.js";
import { FIRST } from "../support/servers/tls-pairs.js";
import { makeDirectory, writeFiles } from "../support/write-store.js";

const TEXT = "0123456789";

interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

/** Rejects if the answer is cut short. */
async function ask(url: string, headers: Record<string, string> = {}, method = "GET"): Promise<Answer> {
  const asking = request(url, { method, headers, agent: false });
  // Bytes behind an answer are an error of the request, after its end.
  asking.on("error", () => {});
  asking.end();
  const [answer] = (await once(asking, "response")) as [IncomingMessage];
  const chunks = await answer.toArray();
  return {
    status: answer.statusCode ?? 0,
    headers: answer.headers,
    body: Buffer.concat(chunks).toString("latin1"),
  };
}

t.test("serves objects with validators, ranges and conditions", async (t) => {
  const { url } = await startFaultyOrigin(t, { objects: { "a b/é": TEXT, empty: "" } });
  const path = `${url}/a%20b/%C3%A9`;
  const whole = await ask(path);
  const etag = whole.headers.etag ?? "";
  const modified = whole.headers["last-modified"] ?? "";
  t.match(whole, { status: 200, body: TEXT, headers: { "content-length": "10", etag: /^".+"$/ } });
  t.match(await ask(path, {}, "HEAD"), { status: 200, body: "", headers: { "content-length": "10", etag } });
  const ranges = {
    "bytes=0-0": "0",
    "bytes=2-4": "234",
    "bytes=8-": "89",
    "bytes=8-99": "89",
    "bytes=-3": "789",
    "bytes=-99": TEXT,
  };
  for (const [range, body] of Object.entries(ranges)) {
    const start = TEXT.indexOf(body);
    const total = `bytes ${start}-${start + body.length - 1}/10`;
    t.match(await ask(path, { range }), { status: 206, body, headers: { "content-range": total } }, range);
  }
  for (const range of ["bytes=10-", "bytes=-0", "bytes=12-13"]) {
    t.match(await ask(path, { range }), { status: 416, headers: { "content-range": "bytes */10" } }, range);
  }
  t.match(await ask(`${url}/empty`, { range: "bytes=0-" }), { status: 416 });
  t.match(await ask(path, { range: "bytes=0-1,3-4" }), { status: 200, body: TEXT });
  const conditions: [Record<string, string>, number][] = [
    [{ "if-match": etag }, 200],
    [{ "if-match": `"x", ${etag}`, range: "bytes=0-1" }, 206],
    [{ "if-match": '"x"', range: "bytes=0-1" }, 412],
    [{ "if-none-match": etag }, 304],
    [{ "if-none-match": '"x"' }, 200],
    [{ "if-modified-since": modified }, 304],
    [{ "if-unmodified-since": modified }, 200],
    [{ "if-unmodified-since": new Date(0).toUTCString() }, 412],
    [{ "if-range": '"x"', range: "bytes=0-1" }, 200],
  ];
  for (const [headers, status] of conditions) {
    t.equal((await ask(path, headers)).status, status, JSON.stringify(headers));
  }
  t.equal((await ask(`${url}/absent`)).status, 404);
});

t.test("serves the files of a directory as they are", async (t) => {
  const directory = await makeDirectory(t);
  await writeFiles(directory, { "a/b.txt": "one" });
  const { url } = await startFaultyOrigin(t, { directory });
  const first = await ask(`${url}/a/b.txt`);
  await writeFiles(directory, { "a/b.txt": "two" });
  const second = await ask(`${url}/a/b.txt`);
  t.same([first.body, second.body], ["one", "two"]);
  t.not(first.headers.etag, second.headers.etag);
  t.equal((await ask(`${url}/a`)).status, 404);
});

t.test("counts requests, those at once and connections", async (t) => {
  const origin = await startFaultyOrigin(t, { objects: { a: TEXT }, delay: 5 });
  await Promise.all([ask(`${origin.url}/a`), ask(`${origin.url}/a`), ask(`${origin.url}/b`, {}, "HEAD")]);
  t.same([origin.count(), origin.maxInFlight(), origin.sockets()], [3, 3, 3]);
  t.same(
    [origin.count({ method: "GET" }), origin.count({ key: /b/ }), origin.count({ status: 200 })],
    [2, 1, 2],
  );
  t.same(
    origin.requests.map(({ before }) => before),
    [0, 1, 0],
  );
  origin.resetCounts();
  t.equal(origin.count(), 0);
});

t.test("fails as it is told", async (t) => {
  const origin = await startFaultyOrigin(t, { objects: { a: TEXT } });
  const etag = (await ask(`${origin.url}/a`)).headers.etag;
  const faults: [Fault, Record<string, unknown>][] = [
    [
      { status: 503, retryAfter: "7" },
      { status: 503, headers: { "retry-after": "7" } },
    ],
    [{ status: 429 }, { status: 429, headers: { "retry-after": undefined } }],
    [{ code: "SlowDown" }, { status: 503, body: /<Code>SlowDown<\/Code>/ }],
    [{ redirect: "http://elsewhere/" }, { status: 302, headers: { location: "http://elsewhere/" } }],
    [{ html: true }, { status: 200, body: /^<!DOCTYPE html>/ }],
    [{ ignoreRange: true }, { status: 200, body: TEXT, headers: { "content-range": undefined } }],
    [
      { contentRange: "bytes 0-1/10" },
      { status: 206, body: "12", headers: { "content-range": "bytes 0-1/10" } },
    ],
    [{ contentRange: null }, { status: 206, body: "12", headers: { "content-range": undefined } }],
    [{ etag: '"other"' }, { status: 206, headers: { etag: '"other"' } }],
    [{ etag: null, lastModified: null }, { headers: { etag: undefined, "last-modified": undefined } }],
    [{ etag: `W/${etag}` }, { status: 206, headers: { etag: `W/${etag}` } }],
    [{ object: { bytes: Buffer.from("abcdefghij"), etag: '"2"' } }, { body: "bc", headers: { etag: '"2"' } }],
    [{ gzip: true }, { headers: { "content-encoding": "gzip" }, body: /^.\x8b/s }],
    [
      { chunked: true },
      { body: "12", headers: { "content-length": undefined, "transfer-encoding": "chunked" } },
    ],
    [{ trickle: { bytes: 1, ms: 1 } }, { body: "12", status: 206 }],
    [{ delay: 1 }, { body: "12", status: 206 }],
  ];
  for (const [fault, expected] of faults) {
    origin.setFault(() => fault);
    t.match(await ask(`${origin.url}/a`, { range: "bytes=1-2" }), expected, JSON.stringify(fault));
  }
  for (const fault of [{ cutAfter: 1 }, { lengthError: 3 }, { disconnect: true }] satisfies Fault[]) {
    origin.setFault(() => fault);
    await t.rejects(ask(`${origin.url}/a`), { code: "ECONNRESET" }, JSON.stringify(fault));
  }
  origin.setFault(() => ({ lengthError: -3 }));
  t.match(await ask(`${origin.url}/a`), { body: TEXT.slice(0, 7) });
  origin.setFault(({ method }) => (method === "HEAD" ? { lengthError: 3 } : undefined));
  t.match(await ask(`${origin.url}/a`, {}, "HEAD"), { headers: { "content-length": "13" } });
  t.match(await ask(`${origin.url}/a`), { body: TEXT }, "and only then");
});

t.test("does not answer, and sees that the client has gone", async (t) => {
  for (const hang of ["before-headers", "after-headers"] as const) {
    const origin = await startFaultyOrigin(t, { objects: { a: TEXT }, fault: () => ({ hang }) });
    const asking = get(`${origin.url}/a`);
    asking.on("error", () => {});
    await origin.requested({ key: "a" });
    if (hang === "after-headers") {
      const [answer] = await once(asking, "response");
      answer.on("error", () => {});
      t.equal(answer.headers["content-length"], "10");
    }
    asking.destroy();
    await origin.requests[0]?.closed;
    t.pass(hang);
  }
});

t.test("speaks TLS", async (t) => {
  const origin = await startFaultyOrigin(t, { objects: { a: TEXT }, tls: FIRST });
  const asking = getTls(`${origin.url}/a`, { ca: FIRST.cert, agent: false });
  const [answer] = (await once(asking, "response")) as [IncomingMessage];
  t.equal(Buffer.concat(await answer.toArray()).toString(), TEXT);
  t.equal(origin.sockets(), 1);
});

t.test("plays a bucket, in pages", async (t) => {
  const keys = ["x/.zgroup", "x/a b+c/0", "x/a b+c/1", "x/é", "x/z/0", "y"];
  const origin = await startFaultyOrigin(t, {
    objects: Object.fromEntries(keys.map((key) => [key, TEXT])),
    s3: { bucket: "data", pageSize: 2 },
  });
  t.match(await ask(`${origin.url}/data/x/a%20b%2Bc/0`), { status: 200, body: TEXT });
  const found: string[] = [];
  let token: string | undefined;
  do {
    const next = token === undefined ? "" : `&continuation-token=${encodeURIComponent(token)}`;
    const answer = await ask(
      `${origin.url}/data/?list-type=2&delimiter=%2F&encoding-type=url&prefix=x%2F${next}`,
    );
    const page = parseListing(Buffer.from(answer.body, "latin1").toString());
    found.push(...page.objects, ...page.prefixes);
    token = page.continuationToken;
  } while (token !== undefined);
  t.same(found.sort(), ["x/.zgroup", "x/a b+c/", "x/z/", "x/é"]);
  t.equal(origin.count({ key: "" }), 2);
  t.match(await ask(`${origin.url}/data/absent`), { status: 404, body: /<Code>NoSuchKey</ });
  t.match(await ask(`${origin.url}/other/x`), { status: 404, body: /<Code>NoSuchBucket</ });
});

t.test("plays a bucket that lets only some in", async (t) => {
  const { url } = await startFaultyOrigin(t, {
    objects: { a: TEXT },
    s3: {
      bucket: "data",
      mayList: false,
      authorize: ({ accessKeyId, sessionToken }) =>
        accessKeyId !== "KEY" ? "InvalidAccessKeyId" : sessionToken === "old" ? "ExpiredToken" : undefined,
    },
  });
  const authorization = "AWS4-HMAC-SHA256 Credential=KEY/20260102/us-east-1/s3/aws4_request";
  t.match(await ask(`${url}/data/a`), { status: 403, body: /InvalidAccessKeyId/ });
  t.match(await ask(`${url}/data/a`, { authorization }), { status: 200, body: TEXT });
  t.match(await ask(`${url}/data/a?X-Amz-Credential=KEY%2F1`), { status: 200, body: TEXT });
  t.match(await ask(`${url}/data/a`, { authorization, "x-amz-security-token": "old" }), {
    status: 400,
    body: /ExpiredToken/,
  });
  t.match(await ask(`${url}/data/absent`, { authorization }), { status: 403, body: /AccessDenied/ });
  t.match(await ask(`${url}/data/?list-type=2`, { authorization }), { status: 403, body: /AccessDenied/ });
});

t.test("fauxqs is read as S3 is, with and without credentials", async (t) => {
  const { endpoint, put, remove } = await startS3Origin(t);
  for (const key of ODD_KEYS) await put("data", key, key);
  await checkS3Origin(t, endpoint, "data", undefined);
  await checkS3Origin(t, endpoint, "data", { accessKeyId: "KEY", secretAccessKey: "SECRET" });
  await remove("data", "a");
  t.equal((await fetch(`${endpoint}/data/a`)).status, 404);
});
