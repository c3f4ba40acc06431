import t from "tap";
import { ZpublishError } from "../../src/errors.js";
import type { BodyReply } from "../../src/http/reply.js";
import { jsonOf, type RawRequest, rawRequest } from "../support/servers/raw-request.js";
import { bodyOf, bodyReplyOf, routeOf, startTestServer } from "../support/servers/serve-routes.js";

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

async function ask(t: Parameters<typeof startTestServer>[0], reply: BodyReply, request: RawRequest = {}) {
  const { port, lines } = await startTestServer(t, [routeOf("/chunk", () => reply, "chunk")]);
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

t.test("HEAD has the headers of the whole body, and no ranges", async (t) => {
  const { calls, reply } = counted();
  const answer = await ask(t, reply, { method: "HEAD", headers: { Range: "bytes=0-1" } });
  t.equal(answer.status, 200);
  t.match(answer.headers, { "content-length": "1000", "x-cache": "MISS" });
  t.equal(answer.body.length, 0);
  t.strictSame(calls, { open: 1 });
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
  const { port } = await startTestServer(t, [
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
  const { port } = await startTestServer(t, [
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
