import t from "tap";
import { startTarget } from "../support/servers/attack-target.js";
import { openConnection, type RawAnswer, rawRequest, requestText } from "../support/servers/raw-request.js";
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
    t.ok(
      replies.some(({ statuses }) => statuses[0] === 200),
      "and some of them are answered",
    );
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

t.test(
  "what is pipelined behind a chunk is answered rightly, or not at all where that is not ready",
  async (t) => {
    const behind = ["/datasets", "/datasets/air/info", "/datasets/big/zarr/field/1"];
    const first = Array.from({ length: 60 }, (_, i) => `/datasets/again/zarr/air/${i + 1}.0.0`);
    const pipeline = async (path: string) => {
      const connection = await openConnection(port);
      const answers: (RawAnswer & { readonly path: string })[] = [];
      try {
        connection.send([path, ...behind].map((each) => requestText(each)).join(""));
        for (const each of [path, ...behind]) answers.push({ path: each, ...(await connection.answer()) });
      } catch {
        // The connection was closed.
      } finally {
        connection.socket.destroy();
      }
      return answers;
    };
    const cold = await inLots(first, 30, pipeline);
    const alone = new Map<string, RawAnswer>();
    // Several times, so that they are worth keeping in memory, where they are ready.
    for (let round = 0; round < 3; round++)
      for (const path of [...first, ...behind]) alone.set(path, await rawRequest(port, path));
    const ready = await inLots(first, 30, pipeline);
    for (const { path, status, headers, body } of [...cold, ...ready].flat()) {
      const expected = alone.get(path)!;
      const isRight =
        status === 200 &&
        headers["content-type"] === expected.headers["content-type"] &&
        body.equals(expected.body);
      if (!isRight) t.fail(`${path}: ${status} ${headers["content-type"]}, ${body.length} bytes`);
    }
    // Of those that are not ready, the server may close every connection.
    const answered = ready.filter((answers) => answers.length > 0).length;
    t.ok(answered > first.length / 2, `of ${first.length} that are ready, ${answered} are answered`);
    await target.isUnharmed(t);
  },
);

t.test("a hundred requests that never end hold nobody up", async (t) => {
  const request = requestText(PATH, { headers: { "X-Filler": "z".repeat(60) } });
  const started = Array.from({ length: 100 }, (_, i) => request.slice(0, 5 + i));
  const replies = Promise.all(started.map((piece) => exchangeRaw(port, [piece], { quietMs: 1_500 })));
  await target.isServed(t);
  const succeeded = (await replies).flatMap(({ statuses }) => statuses.filter((status) => status < 400));
  t.same(succeeded, [], "and are answered by nothing that looks like success");
  await target.isUnharmed(t);
});
