import t from "tap";
import { ZpublishError } from "../../src/errors.js";
import { openConnection, rawRequest, requestText } from "../support/servers/raw-request.js";
import { bodyOf, bodyReplyOf, routeOf, startTestServer } from "../support/servers/serve-routes.js";

const overloaded = new ZpublishError("overloaded", "no more chunks may wait");

function gate() {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
}

t.test("pages are turned away before chunks, chunks at the last, and who lives is always told", async (t) => {
  const { open, opened } = gate();
  const routes = [
    routeOf("/page", () => bodyReplyOf(Buffer.from("page"), '"p"')),
    routeOf("/chunk", () => bodyReplyOf(Buffer.from("chunk"), '"c"'), "chunk"),
    routeOf(
      "/full",
      () => bodyReplyOf(Buffer.from(""), '"f"', { open: () => Promise.reject(overloaded) }),
      "chunk",
    ),
    routeOf(
      "/held",
      () =>
        bodyReplyOf(Buffer.from(""), '"h"', {
          async open() {
            await opened;
            return bodyOf(Buffer.from("held"));
          },
        }),
      "chunk",
    ),
  ];
  const { port, server, lines } = await startTestServer(t, routes, {
    limits: { maxRequestsInFlight: 6, maxPagesInFlight: 3 },
    endpoints: [
      {
        path: "/healthz",
        isOpen: true,
        answer: () => ({ status: "200 OK", contentType: "text/plain", body: "" }),
      },
    ],
  });
  const held: ReturnType<typeof rawRequest>[] = [];
  const hold = async (count: number) => {
    for (; held.length < count; ) held.push(rawRequest(port, "/held"));
    while (server.stats.requestsInFlight < count) await rawRequest(port, "/healthz");
  };
  const statuses = async () =>
    Promise.all(["/page", "/chunk", "/healthz"].map(async (path) => (await rawRequest(port, path)).status));

  t.strictSame(await statuses(), [200, 200, 200]);
  t.equal((await rawRequest(port, "/full")).status, 503);
  t.match(server.metrics.rejections.counts, { page: 0, chunk: 1 }, "wherever there was no room");
  await hold(4);
  const shed = await rawRequest(port, "/page");
  t.equal(shed.status, 503);
  t.match(shed.headers, { "retry-after": /^[123]$/, "access-control-allow-origin": "*" });
  t.equal((await rawRequest(port, "/chunk")).status, 200);
  await hold(6);
  t.strictSame(await statuses(), [503, 503, 200]);
  t.match(server.metrics.rejections.counts, { page: 2, chunk: 2 });
  t.equal(lines.filter(({ code }) => code === "overloaded").length < 3, true, "not a line for each");
  t.match(
    lines.find(({ code }) => code === "overloaded"),
    { level: 40 },
  );

  open();
  t.ok(
    (await Promise.all(held)).every(({ status }) => status === 200),
    "what was let in is answered",
  );
  t.strictSame(await statuses(), [200, 200, 200]);
});

t.test("pages are turned away where no more chunks may wait to be made", async (t) => {
  let isSaturated = false;
  const routes = [
    routeOf("/page", () => bodyReplyOf(Buffer.from("page"), '"p"')),
    routeOf("/chunk", () => bodyReplyOf(Buffer.from("chunk"), '"c"'), "chunk"),
  ];
  const { port } = await startTestServer(t, routes, { limits: { isSaturated: () => isSaturated } });
  const connection = await openConnection(port);
  t.teardown(() => connection.socket.destroy());
  const ask = async (path: string) => {
    connection.send(requestText(path));
    return (await connection.answer()).status;
  };
  isSaturated = true;
  t.strictSame([await ask("/page"), await ask("/chunk")], [503, 200]);
  isSaturated = false;
  t.strictSame([await ask("/page"), await ask("/chunk")], [200, 200]);
});

t.test("more pages than requests are no more than requests", async (t) => {
  const never = routeOf("/never", () => new Promise(() => undefined));
  const routes = [never, routeOf("/page", () => bodyReplyOf(Buffer.from("page"), '"p"'))];
  const { port, server } = await startTestServer(t, routes, {
    limits: { maxRequestsInFlight: 1, maxPagesInFlight: 100 },
  });
  const connection = await openConnection(port);
  connection.send(requestText("/never"));
  while (server.stats.requestsInFlight === 0) await new Promise(setImmediate);
  t.equal((await rawRequest(port, "/page")).status, 503);
  connection.socket.destroy();
});
