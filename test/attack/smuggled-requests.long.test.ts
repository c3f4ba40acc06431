import t, { type Test } from "tap";
import { startTarget } from "../support/servers/attack-target.js";
import { openConnection, type RawAnswer, rawRequest, requestText } from "../support/servers/raw-request.js";
import { exchangeRaw, inLots, type Reply } from "./raw-exchange.js";

const target = await startTarget(t);
const { port } = target;

/** Behind what another request hides: if it is ever answered, there are two answers or one that is told apart. */
const HIDDEN = "GET /datasets/hidden-request/info HTTP/1.1\r\nHost: x\r\n\r\n";

function get(path: string, ...headers: readonly string[]): string {
  return `GET ${path} HTTP/1.1\r\n${["Host: x", ...headers].join("\r\n")}\r\n\r\n`;
}

async function send(
  requests: Readonly<Record<string, string>>,
): Promise<(Reply & { readonly name: string })[]> {
  return inLots(Object.entries(requests), 40, async ([name, request]) => ({
    name,
    ...(await exchangeRaw(port, [request])),
  }));
}

function checkHarmless(
  t: Test,
  { name, statuses, text }: Pick<Reply, "statuses" | "text"> & { name: string },
): void {
  t.ok(
    statuses.every((status) => status < 500 || status === 505),
    `${name}: no failure`,
    { statuses },
  );
  t.equal(target.revealed(text), undefined, `${name}: shows nothing of this machine`);
}

t.test("headers that proxies and servers may read differently are refused", async (t) => {
  const replies = await send({
    "a space before the colon": get("/datasets", "Content-Length : 5"),
    "a folded line": get("/datasets", "X-A: b\r\n  c"),
    "a line without a colon": get("/datasets", "nonsense"),
    "an empty name": get("/datasets", ": x"),
    "a bare line feed": "GET /datasets HTTP/1.1\nHost: x\n\n",
    "a bare line feed between headers": get("/datasets", "X-A: b\nX-C: d"),
    "a bare carriage return": get("/datasets", "X-A: b\rX-C: d"),
    "a zero byte in a value": get("/datasets", "X-A: b\u0000c"),
    "a zero byte in a name": get("/datasets", "X\u0000A: b"),
  });
  for (const { name, statuses, text } of replies) {
    t.ok(statuses.length <= 1, `${name}: at most one answer`, { statuses });
    checkHarmless(t, { name, statuses, text });
  }
  await target.isUnharmed(t);
});

t.test("no request hides in the body of another", async (t) => {
  const length = `Content-Length: ${HIDDEN.length}`;
  const chunked = "Transfer-Encoding: chunked";
  const inChunk = `${HIDDEN.length.toString(16)}\r\n${HIDDEN}\r\n0\r\n\r\n`;
  const replies = await send({
    "GET with a body": get("/datasets", length) + HIDDEN,
    "POST with a body": get("/datasets", length).replace("GET", "POST") + HIDDEN,
    "HEAD with a body": get("/datasets", length).replace("GET", "HEAD") + HIDDEN,
    "OPTIONS with a body": get("/datasets", length).replace("GET", "OPTIONS") + HIDDEN,
    "a chunked body": get("/datasets", chunked).replace("GET", "POST") + inChunk,
    "a chunked body of GET": get("/datasets", chunked) + inChunk,
    "length and chunked": get("/datasets", length, chunked).replace("GET", "POST") + inChunk,
    "chunked and length": get("/datasets", chunked, "Content-Length: 0").replace("GET", "POST") + inChunk,
    "two lengths": get("/datasets", length, "Content-Length: 0").replace("GET", "POST") + HIDDEN,
    "two lengths in one": get("/datasets", `${length}, 0`).replace("GET", "POST") + HIDDEN,
    "a signed length": get("/datasets", `Content-Length: +${HIDDEN.length}`).replace("GET", "POST") + HIDDEN,
    "a negative length": get("/datasets", "Content-Length: -1").replace("GET", "POST") + HIDDEN,
    "a length in hexadecimal": get("/datasets", "Content-Length: 0x32").replace("GET", "POST") + HIDDEN,
    "a length beyond 64 bits":
      get("/datasets", "Content-Length: 99999999999999999999").replace("GET", "POST") + HIDDEN,
    "an unknown coding": get("/datasets", "Transfer-Encoding: xchunked").replace("GET", "POST") + HIDDEN,
    "chunked behind a tab": get("/datasets", "Transfer-Encoding:\tchunked").replace("GET", "POST") + inChunk,
    "chunked twice": get("/datasets", chunked, chunked).replace("GET", "POST") + inChunk,
    "a chunk size that is none": `${get("/datasets", chunked).replace("GET", "POST")}zz\r\n${HIDDEN}`,
    "a chunk size beyond 64 bits": `${get("/datasets", chunked).replace("GET", "POST")}fffffffffffffffff\r\n${HIDDEN}`,
    "an upgrade": get("/datasets", "Connection: Upgrade", "Upgrade: websocket") + HIDDEN,
  });
  for (const { name, text, statuses } of replies) {
    // A GET that follows an upgrade that is not taken is a request of its own.
    if (name === "an upgrade") continue;
    t.notMatch(text, "hidden-request", name);
    checkHarmless(t, { name, statuses, text });
  }
  await target.isUnharmed(t);
});

t.test("no request hides behind a first of two lengths", async (t) => {
  const lengths = ["Content-Length: 0", `Content-Length: ${HIDDEN.length}`];
  const replies = await send({
    GET: get("/datasets", ...lengths) + HIDDEN,
    POST: get("/datasets", ...lengths).replace("GET", "POST") + HIDDEN,
  });
  for (const { name, text } of replies) t.notMatch(text, "hidden-request", name);
});

const PATH = "/datasets/again/zarr/air/0.0.0";

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
