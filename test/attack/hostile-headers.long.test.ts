import { brotliDecompressSync, gunzipSync } from "node:zlib";
import t from "tap";
import { startTarget } from "../support/servers/attack-target.js";
import { openConnection, rawRequest, requestText } from "../support/servers/raw-request.js";

const target = await startTarget(t);
const { port, truth } = target;
const CHUNK = "/datasets/again/zarr/air/0.0.0";
const DOCUMENT = "/datasets/air/zarr/.zmetadata";
const HUGE = "18446744073709551615";

async function ask(path: string, headers: Record<string, string>, method = "GET") {
  return rawRequest(port, path, { headers, method });
}

t.test("ranges of any kind give the part that was asked for, the whole, or 416", async (t) => {
  const connection = await openConnection(port);
  t.teardown(() => connection.socket.destroy());
  const ranges = [
    `0-${HUGE}`,
    `${HUGE}-`,
    `${HUGE}-${HUGE}`,
    `-${HUGE}`,
    `-0`,
    `0-0`,
    `5-4`,
    `-`,
    ``,
    `0`,
    `--1`,
    `0--1`,
    `0x0-0x5`,
    `1e3-2e3`,
    ` 0-5`,
    `0 - 5`,
    `0-5,`,
    `,0-5`,
    `0-5,10-15`,
    `0-,`.repeat(1_000),
    `0-0,`.repeat(2_000),
    `${"9".repeat(5_000)}-`,
    `-${"9".repeat(5_000)}`,
    `0-${"9".repeat(5_000)}`,
    `${" ".repeat(5_000)}0-5`,
    `${",".repeat(5_000)}0-5`,
    `٠-٥`,
  ].flatMap((range) => [`bytes=${range}`, `BYTES=${range}`, `lines=${range}`]);
  for (const path of [CHUNK, DOCUMENT]) {
    const { body } = truth.get(path)!;
    for (const range of [...ranges, "bytes", "=", "bytes = 0-5", "bytes=0-5;x", "\u00ff"]) {
      connection.send(
        requestText(path, { headers: { Range: Buffer.from(range, "utf8").toString("latin1") } }),
      );
      const answer = await connection.answer();
      const [, first, last, total] =
        /^bytes (\d+)-(\d+)\/(\d+)$/.exec(answer.headers["content-range"] ?? "") ?? [];
      const part = body.subarray(Number(first), Number(last) + 1);
      const isRight =
        answer.status === 206
          ? Number(total) === body.length && part.length > 0 && answer.body.equals(part)
          : answer.status === 416
            ? answer.headers["content-range"] === `bytes */${body.length}`
            : answer.status === 200 && answer.body.equals(body);
      if (!isRight)
        t.fail(`${path}, ${range.slice(0, 60)}: ${answer.status} ${answer.headers["content-range"]}`);
    }
  }
  t.equal(connection.closed(), false);
  await target.isUnharmed(t);
});

t.test("conditions of any kind are 200, 304 or 412, and only the right tag is 304", async (t) => {
  const connection = await openConnection(port);
  t.teardown(() => connection.socket.destroy());
  const many = Array.from({ length: 400 }, (_, i) => `"tag-${i}"`).join(", ");
  const values = [
    ...["", "*", '"', '""', "W/", 'W/"', "W/*", ",,,,", '"a", *', "*, *", "\u00ff", '"\u00ff"', "'x'"],
    ...[
      many,
      `"${"x".repeat(8_000)}"`,
      '"'.repeat(4_000),
      "W/".repeat(4_000),
      ", ".repeat(4_000),
      '" '.repeat(4_000),
    ],
    ...["Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 99 Foo 99999 99:99:99 GMT", "-1", "0"],
  ];
  const names = ["If-None-Match", "If-Match", "If-Range", "If-Modified-Since", "If-Unmodified-Since"];
  for (const path of [CHUNK, DOCUMENT]) {
    const { headers, body } = truth.get(path)!;
    for (const name of names) {
      for (const value of values) {
        connection.send(requestText(path, { headers: { [name]: value, Range: "bytes=1-2" } }));
        const { status, body: received } = await connection.answer();
        const allowed =
          name === "If-Match"
            ? [206, 412]
            : name === "If-None-Match"
              ? [206, 304]
              : name === "If-Range"
                ? [200, 206]
                : [206];
        if (!allowed.includes(status)) t.fail(`${path}, ${name}: ${value.slice(0, 40)}: ${status}`);
        if (status === 304 && value !== "*") t.fail(`${path}, ${name}: ${value.slice(0, 40)}: 304`);
        if (status === 200 && !received.equals(body))
          t.fail(`${path}, ${name}: ${value.slice(0, 40)}: other bytes`);
      }
    }
    const tag = headers.etag as string;
    const behind = await ask(path, { "If-None-Match": `${many}, ${tag}` });
    t.equal(behind.status, 304, "the right one behind four hundred others");
    const stolen = await ask(path, { "If-None-Match": tag.replace(/.$/, "x") });
    t.equal(stolen.status, 200, "half of one is none");
  }
  await target.isUnharmed(t);
});

