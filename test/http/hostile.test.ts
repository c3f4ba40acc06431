import { setTimeout as delay } from "node:timers/promises";
import fc from "fast-check";
import t from "tap";
import { createDocument } from "../../src/http/create-document.js";
import { effort } from "../support/effort.js";
import { openConnection, rawRequest, requestText } from "../support/servers/raw-request.js";
import { bodyReplyOf, routeOf, startTestServer } from "../support/servers/serve-routes.js";

const PATIENCE_MS = 40;

const document = createDocument("x".repeat(3000), "application/json");
const routes = [
  routeOf("/", () => ({ kind: "document", document })),
  routeOf("/datasets/{dataset_id}", () => ({ kind: "redirect", to: "with-slash" })),
  routeOf("/datasets/{dataset_id}/", () => ({ kind: "document", document })),
  routeOf("/datasets/{dataset_id}/groups/{group_path:path}/keys", () => ({ kind: "document", document })),
  routeOf("/datasets/{dataset_id}/groups/{group_path:path}", () => ({ kind: "document", document })),
  routeOf(
    "/datasets/{dataset_id}/zarr/{var:path}/{chunk}",
    () => bodyReplyOf(document.bytes, '"t"'),
    "chunk",
  ),
];

const segment = fc.oneof(
  fc.constantFrom(
    "datasets",
    "x",
    "groups",
    "zarr",
    "keys",
    "",
    ".",
    "..",
    "%2e%2e",
    "..%2f",
    "%zz",
    "%ff",
    "%00",
    "é",
  ),
  fc.string({ unit: "binary-ascii" }).map(encodeURIComponent),
  fc.string({ unit: "grapheme" }),
  fc.uint8Array({ maxLength: 12 }).map((bytes) => Buffer.from(bytes).toString("latin1")),
);
const path = fc
  .tuple(
    fc.constantFrom("/", "/datasets/", "/datasets/x/zarr/", "/datasets/x/groups/"),
    fc.array(segment, { maxLength: 6 }),
  )
  .map(([start, segments]) => Buffer.from(start + segments.join("/"), "utf8").toString("latin1"));

const entityTags = fc.constantFrom('"t"', 'W/"t"', "*", '"', '"a", "t"', ",", document.etag, '"t" "t"');
const headerValue = fc
  .oneof(
    { weight: 1, arbitrary: fc.string({ unit: "binary-ascii" }) },
    { weight: 4, arbitrary: entityTags },
    { weight: 4, arbitrary: fc.string() },
  )
  .map((text) =>
    // What ends a line would be another header; uWebSockets.js refuses other control characters.
    Buffer.from(text.replace(/[\r\n]/g, " "), "utf8").toString("latin1"),
  );
const range = fc
  .tuple(
    fc.constantFrom("bytes=", "bytes ", "lines=", "bytes=-", ""),
    fc.string({ unit: fc.constantFrom(..."0123456789-, ax") }),
  )
  .map(([unit, text]) => unit + text);

/** The status of the answer; 0 where there is none: the connection is closed, or uWebSockets.js waits for more. */
async function statusOf(port: number, text: string, bodiless: boolean): Promise<number> {
  const connection = await openConnection(port);
  connection.send(text);
  const timeout = new AbortController();
  const { status } = await Promise.race([
    connection.answer(bodiless).catch(() => ({ status: 0 })),
    delay(PATIENCE_MS, { status: 0 }, { signal: timeout.signal }).catch(() => ({ status: 0 })),
  ]);
  timeout.abort();
  connection.socket.destroy();
  return status;
}

t.test("no path gets a 500, or takes the server down", async (t) => {
  const { port, lines } = await startTestServer(t, routes);
  await fc.assert(
    fc.asyncProperty(path, fc.constantFrom("GET", "HEAD", "OPTIONS", "POST"), async (path, method) => {
      const status = await statusOf(port, requestText(path, { method }), method === "HEAD");
      return [0, 200, 204, 301, 400, 404, 405, 422, 505].includes(status);
    }),
    { numRuns: effort(1_000) },
  );
  t.equal((await rawRequest(port, "/")).status, 200);
  t.notOk(lines.some((line) => line.level >= 40));
});

t.test("no header value gets a 500, or takes the server down", async (t) => {
  const { port, lines } = await startTestServer(t, routes);
  const names = ["If-None-Match", "If-Match", "If-Range", "Accept-Encoding", "Origin", "X-Any"];
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom("/", "/datasets/x/zarr/t/0.0", "/datasets/x"),
      fc.dictionary(fc.constantFrom(...names), headerValue, { maxKeys: 3 }),
      fc.option(range, { nil: undefined }),
      async (path, values, range) => {
        const headers = { ...values, ...(range === undefined ? {} : { Range: range }) };
        const status = await statusOf(port, requestText(path, { headers }), false);
        return [0, 200, 206, 301, 304, 400, 412, 416].includes(status);
      },
    ),
    { numRuns: effort(1_000) },
  );
  t.equal((await rawRequest(port, "/")).status, 200);
  t.notOk(lines.some((line) => line.level >= 40));
});
