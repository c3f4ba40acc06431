import fc from "fast-check";
import t from "tap";
import { createAddressSet } from "../../../src/http/access/access-rules.js";
import { forwardedPrefix, lastUntrusted, serviceUrlOf } from "../../../src/http/access/forwarded.js";
import { createDocument } from "../../../src/http/create-document.js";
import { rawRequest } from "../../support/servers/raw-request.js";
import { routeOf, startTestServer } from "../../support/servers/serve-routes.js";

t.test("a set of addresses knows both families, networks, and IPv4 within IPv6", async (t) => {
  const set = createAddressSet(["10.0.0.0/8", "192.0.2.7", "fc00::/7", "::1", "::ffff:198.51.100.0/120"]);
  for (const address of ["10.255.0.1", "192.0.2.7", "::ffff:10.1.2.3", "fd12::1", "::1", "0:0:0:0:0:0:0:1"]) {
    t.ok(set.has(address), address);
  }
  for (const address of [
    "11.0.0.1",
    "192.0.2.8",
    "fe80::1",
    "::2",
    "",
    "10.0.0.256",
    "unknown",
    "::ffff:11.0.0.1",
  ]) {
    t.notOk(set.has(address), address);
  }
  t.notOk(createAddressSet([]).has("127.0.0.1"));
  t.throws(() => createAddressSet(["example.org"]), { code: "invalid-config" });
});

const trusted = createAddressSet(["10.0.0.0/8", "fd00::/8"]);

t.test("the client is the last address that is no trusted proxy's", async (t) => {
  for (const [list, expected] of [
    ["203.0.113.9", "203.0.113.9"],
    ["203.0.113.9, 10.0.0.2", "203.0.113.9"],
    ["6.6.6.6, 203.0.113.9, 10.0.0.2,10.0.0.3", "203.0.113.9"],
    ["10.0.0.5", "10.0.0.5"],
    ["10.0.0.5, 10.0.0.6", "10.0.0.5"],
    ["203.0.113.9:4711", "203.0.113.9"],
    ["[2001:db8::1]:4711, fd00::2", "2001:db8::1"],
    ["2001:db8::1", "2001:db8::1"],
    ["6.6.6.6, unknown", "10.0.0.1"],
    ["6.6.6.6, _hidden, 10.0.0.2", "10.0.0.2"],
    ["", "10.0.0.1"],
    [",,", "10.0.0.1"],
    ["6.6.6.6,", "10.0.0.1"],
    ["<script>", "10.0.0.1"],
  ] as const) {
    t.equal(lastUntrusted(list, "10.0.0.1", trusted), expected, list);
  }
});

t.test("whatever a client puts before it, the entry of the proxy counts", async () => {
  const anything = fc.array(fc.oneof(fc.string(), fc.ipV4(), fc.ipV6()), { maxLength: 50 });
  fc.assert(
    fc.property(anything, (made) => {
      const list = [...made, "203.0.113.9", "10.0.0.2"].join(", ");
      return lastUntrusted(list, "10.0.0.1", trusted) === "203.0.113.9";
    }),
  );
});

function place(
  headers: Readonly<Record<string, string>>,
  isTrusted: boolean,
  scheme = "http",
  rootPath = "",
) {
  return { scheme, rootPath, isTrusted, header: (name: string) => headers[name] };
}

const FORWARDED = {
  host: "10.0.0.1:9000",
  "x-forwarded-host": "data.example, inner",
  "x-forwarded-proto": "https",
  "x-forwarded-prefix": "/api/",
};

t.test("the service is where a trusted proxy says, else where it was asked", async (t) => {
  t.equal(serviceUrlOf(place(FORWARDED, true, "http", "/prefix")), "https://data.example/api");
  t.equal(serviceUrlOf(place(FORWARDED, false, "http", "/prefix")), "http://10.0.0.1:9000/prefix");
  t.equal(serviceUrlOf(place({ host: "[::1]:80" }, false)), "http://[::1]");
  t.equal(serviceUrlOf(place({ host: "h:443" }, false, "https")), "https://h");
  t.equal(serviceUrlOf(place({ host: "h:0443" }, false)), "http://h:443");
  t.equal(serviceUrlOf(place({}, false)), "http://localhost");
});

