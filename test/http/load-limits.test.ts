import { setTimeout as delay } from "node:timers/promises";
import t from "tap";
import { ZpublishError } from "../../src/errors.js";
import { type BodyTaker, createLoad } from "../../src/http/load-limits.js";
import { jsonOf, openConnection, rawRequest, requestText } from "../support/servers/raw-request.js";
import { bodyOf, bodyReplyOf, routeOf, serveRoutes } from "../support/servers/serve-routes.js";

const LIMITS = { maxRequestsInFlight: 3, maxPagesInFlight: 1, maxBodyBytesInFlight: 100 };

function begin(load: ReturnType<typeof createLoad>): BodyTaker {
  load.begin();
  return { bodyBytes: 0 };
}

t.test("lets bodies wait for room in order, and forgets nobody", async (t) => {
  const load = createLoad(LIMITS);
  const order: number[] = [];
  const first = begin(load);
  load.setBodyBytes(first, 150);
  const takers = [1, 2, 3, 4].map((number) => {
    const taker = begin(load);
    void load.reserve(taker, 60)?.then(() => order.push(number));
    return taker;
  });
  t.equal(load.stats.waiting, 4);
  load.end(takers[1] as BodyTaker);
  t.equal(load.stats.waiting, 3, "whoever goes away leaves nothing behind");
  load.end(first);
  await Promise.resolve();
  t.strictSame(order, [2, 1, 3], "the one that went away goes on to find that it is over");
  t.match(load.stats, { waiting: 1, bodyBytesInFlight: 120 });
  for (const index of [0, 2]) load.end(takers[index] as BodyTaker);
  await Promise.resolve();
  t.strictSame(order, [2, 1, 3, 4]);
  load.end(takers[3] as BodyTaker);
  t.match(load.stats, { waiting: 0, requestsInFlight: 0, bodyBytesInFlight: 0, requests: 5 });
  await load.idle();
});

t.test("keeps room for bodies that are being made", async (t) => {
  const load = createLoad(LIMITS);
  const [a, b, c] = [begin(load), begin(load), begin(load)];
  t.equal(load.reserve(a, 60), undefined);
  t.equal(load.reserve(b, 60), undefined);
  let letIn = false;
  void load.reserve(c, 60)?.then(() => {
    letIn = true;
  });
  t.equal(load.reserve(a, 60), undefined, "a request that is begun again has its room still");
  load.setBodyBytes(a, 40);
  await Promise.resolve();
  t.notOk(letIn, "100 bytes are taken");
  load.setBodyBytes(b, 1);
  await Promise.resolve();
  t.ok(letIn, "bodies that turn out smaller make room");
  t.equal(load.stats.bodyBytesInFlight, 101);
});

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
  const { port, server, lines } = await serveRoutes(t, routes, {
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
  t.match(server.metrics.logs.rejections, { page: 0, chunk: 1 }, "wherever there was no room");
  await hold(4);
  const shed = await rawRequest(port, "/page");
  t.equal(shed.status, 503);
  t.match(shed.headers, { "retry-after": /^[123]$/, "access-control-allow-origin": "*" });
  t.equal((await rawRequest(port, "/chunk")).status, 200);
  await hold(6);
  t.strictSame(await statuses(), [503, 503, 200]);
  t.match(server.metrics.logs.rejections, { page: 2, chunk: 2 });
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

const NEVER = new Promise<never>(() => undefined);

t.test(
  "a request whose answer does not begin in time is answered 503, and its work is not wanted any more",
  async (t) => {
    let client: AbortSignal | undefined;
    const { port, server, lines } = await serveRoutes(
      t,
      [
        routeOf("/page", () => NEVER),
        routeOf(
          "/chunk",
          () =>
            bodyReplyOf(Buffer.from(""), '"c"', {
              open({ signal }) {
                client = signal;
                return NEVER;
              },
            }),
          "chunk",
        ),
      ],
      { limits: { requestTimeoutMs: 50 } },
    );
    for (const path of ["/page", "/chunk"]) {
      const answer = await rawRequest(port, path);
      t.equal(answer.status, 503, path);
      t.match(answer.headers, { "retry-after": /^\d+$/, "cache-control": "no-cache" });
      const { id } = jsonOf(answer) as { id: string };
      t.match(lines.at(-1), { level: 50, code: "timed-out", id, path });
    }
    t.equal(client?.aborted, true);
    t.match(server.stats, { requestsInFlight: 0, waiting: 0 });
    t.equal(server.metrics.overdue.count, 2);
  },
);

t.test("those who wait for room are given up, too, and leave it to others", async (t) => {
  let letGo: () => void = () => undefined;
  const slow = routeOf(
    "/chunk/{n}",
    ({ params }) =>
      bodyReplyOf(Buffer.from("x"), '"c"', {
        open: async (request) => {
          await request.reserve(100);
          if (params.n === "0") await new Promise<void>((resolve) => (letGo = resolve));
          return bodyOf(Buffer.from("body"));
        },
      }),
    "chunk",
  );
  const { port, server } = await serveRoutes(t, [slow], {
    limits: { requestTimeoutMs: 100, maxBodyBytesInFlight: 50 },
  });
  const first = rawRequest(port, "/chunk/0");
  while (server.stats.bodyBytesInFlight === 0) await new Promise(setImmediate);
  const answers = await Promise.all([first, rawRequest(port, "/chunk/1"), rawRequest(port, "/chunk/2")]);
  t.ok(answers.every(({ status }) => status === 503 || status === 200));
  t.equal(answers[0].status, 503);
  t.equal((await rawRequest(port, "/chunk/3")).status, 200, "the room of those given up is free");
  letGo();
  t.match(server.stats, { requestsInFlight: 0, waiting: 0, bodyBytesInFlight: 0 });
});

t.test("an answer that has begun may take as long as it takes", async (t) => {
  const bytes = Buffer.alloc(64 * 2 ** 20, 7);
  const { port } = await serveRoutes(t, [routeOf("/big", () => bodyReplyOf(bytes, '"b"'), "chunk")], {
    limits: { requestTimeoutMs: 50 },
  });
  const connection = await openConnection(port);
  t.teardown(() => connection.socket.destroy());
  connection.socket.pause();
  connection.send(requestText("/big"));
  await delay(300);
  connection.socket.resume();
  const answer = await connection.answer();
  t.equal(answer.status, 200);
  t.equal(answer.body.byteLength, bytes.byteLength);
});
