import t from "tap";
import { startTarget } from "../support/servers/attack-target.js";
import { openConnection, type RawAnswer, rawRequest, requestText } from "../support/servers/raw-request.js";
import { isNodeHttp } from "../support/servers/serve-routes.js";

const target = await startTarget(t);
const { port } = target;

/** Segments that lead elsewhere for somebody who decodes once more, or less, or another way, with what they are answered. */
const SEGMENTS: Readonly<Record<string, readonly number[]>> = {
  "..": [404],
  ".": [404],
  "%2e%2e": [404],
  "%2E%2E": [404],
  ".%2e": [404],
  "..%2f..%2fsecret.txt": [404],
  "..%2F..%2F..%2Fetc%2Fpasswd": [404],
  "%2fetc%2fpasswd": [404],
  "..%5c..%5csecret.txt": [404],
  "..\\..\\secret.txt": [404],
  "%5c%5c": [404],
  "....": [404],
  "...%2f": [404],
  "%252e%252e": [404],
  "%252e%252e%252fsecret.txt": [404],
  "%25%32%65": [404],
  "%00": [422],
  "air%00.zarr": [422],
  "%0d%0aX-Injected:%20yes": [422],
  "%1b%5b31m": [422],
  "%7f": [422],
  "%c2%85": [422],
  // "." and "/" in more bytes than they need, and what UTF-8 does not have.
  "%c0%ae%c0%ae": [422],
  "%e0%80%ae": [422],
  "%c0%af": [422],
  "%f0%80%80%af": [422],
  "%ed%a0%80": [422],
  "%f4%90%80%80": [422],
  "%ff": [422],
  "%": [422],
  "%2": [422],
  "%zz": [422],
  "%u002e": [422],
  "\u00ff\u00fe": [422],
  "~root": [404],
  "$(id)": [404],
  "`id`": [404],
  "{{7*7}}": [404],
  "<script>alert(1)</script>": [404],
  "'or'1'='1": [404],
  __proto__: [404],
  constructor: [404],
  hasOwnProperty: [404],
  "\u00ef\u00bc\u008e\u00ef\u00bc\u008e": [404],
};

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
  const segments = Object.entries(SEGMENTS).filter(
    ([segment]) => !isNodeHttp || !/[\x80-\xff]/.test(segment),
  );
  for (const [segment, expected] of segments) {
    for (const [place, pathOf] of Object.entries(PLACES)) {
      connection.send(requestText(pathOf(segment)));
      const answer = await connection.answer();
      const text = JSON.stringify(answer.headers) + answer.body.toString("utf8");
      const name = `${place}: ${JSON.stringify(segment)}`;
      if (!expected.includes(answer.status))
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

t.test("a chunk has one name", async (t) => {
  const canonical = await rawRequest(port, "/datasets/air/zarr/air/1.0.0");
  t.equal(canonical.status, 200);
  const others = [
    "01.0.0",
    "+1.0.0",
    "-1.0.0",
    "1.0",
    "1.0.0.0",
    "1,0,0",
    "1.0.0.",
    ".1.0.0",
    "1..0.0",
    "1e0.0.0",
  ];
  const encoded = [
    "0x1.0.0",
    "1_0.0.0",
    "%20" + "1.0.0",
    "1.0.0%20",
    "1%2e0%2f0",
    "\u00d9\u00a1.0.0",
    "1/0/0",
  ];
  const huge = [
    "9007199254740993.0.0",
    "18446744073709551617.0.0",
    `${"9".repeat(900)}.0.0`,
    "1e309.0.0",
    "NaN.0.0",
  ];
  for (const key of [...others, ...encoded, ...huge]) {
    const expected = isNodeHttp && /[\x80-\xff]/.test(key) ? 400 : 404;
    t.equal((await rawRequest(port, `/datasets/air/zarr/air/${key}`)).status, expected, key.slice(0, 40));
  }
  const same = await rawRequest(port, "/datasets/air/zarr/%61ir/%31%2e0.0");
  t.ok(same.status === 200 && same.body.equals(canonical.body), "percent-encoded, it is the same");
  const doubled = await rawRequest(port, "/datasets/air/zarr//air//1.0.0");
  t.ok([200, 404].includes(doubled.status), "slashes collapse or lead nowhere");
  if (doubled.status === 200) t.ok(doubled.body.equals(canonical.body));
  await target.isUnharmed(t);
});

t.test("long names are refused by their length, not by what they do to the server", async (t) => {
  for (const [place, pathOf] of Object.entries(PLACES)) {
    const name = "n".repeat(1_025);
    t.equal((await rawRequest(port, pathOf(name))).status, 422, place);
    const deep = "a/".repeat(500);
    t.ok([404, 422].includes((await rawRequest(port, pathOf(`${deep}x`))).status), `${place}, deep`);
  }
  t.equal((await rawRequest(port, `/datasets/air/zarr/${"/".repeat(2_000)}air/0.0.0`)).status < 500, true);
  await target.isUnharmed(t);
});

t.test("a redirect stays on this host, whatever the path says", async (t) => {
  for (const path of [
    "//evil.example/datasets/air",
    "/\\evil.example",
    "/datasets/air?x=//evil",
    "//datasets/air/zarr",
  ]) {
    const { status, headers } = await rawRequest(port, path);
    const { location } = headers;
    t.ok(status === 404 || status === 301, path);
    if (location !== undefined) t.match(location, /^\/(?![/\\])/, path);
  }
});