t.test("what does not look like an address counts for nothing", async (t) => {
  const evil = {
    host: 'evil"><script>',
    "x-forwarded-host": "a b",
    "x-forwarded-proto": "javascript",
    "x-forwarded-prefix": "//evil.example/",
  };
  t.equal(serviceUrlOf(place(evil, true)), "http://localhost");
  for (const host of ["h:0", "h:65536", "h:", "h:99999", "h/path", "user@h", ""]) {
    t.equal(serviceUrlOf(place({ host }, false)), "http://localhost", host);
  }
  for (const prefix of ["//evil", "/a/../b", "/./a", "/a?b", "a", "/a%2f", "/a\\b", `/${"a".repeat(200)}`]) {
    t.equal(forwardedPrefix(place({ "x-forwarded-prefix": prefix }, true)), undefined, prefix);
  }
  for (const [prefix, expected] of [
    ["/", ""],
    ["", undefined],
    ["/a/b", "/a/b"],
    ["/a/", "/a"],
  ] as const) {
    t.equal(
      forwardedPrefix(place(prefix === "" ? {} : { "x-forwarded-prefix": prefix }, true)),
      expected,
      prefix,
    );
  }
});

const routes = [
  routeOf("/where/{name}", async ({ serviceUrl }) => {
    throw new Error(serviceUrl);
  }),
  routeOf("/datasets/{name}", () => ({ kind: "redirect", to: "with-slash" })),
];

t.test("on the wire, forwarded headers count from trusted peers only", async (t) => {
  const headers = {
    "X-Forwarded-Host": "data.example",
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Prefix": "/api",
  };
  for (const [trustedProxies, url, location] of [
    [["127.0.0.0/8"], "https://data.example/api", "/api/datasets/x/?a=1"],
    [["10.0.0.0/8"], "http://test/root", "/root/datasets/x/?a=1"],
    [[], "http://test/root", "/root/datasets/x/?a=1"],
  ] as const) {
    const { port, lines } = await startTestServer(t, routes, { trustedProxies, rootPath: "/root" });
    await rawRequest(port, "/root/where/x", { headers });
    t.match(lines.at(-1), { msg: url });
    const redirected = await rawRequest(port, "/root/datasets/x?a=1", { headers });
    t.equal(redirected.headers.location, location);
  }
});

t.test("what quotes an address that a proxy may name is asked for each time", async (t) => {
  const long = "public, max-age=31536000, immutable";
  const document = createDocument("<p>http://data.example</p>", "text/html");
  const quoting = [
    ...routes,
    routeOf("/page", () => ({ kind: "document", document, cacheControl: long, quotesAddress: true })),
    routeOf("/data", () => ({ kind: "document", document, cacheControl: long })),
  ];
  for (const [trustedProxies, expected] of [
    [["127.0.0.1"], "public, max-age=0, must-revalidate"],
    [[], long],
  ] as const) {
    const { port } = await startTestServer(t, quoting, { trustedProxies, cacheControl: long });
    t.equal((await rawRequest(port, "/page")).headers["cache-control"], expected);
    t.equal((await rawRequest(port, "/datasets/x")).headers["cache-control"], expected);
    t.equal((await rawRequest(port, "/data")).headers["cache-control"], long);
  }
});

t.test("a prefix never leads a redirect to another host", async (t) => {
  const { port } = await startTestServer(t, routes, { trustedProxies: ["127.0.0.1"] });
  for (const prefix of ["//evil.example", "/\\evil.example", "https://evil.example", "/..//evil.example"]) {
    const { headers } = await rawRequest(port, "/datasets/x", { headers: { "X-Forwarded-Prefix": prefix } });
    t.equal(headers.location, "/datasets/x/", prefix);
  }
});

t.test("the log names the client that a trusted proxy names, else the one that connected", async (t) => {
  const headers = { "X-Forwarded-For": "203.0.113.9" };
  for (const [host, trustedProxies, client] of [
    ["127.0.0.1", ["127.0.0.1"], "203.0.113.9"],
    ["127.0.0.1", ["::1"], "127.0.0.1"],
    ["[::1]", ["::1"], "203.0.113.9"],
    ["[::1]", [], "::1"],
  ] as const) {
    const { port, lines } = await startTestServer(t, routes, {
      trustedProxies,
      accessLogShare: 1,
      host: "::",
    });
    await fetch(`http://${host}:${port}/datasets/x`, { headers, redirect: "manual" });
    t.match(lines.at(-1), { msg: "request", client }, `${host}, ${trustedProxies}`);
  }
});