/** A body without its content coding. */
function decoded(body: Buffer, coding: string | undefined): Buffer {
  if (coding === undefined) return body;
  if (coding === "br") return brotliDecompressSync(body);
  if (coding === "gzip") return gunzipSync(body);
  throw new Error(`expected br or gzip, received ${coding}`);
}

t.test("content codings of any kind give a document that can be read", async (t) => {
  const values = [
    ...[
      "",
      "*",
      "*;q=0",
      "identity;q=0",
      "identity;q=0, *;q=0",
      "gzip;q=-1",
      "gzip;q=NaN",
      "gzip;q=1e999",
      "br;q=0.0001",
    ],
    ...[
      "gzip,".repeat(3_000),
      "br;q=0.1,".repeat(1_500),
      ";".repeat(8_000),
      "q=".repeat(4_000),
      "x".repeat(8_000),
    ],
    ...[`gzip;${" ".repeat(8_000)}q=1`, "\u00ff", "deflate, zstd, compress", "GZIP, BR"],
  ];
  for (const value of values) {
    for (const path of [DOCUMENT, CHUNK]) {
      const { status, headers, body } = await ask(path, { "Accept-Encoding": value });
      const coding = headers["content-encoding"];
      const name = `${path}, ${JSON.stringify(value.slice(0, 40))}`;
      if (status === 400) continue;
      t.equal(status, 200, name);
      if (path === CHUNK) t.equal(coding, undefined, name);
      t.ok(decoded(body, coding).equals(truth.get(path)!.body), name);
    }
  }
  await target.isUnharmed(t);
});

t.test("headers that pretend to be somebody's change nothing for others", async (t) => {
  const headers = {
    "X-Forwarded-For": "127.0.0.1",
    "X-Forwarded-Host": "evil.example",
    "X-Forwarded-Proto": "javascript",
    "X-Forwarded-Prefix": "//evil.example",
    Forwarded: "host=evil.example;proto=https",
    "X-Original-URL": "/datasets/secret",
    "X-Rewrite-URL": "/datasets/secret",
    "X-HTTP-Method-Override": "DELETE",
    Host: "evil.example",
    traceparent: "00-ffffffffffffffffffffffffffffffff-ffffffffffffffff-ff",
    "X-Request-Id": "a b\u00ffc",
    Cookie: "x".repeat(4_000),
    Authorization: "Bearer evil",
    Connection: "close, Range, ETag",
    TE: "trailers",
    Upgrade: "h2c",
  };
  for (const [name, value] of Object.entries(headers)) {
    for (const path of ["/", "/datasets/air", "/datasets/air/", ...truth.keys()]) {
      const { status, headers: answered, body } = await ask(path, { [name]: value });
      const text =
        JSON.stringify(answered) + (path === "/" || path.endsWith("/") ? body.toString("utf8") : "");
      if (path.endsWith("zarr/field/0")) continue;
      if (![200, 301].includes(status)) t.fail(`${name}, ${path}: ${status}`);
      // What is asked for under a Host is not somebody else's pretence.
      if (name !== "Host" && text.includes("evil")) t.fail(`${name}, ${path}: believed`);
      const expected = truth.get(path);
      if (expected !== undefined && !body.equals(expected.body)) t.fail(`${name}, ${path}: other bytes`);
    }
  }
  await target.isUnharmed(t);
});

t.test("HEAD says what GET would, whatever else is asked", async (t) => {
  for (const path of [CHUNK, DOCUMENT, "/datasets/none", "/datasets/air"]) {
    for (const headers of [
      {},
      { Range: "bytes=0-5" },
      { "Accept-Encoding": "br" },
      { "If-None-Match": "*" },
    ]) {
      const name = `${path} ${JSON.stringify(headers)}`;
      const head = await ask(path, headers, "HEAD");
      t.equal(head.body.length, 0);
      t.ok(head.status < 500, name);
      const get = await ask(path, headers);
      // A Range is of GET alone.
      if (!("Range" in headers)) t.equal(head.status, get.status, name);
      if (get.status !== 200) continue;
      for (const each of ["etag", "content-type", "content-encoding", "content-length"])
        t.equal(head.headers[each], get.headers[each], `${name}: ${each}`);
    }
  }
  await target.isUnharmed(t);
});
