import fc from "fast-check";
import t from "tap";
import { ZpublishError } from "../../src/errors.js";
import { createDocument } from "../../src/http/create-document.js";
import type { BodyReply, DocumentReply, Reply } from "../../src/http/reply.js";
import { type RawAnswer, rawRequest } from "./raw-request.js";
import { bodyOf, bodyReplyOf, routeOf, startTestServer } from "./start-test-server.js";

const bytes = Uint8Array.from({ length: 40_000 }, (_, i) => (i * 7) % 256);

t.test("a reply is given again while it is current, without router and handler", async (t) => {
  let calls = 0;
  let current = true;
  const { port } = await startTestServer(t, [
    routeOf("/counted/{name}", ({ params }) => {
      calls += 1;
      return bodyReplyOf(bytes, `"${params.name}-${calls}"`, { isCurrent: () => current });
    }),
  ]);
  const etag = async (path: string) => (await rawRequest(port, path)).headers.etag;
  t.equal(await etag("/counted/a"), '"a-1"');
  t.equal(await etag("/counted/a"), '"a-2"', "what is asked for once is not kept");
  t.equal(await etag("/counted/a"), '"a-2"');
  t.equal(await etag("/counted/b"), '"b-3"', "of its own path only");
  current = false;
  t.equal(await etag("/counted/a"), '"a-4"');
  current = true;
  t.equal(await etag("/counted/a"), '"a-4"', "the later one is kept");
  t.equal(calls, 4);
});

t.test("what is kept is let go when the server is told to", async (t) => {
  let calls = 0;
  const { port, server } = await startTestServer(t, [
    routeOf("/kept", () => {
      calls += 1;
      return bodyReplyOf(bytes, '"k"', { isCurrent: () => true });
    }),
  ]);
  for (let i = 0; i < 4; i++) await rawRequest(port, "/kept");
  t.equal(calls, 2);
  server.forgetReplies();
  await rawRequest(port, "/kept");
  t.equal(calls, 3);
});

t.test("what does not say that it is current is asked for each time", async (t) => {
  let calls = 0;
  const { port } = await startTestServer(t, [
    routeOf("/once", ({ query }) => {
      calls += 1;
      return { kind: "document", document: createDocument(`${query} ${calls}`, "text/plain") };
    }),
  ]);
  t.equal((await rawRequest(port, "/once?a")).body.toString(), "a 1");
  t.equal((await rawRequest(port, "/once?b")).body.toString(), "b 2");
});

t.test("a kept reply whose source changes is asked for anew", async (t) => {
  let version = 1;
  const { port } = await startTestServer(t, [
    routeOf("/changing", () => {
      const made = version;
      return bodyReplyOf(bytes, `"v${made}"`, {
        isCurrent: () => true,
        async open() {
          if (made !== version) throw new ZpublishError("source-changed", "changed");
          return bodyOf(bytes);
        },
      });
    }),
  ]);
  for (let i = 0; i < 2; i++) t.equal((await rawRequest(port, "/changing")).headers.etag, '"v1"');
  version = 2;
  const answer = await rawRequest(port, "/changing", { headers: { Range: "bytes=1-2" } });
  t.equal(answer.headers.etag, '"v2"');
  t.equal(answer.status, 206, "with the headers it came with");
});

t.test("a kept reply that fails is a failure, and the next request begins anew", async (t) => {
  let fails = false;
  let calls = 0;
  const { port } = await startTestServer(t, [
    routeOf("/failing", () => {
      calls += 1;
      return bodyReplyOf(bytes, '"x"', {
        isCurrent: () => true,
        async open() {
          if (fails) throw new ZpublishError("corrupt-chunk", "broken");
          return bodyOf(bytes);
        },
      });
    }),
  ]);
  for (let i = 0; i < 3; i++) t.equal((await rawRequest(port, "/failing")).status, 200);
  t.equal(calls, 2);
  fails = true;
  t.equal((await rawRequest(port, "/failing")).status, 500);
  fails = false;
  t.equal((await rawRequest(port, "/failing")).status, 200);
  t.equal(calls, 3);
});

t.test("a reply that came later is kept too", async (t) => {
  let calls = 0;
  const { port } = await startTestServer(t, [
    routeOf("/later", async () => {
      calls += 1;
      await new Promise((resolve) => setTimeout(resolve, 5));
      return bodyReplyOf(bytes, '"l"', { isCurrent: () => true });
    }),
  ]);
  for (let i = 0; i < 4; i++) t.equal((await rawRequest(port, "/later")).status, 200);
  t.equal(calls, 2);
});

t.test("any request is answered alike by a kept reply and by one just made", async (t) => {
  const document = createDocument(JSON.stringify({ text: "a text ".repeat(400) }), "application/json");
  const replies: Readonly<Record<string, Reply>> = {
    body: bodyReplyOf(bytes, '"tag"', { cacheControl: "public, max-age=60" }),
    document: { kind: "document", document } satisfies DocumentReply,
    "at-hand": bodyReplyOf(bytes, '"hand"', {
      atHand: () => bodyOf(bytes, Object.freeze([["X-Cache", "HIT"] as const])),
    }),
  };
  const keepable = (reply: Reply): Reply =>
    ({ ...reply, isCurrent: () => true }) as BodyReply | DocumentReply;
  for (const corsOrigin of ["*", "https://a.example,https://b.example", ""]) {
    const { port } = await startTestServer(
      t,
      Object.entries(replies).flatMap(([name, reply]) => [
        routeOf(`/made/${name}`, () => reply),
        routeOf(`/kept/${name}`, () => keepable(reply)),
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
      { numRuns: 60 },
    );
  }
});

function comparable({ status, headers, body }: RawAnswer) {
  return { status, headers: { ...headers, date: undefined }, body: body.toString("latin1") };
}

t.test("a body is released once, when it is sent, given up or not needed", async (t) => {
  let released = 0;
  let opened = 0;
  const { port } = await startTestServer(t, [
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
