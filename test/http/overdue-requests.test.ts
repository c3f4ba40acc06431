import { setTimeout as delay } from "node:timers/promises";
import t from "tap";
import { jsonOf, openConnection, rawRequest, requestText } from "../support/servers/raw-request.js";
import { bodyOf, bodyReplyOf, routeOf, startTestServer } from "../support/servers/serve-routes.js";

const NEVER = new Promise<never>(() => undefined);

t.test(
  "a request whose answer does not begin in time is answered 503, and its work is not wanted any more",
  async (t) => {
    let client: AbortSignal | undefined;
    const { port, server, lines } = await startTestServer(
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
  const { port, server } = await startTestServer(t, [slow], {
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
  const { port } = await startTestServer(t, [routeOf("/big", () => bodyReplyOf(bytes, '"b"'), "chunk")], {
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
