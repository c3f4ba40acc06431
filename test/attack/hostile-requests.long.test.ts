import t from "tap";
import { startTarget } from "../support/servers/attack-target.js";
import { openConnection, type RawAnswer, rawRequest, requestText } from "../support/servers/raw-request.js";
import { isNodeHttp } from "../support/servers/serve-routes.js";

const target = await startTarget(t);
const { port } = target;

/** Segments that lead elsewhere for a reader who decodes once more, or less, or another way, by the status that answers them. */
const SEGMENTS = {
  404: (
    ".. . %2e%2e %2E%2E .%2e ..%2f..%2fsecret.txt ..%2F..%2F..%2Fetc%2Fpasswd %2fetc%2fpasswd " +
    "..%5c..%5csecret.txt ..\\..\\secret.txt %5c%5c .... ...%2f %252e%252e %252e%252e%252fsecret.txt " +
    "%25%32%65 ~root $(id) `id` {{7*7}} <script>alert(1)</script> 'or'1'='1 __proto__ constructor " +
    "hasOwnProperty \u00ef\u00bc\u008e\u00ef\u00bc\u008e"
  ).split(" "),
  // Among them "." and "/" in more bytes than they need, and what UTF-8 does not have.
  422: (
    "%00 air%00.zarr %0d%0aX-Injected:%20yes %1b%5b31m %7f %c2%85 %c0%ae%c0%ae %e0%80%ae %c0%af " +
    "%f0%80%80%af %ed%a0%80 %f4%90%80%80 %ff % %2 %zz %u002e \u00ff\u00fe"
  ).split(" "),
} as const;

/** Where such a segment stands; what is long or odd must fit each. */
const PLACES: Readonly<Record<string, (segment: string) => string>> = {
  dataset: (segment) => `/datasets/${segment}/info`,
  store: (segment) => `/datasets/${segment}/zarr/.zmetadata`,
  group: (segment) => `/datasets/climate/groups/${segment}/keys`,
  "group below a group": (segment) => `/datasets/climate/groups/surface/${segment}/info`,
  variable: (segment) => `/datasets/air/zarr/${segment}/.zarray`,
  "variable of a chunk": (segment) => `/datasets/air/zarr/${segment}/0.0.0`,
  chunk: (segment) => `/datasets/air/zarr/air/${segment}`,
  listing: (segment) => `/datasets/air/zarr/${segment}/`,
};

t.test("names that lead elsewhere lead nowhere, at every place of a path", async (t) => {
  const connection = await openConnection(port);
  t.teardown(() => connection.socket.destroy());
  // Node.js answers 400 to what is not percent-encoded, and closes the connection.
  const all = Object.entries(SEGMENTS).flatMap(([status, each]) =>
    each.map((segment) => [status, segment] as const),
  );
  for (const [expected, segment] of all) {
    if (isNodeHttp && /[\x80-\xff]/.test(segment)) continue;
    for (const [place, pathOf] of Object.entries(PLACES)) {
      connection.send(requestText(pathOf(segment)));
      const answer = await connection.answer();
      const text = JSON.stringify(answer.headers) + answer.body.toString("utf8");
      const name = `${place}: ${JSON.stringify(segment)}`;
      if (answer.status !== Number(expected))
        t.fail(`${name}: expected ${expected}, received ${answer.status}`);
      if (target.revealed(text) !== undefined) t.fail(`${name} shows ${target.revealed(text)}`);
      if (answer.headers["x-injected"] !== undefined) t.fail(`${name} writes a header`);
      if (answer.headers["content-type"] !== "application/json") t.fail(`${name}: no JSON`);
      if (!isJson(answer)) t.fail(`${name}: no JSON`);
    }
  }
  t.ok(connection.closed() === false, "all on one connection");
  await target.isUnharmed(t);
});

function isJson({ body }: RawAnswer): boolean {
  try {
    JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
    return true;
  } catch {
    return false;
  }
}

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
    for (const path of ["/", "/datasets/air", "/datasets/air/", ...target.truth.keys()]) {
      const {
        status,
        headers: answered,
        body,
      } = await rawRequest(port, path, { headers: { [name]: value } });
      const text =
        JSON.stringify(answered) + (path === "/" || path.endsWith("/") ? body.toString("utf8") : "");
      if (path.endsWith("zarr/field/0")) continue;
      if (![200, 301].includes(status)) t.fail(`${name}, ${path}: ${status}`);
      // What is asked for under a Host is not somebody else's pretence.
      if (name !== "Host" && text.includes("evil")) t.fail(`${name}, ${path}: believed`);
      const expected = target.truth.get(path);
      if (expected !== undefined && !body.equals(expected.body)) t.fail(`${name}, ${path}: other bytes`);
    }
  }
  await target.isUnharmed(t);
});
