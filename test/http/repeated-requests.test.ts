import fc from "fast-check";
import t from "tap";
import { createDocument } from "../../src/http/create-document.js";
import { type DocumentReply, type Reply, RepresentationHead } from "../../src/http/reply.js";
import { effort } from "../support/effort.js";
import { type RawAnswer, rawRequest } from "../support/servers/raw-request.js";
import { bodyOf, bodyReplyOf, routeOf, startTestServer } from "../support/servers/serve-routes.js";

const bytes = Uint8Array.from({ length: 40_000 }, (_, i) => (i * 7) % 256);

t.test("a path that is asked for again reaches its handler with the same parameters", async (t) => {
  let calls = 0;
  const { port } = await startTestServer(t, [
    routeOf("/counted/{name}", ({ params, query }) => {
      calls += 1;
      return { kind: "document", document: createDocument(`${params.name} ${query} ${calls}`, "text/plain") };
    }),
  ]);
  const ask = async (path: string) => (await rawRequest(port, path)).body.toString();
  t.equal(await ask("/counted/a?x"), "a x 1");
  t.equal(await ask("/counted/a?y"), "a y 2");
  t.equal(await ask("/counted/b?x"), "b x 3");
});

t.test("any request is answered alike by a reply that is given again and by one just made", async (t) => {
  const document = createDocument(JSON.stringify({ text: "a text ".repeat(400) }), "application/json");
  const replies: Readonly<Record<string, Reply>> = {
    body: bodyReplyOf(bytes, '"tag"', { cacheControl: "public, max-age=60" }),
    document: { kind: "document", document } satisfies DocumentReply,
    "at-hand": bodyReplyOf(bytes, '"hand"', {
      open: () => bodyOf(bytes, Object.freeze([["X-Cache", "HIT"] as const])),
    }),
  };
  const repeatable = (reply: Reply): Reply =>
    reply.kind === "body" ? { ...reply, head: new RepresentationHead(reply) } : reply;
  const repeat = (reply: Reply) => {
    const repeated = repeatable(reply);
    return () => repeated;
  };
  for (const corsOrigin of ["*", "https://a.example,https://b.example", ""]) {
    const { port } = await startTestServer(
      t,
      Object.entries(replies).flatMap(([name, reply]) => [
        routeOf(`/made/${name}`, () => ({ ...reply })),
        routeOf(`/kept/${name}`, repeat(reply)),
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
