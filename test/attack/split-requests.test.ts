import t from "tap";
import { openConnection, requestText } from "../http/raw-request.js";
import { startTarget } from "./attack-target.js";
import { exchangeRaw, inLots } from "./raw-exchange.js";

const target = await startTarget(t);
const { port, truth } = target;
const PATH = "/datasets/again/zarr/air/0.0.0";
const chunk = truth.get(PATH)!;

t.test(
  "a request split at any byte is answered with the right bytes, or refused with its request line",
  async (t) => {
    const request = requestText(PATH, { headers: { "X-Filler": "some more of a header" } });
    const endOfLine = request.indexOf("\r\n") + 2;
    const places = Array.from({ length: request.length - 1 }, (_, i) => i + 1);
    const replies = await inLots(places, 64, async (at) => ({
      at,
      ...(await exchangeRaw(port, [request.slice(0, at), request.slice(at)], { gapMs: 20 })),
    }));
    for (const { at, text, statuses } of replies) {
      if (statuses[0] === 505) {
        t.ok(at < endOfLine, "only where the request line itself came in pieces");
        continue;
      }
      if (statuses[0] !== 200 || !text.endsWith(chunk.body.toString("latin1")))
        t.fail(`split at ${at}: ${statuses} ${text.slice(0, 100)}`);
    }
    t.equal(replies.length, request.length - 1);
    await target.isUnharmed(t);
  },
);

t.test("headers that arrive byte by byte are headers", async (t) => {
  const request = requestText(PATH, { headers: { Range: "bytes=3-9" } });
  const endOfLine = request.indexOf("\r\n") + 2;
  const bytes = [...request.slice(endOfLine)];
  const { text, statuses } = await exchangeRaw(port, [request.slice(0, endOfLine), ...bytes], { gapMs: 1 });
  t.same(statuses, [206]);
  t.ok(text.endsWith(chunk.body.subarray(3, 10).toString("latin1")));
});

t.test("requests in one packet are answered in their order", async (t) => {
  const paths = [...truth.keys()].filter((path) => !path.includes("zarr/air/0") && !path.includes("big"));
  const connection = await openConnection(port);
  t.teardown(() => connection.socket.destroy());
  for (let round = 0; round < 5; round++) {
    connection.send(paths.map((path) => requestText(path)).join(""));
    for (const path of paths) {
      const answer = await connection.answer();
      t.ok(answer.status === 200 && answer.body.equals(truth.get(path)!.body), path);
    }
  }
  await target.isUnharmed(t);
});

t.test("what is pipelined behind a chunk that is not ready is answered rightly or not at all", async (t) => {
  const behind = ["/datasets", "/datasets/air/info", "/datasets/big/zarr/field/1"];
  const first = Array.from({ length: 60 }, (_, i) => `/datasets/again/zarr/air/${i + 1}.0.0`);
  const results = await inLots(first, 30, async (path) => {
    const connection = await openConnection(port);
    const answers: { readonly path: string; readonly type: string | undefined; readonly status: number }[] =
      [];
    try {
      connection.send([path, ...behind].map((each) => requestText(each)).join(""));
      for (const each of [path, ...behind]) {
        const { status, headers } = await connection.answer();
        answers.push({ path: each, status, type: headers["content-type"] });
      }
    } catch {
      // The connection was closed.
    } finally {
      connection.socket.destroy();
    }
    return answers;
  });
  for (const { path, status, type } of results.flat()) {
    const isChunk = /\d$/.test(path);
    const isRight = status === 200 && type === (isChunk ? "application/octet-stream" : "application/json");
    if (!isRight) t.fail(`${path}: ${status} ${type}`);
  }
  t.equal(results.length, first.length);
  await target.isUnharmed(t);
});

t.test("a hundred requests that never end hold nobody up", async (t) => {
  const request = requestText(PATH, { headers: { "X-Filler": "z".repeat(60) } });
  const started = Array.from({ length: 100 }, (_, i) => request.slice(0, 5 + i));
  const replies = Promise.all(started.map((piece) => exchangeRaw(port, [piece], { quietMs: 1_500 })));
  await target.isServed(t);
  const succeeded = (await replies).flatMap(({ statuses }) => statuses.filter((status) => status < 400));
  t.same(succeeded, [], "and are answered by nothing that looks like success");
  await target.isUnharmed(t);
});
