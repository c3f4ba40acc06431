import t, { type Test } from "tap";
import { startTarget } from "../support/servers/attack-target.js";
import { isNodeHttp } from "../support/servers/serve-routes.js";
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

t.test("what is no request is refused, closed or ignored, and never a success", async (t) => {
  const long = "x".repeat(70_000);
  const replies = await send({
    "nothing but line breaks": "\r\n\r\n\r\n",
    "control bytes": "\u0000\u0001\u0002\u001f\u007f\r\n\r\n",
    "the beginning of TLS": "\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\u00fc\u0003\u0003",
    "HTTP/2 preface": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "no path": "GET HTTP/1.1\r\nHost: x\r\n\r\n",
    "no version": "GET /datasets\r\nHost: x\r\n\r\n",
    "version 0.9": "GET /datasets\r\n\r\n",
    "version 1.0": "GET /datasets HTTP/1.0\r\nHost: x\r\n\r\n",
    "version 2.0": "GET /datasets HTTP/2.0\r\nHost: x\r\n\r\n",
    "version 11": "GET /datasets HTTP/11\r\nHost: x\r\n\r\n",
    "version in small letters": "GET /datasets http/1.1\r\nHost: x\r\n\r\n",
    "a space before the method": " GET /datasets HTTP/1.1\r\nHost: x\r\n\r\n",
    ...(!isNodeHttp && { "two spaces before the path": "GET  /datasets HTTP/1.1\r\nHost: x\r\n\r\n" }),
    "a tab for a space": "GET\t/datasets HTTP/1.1\r\nHost: x\r\n\r\n",
    "a space in the path": "GET /data sets HTTP/1.1\r\nHost: x\r\n\r\n",
    "absolute form": "GET http://x/datasets HTTP/1.1\r\nHost: x\r\n\r\n",
    "authority form": "CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n",
    "asterisk form": "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
    "no slash": "GET datasets HTTP/1.1\r\nHost: x\r\n\r\n",
    "a backslash": "GET \\datasets HTTP/1.1\r\nHost: x\r\n\r\n",
    "a method of control bytes": "G\u0001T /datasets HTTP/1.1\r\nHost: x\r\n\r\n",
    "an endless method": `${long} /datasets HTTP/1.1\r\nHost: x\r\n\r\n`,
    "an endless path": `GET /${long} HTTP/1.1\r\nHost: x\r\n\r\n`,
    "an endless query": `GET /datasets?${long} HTTP/1.1\r\nHost: x\r\n\r\n`,
    "a thousand headers": get("/datasets", ...Array.from({ length: 1_000 }, (_, i) => `X-${i}: ${i}`)),
    "no Host": "GET /datasets HTTP/1.1\r\n\r\n",
  });
  for (const { name, statuses, text } of replies) {
    const succeeded = statuses.filter((status) => status < 300);
    t.same(succeeded, [], name);
    checkHarmless(t, { name, statuses, text });
  }
  await target.isUnharmed(t);
});

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

t.test("headers that never end are refused when they come in pieces", async (t) => {
  const pieces = Array.from({ length: 12 }, () => "x".repeat(4_000));
  for (const begin of ["X-Long: ", ""]) {
    const head = `GET /datasets HTTP/1.1\r\nHost: x\r\n${begin}`;
    const { statuses, isClosed } = await exchangeRaw(port, [head, ...pieces, ": x\r\n\r\n"], { gapMs: 10 });
    t.ok(isClosed && statuses.every((status) => status === 400 || status === 431), begin, { statuses });
  }
  const { statuses } = await exchangeRaw(port, [get("/datasets", `X-Long: ${"x".repeat(70_000)}`)]);
  t.ok(statuses.length === 1 && [200, 400, 431].includes(statuses[0]!), "in one piece", { statuses });
  await target.isUnharmed(t);
});

t.test("other methods are 405, and bodies that are too long are not read", async (t) => {
  const methods = ["POST", "PUT", "DELETE", "PATCH", "TRACE", "PROPFIND", "get", "Get", "GETT"];
  const replies = await send(
    Object.fromEntries(methods.map((method) => [method, get("/datasets").replace("GET", method)])),
  );
  for (const { name, statuses } of replies)
    t.ok(statuses.length === 1 && [400, 405, 501, 505].includes(statuses[0]!), name, { statuses });
  const endless = [
    `PUT /datasets HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000000\r\n\r\n`,
    ...Array.from({ length: 200 }, () => "x".repeat(65_536)),
  ];
  const { statuses } = await exchangeRaw(port, endless, { gapMs: 0 });
  t.ok(
    statuses.every((status) => status >= 400 && status < 500),
    "an endless body",
    { statuses },
  );
  await target.isUnharmed(t);
});
