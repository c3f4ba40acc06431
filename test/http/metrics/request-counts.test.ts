import t from "tap";
import { ZpublishError } from "../../../src/errors.js";
import { openConnection, rawRequest, requestText } from "../../support/servers/raw-request.js";
import { bodyReplyOf, routeOf, startTestServer } from "../../support/servers/serve-routes.js";

const bytes = Buffer.from("0123456789");
const routes = [
  routeOf("/chunk/{key}", () => ({ ...bodyReplyOf(bytes, '"c"') }), "chunk"),
  routeOf("/dir/{name}", () => ({ kind: "redirect", to: "with-slash" })),
  routeOf("/broken", () => {
    throw new ZpublishError("corrupt-chunk", "no");
  }),
];

t.test("requests are counted by route template, method and status, kept replies too", async (t) => {
  const { port, server } = await startTestServer(t, routes);
  const { counts } = server.metrics;
  for (const path of ["/chunk/0", "/chunk/0", "/chunk/0", "/chunk/0", "/chunk/1"])
    await rawRequest(port, path);
  await rawRequest(port, "/chunk/0", { method: "HEAD" });
  await rawRequest(port, "/chunk/0", { headers: { "If-None-Match": '"c"' } });
  await rawRequest(port, "/chunk/0", { headers: { Range: "bytes=0-3" } });
  await rawRequest(port, "/chunk/0", { headers: { Range: "bytes=99-" } });
  await rawRequest(port, "/dir/a");
  await rawRequest(port, "/broken");
  for (const path of ["/nowhere", "/chunk/%ff", "/also/nowhere"]) await rawRequest(port, path);
  await rawRequest(port, "/chunk/0", { method: "OPTIONS" });
  await rawRequest(port, "/chunk/0", { method: "PROPFIND" });

  const chunk = counts.of("/chunk/{key}");
  t.equal(chunk.ok, 5);
  t.strictSame([...chunk.requests.HEAD], [["200 OK", 1]]);
  t.strictSame(Object.fromEntries(chunk.requests.GET), {
    "304 Not Modified": 1,
    "206 Partial Content": 1,
    "416 Range Not Satisfiable": 1,
  });
  t.equal(
    chunk.bytes,
    5 * 10 +
      4 +
      JSON.stringify({ detail: "The range is not satisfiable: expected one that begins within 10 bytes" })
        .length,
  );
  t.equal(chunk.brokenOff, 0);
  const sum = (values: Iterable<number>) => [...values].reduce((total, value) => total + value, 0);
  t.equal(sum(chunk.whole.counts), 9);
  t.equal(sum(chunk.firstByte.counts), 9);
  t.strictSame([...counts.of("/dir/{name}").requests.GET], [["301 Moved Permanently", 1]]);
  t.strictSame([...counts.of("/broken").requests.GET], [["500 Internal Server Error", 1]]);
  t.strictSame(Object.fromEntries(counts.unmatched.requests.GET), {
    "404 Not Found": 2,
    "422 Unprocessable Content": 1,
  });
  t.strictSame([...counts.unmatched.requests.OPTIONS], [["204 No Content", 1]]);
  t.strictSame([...counts.unmatched.requests.other], [["405 Method Not Allowed", 1]]);
  t.strictSame(
    [...counts.all()].map(({ route }) => route).toSorted(),
    ["/broken", "/chunk/{key}", "/dir/{name}", "unmatched"],
    "no label comes from a request",
  );
});

t.test("an answer that its client does not take to the end is broken off", async (t) => {
  const big = Buffer.alloc(32 * 2 ** 20);
  const { port, server } = await startTestServer(t, [
    routeOf("/big", () => bodyReplyOf(big, '"b"'), "chunk"),
  ]);
  const connection = await openConnection(port);
  connection.socket.once("data", () => connection.socket.destroy());
  connection.send(requestText("/big"));
  const counts = server.metrics.counts.of("/big");
  while (counts.brokenOff === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  t.equal(counts.bytes, 0);
  t.equal(counts.ok, 1, "its status was 200");
  t.equal((await rawRequest(port, "/big")).body.byteLength, big.byteLength);
  t.equal(counts.bytes, big.byteLength);
});
