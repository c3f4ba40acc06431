import { existsSync, mkdirSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import t, { type Test } from "tap";
import { createAnswerReader } from "../../bench/load/answer-reader.js";
import { askAtOnce } from "../../bench/load/ask-at-once.js";
import { askInTurn } from "../../bench/load/ask-in-turn.js";
import { runProbe, startProbe } from "../../bench/load/run-probe.js";
import { startSlowReaders } from "../../bench/load/run-slow-readers.js";
import { readResidentMemory } from "../../bench/resident-memory.js";

const skip = existsSync("/proc/self/smaps") ? false : "skipped, because there is no /proc/PID/smaps";
const scratch = join(t.testdir({}), "scratch");
mkdirSync(scratch);

async function listening(test: Test, listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  test.teardown(() => server.close().closeAllConnections());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

t.test("an answer is followed however it is cut", (t) => {
  const answer = Buffer.from("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
  for (let cut = 1; cut < answer.length; cut++) {
    const reader = createAnswerReader();
    const shared = Buffer.alloc(answer.length);
    // The same memory is used for every read, as by a socket with a buffer of its own.
    const take = (from: number, to: number) =>
      reader.take(shared.subarray(0, answer.copy(shared, 0, from, to)));
    t.equal(take(0, cut), "more");
    t.equal(take(cut, answer.length), 200);
    t.equal(take(0, answer.length), 200, "the next one on the same connection");
  }
  t.equal(createAnswerReader().take(Buffer.from("HTTP/1.1 200 OK\r\n\r\n")), "broken");
  t.equal(createAnswerReader().take(Buffer.concat([answer, answer])), "broken");
  t.equal(createAnswerReader().take(Buffer.from("HTTP/1.1 304 Not Modified\r\n\r\n")), 304);
  t.end();
});

t.test("requests at once are all there before the first is answered", async (t) => {
  const waiting: (() => void)[] = [];
  const baseUrl = await listening(t, (_, response) => {
    waiting.push(() => response.setHeader("X-A", "b").setHeader("Content-Length", 3).end("yes"));
    if (waiting.length === 40) for (const answer of waiting) answer();
  });
  const answers = await askAtOnce(baseUrl, "/x", 40);
  t.equal(answers.length, 40);
  for (const { status, headers, body, headByteLength } of answers) {
    t.same([status, headers.get("x-a"), body.toString(), headByteLength > 50], [200, "b", "yes", true]);
  }
});

t.test("an answer that breaks off is an error", async (t) => {
  const server = createTcpServer((socket) => {
    socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"));
  }).listen(0, "127.0.0.1");
  t.teardown(() => server.close());
  await new Promise((resolve) => server.once("listening", resolve));
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await t.rejects(askAtOnce(baseUrl, "/x", 1), { message: /closed the connection/ });
  await t.rejects(
    askInTurn(baseUrl, ["/x"], { seconds: 1, isOnce: true }, () => {}),
    { message: /closed the connection/ },
  );
});

t.test("one after the other tells every head, and ends with the paths", async (t) => {
  const baseUrl = await listening(t, (request, response) => {
    response
      .setHeader("X-Path", request.url!)
      .setHeader("Content-Length", 100_000)
      .end(Buffer.alloc(100_000));
  });
  const told: string[] = [];
  const { requests } = await askInTurn(
    baseUrl,
    ["/a", "/b", "/c"],
    { seconds: 60, isOnce: true },
    (head, path) => {
      told.push(`${path} ${/x-path: (\S+)/i.exec(head)?.[1]}`);
    },
  );
  t.equal(requests, 3);
  t.same(told, ["/a /a", "/b /b", "/c /c"]);
});

t.test("a probe counts what a server that stands still keeps waiting", async (t) => {
  const seen = new Set<string>();
  let isHeld = false;
  const held: (() => void)[] = [];
  const baseUrl = await listening(t, (request, response) => {
    seen.add(request.url!);
    const answer = () => void response.setHeader("Content-Length", 1).end("1");
    if (isHeld) held.push(answer);
    else answer();
  });
  const probe = await startProbe({ baseUrl, paths: ["/a", "/b", "/a"], pauseMs: 1, scratch });
  isHeld = true;
  await sleep(300);
  isHeld = false;
  for (const answer of held) answer();
  await sleep(100);
  const { all, paths } = await probe.stop();
  t.ok(all.max >= 250, `longest ${all.max}`);
  t.same([...seen].sort(), ["/a", "/b"]);
  t.equal(paths["/a"]!.requests + paths["/b"]!.requests, all.requests);
});

t.test("a probe that is answered something else is an error", async (t) => {
  const baseUrl = await listening(t, (_, response) => response.writeHead(404, { "content-length": 0 }).end());
  await t.rejects(runProbe({ baseUrl, paths: ["/gone"], pauseMs: 1, seconds: 1, scratch }), {
    message: /\/gone: received 404/,
  });
});

t.test("slow clients take their answers to the end", async (t) => {
  const baseUrl = await listening(t, (_, response) => {
    response.setHeader("Content-Length", 20_000).end(Buffer.alloc(20_000));
  });
  const readers = await startSlowReaders({
    baseUrl,
    paths: ["/a", "/b"],
    clients: 3,
    bytesPerSecond: 100_000,
    scratch,
  });
  await sleep(1_000);
  const result = await readers.stop();
  t.match(result, { failures: 0 });
  t.ok(result.answers >= 3, `${result.answers} answers`);
  t.ok(result.bytes < 3 * 100_000 * (result.seconds + 1), "no faster than it was told");
});

t.test("resident memory is that of a process, and of none that has ended", { skip }, (t) => {
  const own = readResidentMemory(process.pid)!;
  t.ok(own.totalBytes > 10 * 2 ** 20);
  t.equal(own.cacheMapBytes + own.otherBytes, own.totalBytes);
  t.equal(readResidentMemory(2 ** 30), undefined);
  t.end();
});
