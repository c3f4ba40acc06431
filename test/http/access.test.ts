import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import t from "tap";
import { createAddressSet, privateCacheControl } from "../../src/http/access/access-rules.js";
import { withoutTicket } from "../../src/http/access/authorize.js";
import { createCredentials } from "../../src/http/access/credentials.js";
import {
  forwardedPrefix,
  lastUntrusted,
  locationWithSlash,
  serviceUrlOf,
} from "../../src/http/access/forwarded.js";
import { createGrant } from "../../src/http/access/grants.js";
import { readTokenFile } from "../../src/http/access/tokens.js";
import { createDocument } from "../../src/http/create-document.js";
import { createHealthEndpoints } from "../../src/server/readiness.js";
import { jsonOf, rawRequest } from "../support/servers/raw-request.js";
import { bodyReplyOf, routeOf, serveRoutes } from "../support/servers/serve-routes.js";
import { makeDirectory } from "../support/write-store.js";

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
    const { port, lines } = await serveRoutes(t, routes, { trustedProxies, rootPath: "/root" });
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
    const { port } = await serveRoutes(t, quoting, { trustedProxies, cacheControl: long });
    t.equal((await rawRequest(port, "/page")).headers["cache-control"], expected);
    t.equal((await rawRequest(port, "/datasets/x")).headers["cache-control"], expected);
    t.equal((await rawRequest(port, "/data")).headers["cache-control"], long);
  }
});

t.test("a prefix never leads a redirect to another host", async (t) => {
  const { port } = await serveRoutes(t, routes, { trustedProxies: ["127.0.0.1"] });
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
    const { port, lines } = await serveRoutes(t, routes, {
      trustedProxies,
      accessLogShare: 1,
      host: "::",
    });
    await fetch(`http://${host}:${port}/datasets/x`, { headers, redirect: "manual" });
    t.match(lines.at(-1), { msg: "request", client }, `${host}, ${trustedProxies}`);
  }
});

t.test("adds a slash and keeps the query", async (t) => {
  t.equal(locationWithSlash("/data/datasets/x", ""), "/data/datasets/x/");
  t.equal(locationWithSlash("/datasets/x", "a=1&b=%20"), "/datasets/x/?a=1&b=%20");
  t.equal(locationWithSlash("/datasets/%C3%A9", ""), "/datasets/%C3%A9/");
  t.equal(locationWithSlash("/datasets/é", ""), "/datasets/%C3%A9/");
});

t.test("never leads to another host, and is always printable ASCII", async (t) => {
  const base = "http://here.example:9000/some/where";
  for (const path of ["//evil.example/x", "/\\evil.example/x", "///evil.example", "/\\/evil.example"]) {
    t.equal(new URL(locationWithSlash(path, ""), base).host, "here.example:9000", path);
  }
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), fc.string({ unit: "grapheme" }), (path, query) => {
      const location = locationWithSlash(`/${path}`, query);
      return /^[\x21-\x7e]+$/.test(location) && new URL(location, base).host === "here.example:9000";
    }),
  );
});

const TOKEN = "correct-horse+battery/staple==";
const OTHER = "another-token-of-some-length";

async function tokenFile(t: Parameters<typeof makeDirectory>[0], text: string): Promise<string> {
  const file = join(await makeDirectory(t), "tokens");
  await writeFile(file, text);
  return file;
}

t.test("a file has a token per line, besides comments and empty lines", async (t) => {
  const tokens = await readTokenFile(
    await tokenFile(t, `# readers\n\n${TOKEN}\r\n  ${OTHER}  \n#${TOKEN}x\n`),
  );
  const { find } = createCredentials({ tokens, signingKey: "key" });
  t.match(find(TOKEN), { rules: [], expiresMs: Infinity });
  t.match(find(OTHER), { rules: [], expiresMs: Infinity });
  for (const no of ["", "# readers", `${TOKEN}x`, TOKEN.slice(1), `#${TOKEN}x`, TOKEN.toUpperCase()]) {
    t.notOk(find(no), no);
  }
});

t.test("an invalid token is named by its line, without quoting it", async (t) => {
  const short = "tooshort";
  for (const [text, message] of [
    [`${TOKEN}\n${short}\n`, /line 2: expected a token of 16 to 1024 characters, received one of 8$/],
    [`${TOKEN},with-a-comma\n`, /line 1: expected a token of letters, digits/],
    [`${TOKEN} a\n${TOKEN} b\n`, /line 2: expected another token than those of the lines before/],
    [`${TOKEN} a expires=soon\n`, /line 1: expected at most one end such as expires=2027-01-31/],
    [`${TOKEN} expires=2027-13-01`, /line 1: expected at most one end/],
    [`${TOKEN} expires=2027-01-01 expires=2028-01-01`, /line 1: expected at most one end/],
    [`${TOKEN} expires=2027-01-01T10:00`, /line 1: expected at most one end/],
    [`${"é".repeat(20)}\n`, /line 1: expected a token of letters, digits/],
    ["# nothing\n\n", /expected at least one token, received none/],
  ] as const) {
    const file = await tokenFile(t, text);
    const error = await readTokenFile(file).catch((thrown: Error) => thrown);
    t.match(error, { code: "invalid-config", message }, String(message));
    t.notMatch((error as Error).message, new RegExp(`${short}|correct|${OTHER}`));
  }
  await t.rejects(readTokenFile("/nowhere/tokens"), {
    code: "invalid-config",
    message: "Token file '/nowhere/tokens': cannot be read: ENOENT",
  });
});

t.test("a line may have patterns of datasets and an end", async (t) => {
  const lines = [
    `${TOKEN} air sea~* expires=2027-01-31T12:00:00+02:00`,
    `${OTHER}\texpires=2027-01-31`,
    `${OTHER}2  * air`,
  ];
  const entries = await readTokenFile(await tokenFile(t, lines.join("\n")));
  t.same(entries, [
    { token: TOKEN, patterns: ["air", "sea~*"], expiresMs: Date.UTC(2027, 0, 31, 10) },
    { token: OTHER, patterns: [], expiresMs: Date.UTC(2027, 0, 31) },
    { token: `${OTHER}2`, patterns: ["*", "air"], expiresMs: Infinity },
  ]);
});

t.test("a pattern stands for the whole id, and its asterisks for any text", async (t) => {
  for (const [pattern, yes, no] of [
    ["air", ["air"], ["Air", "air2", "xair", "", "air~x", "ai"]],
    ["air*", ["air", "air2", "air~x~y"], ["xair", "ai"]],
    ["*air", ["air", "xair"], ["air2"]],
    ["a*b*c", ["abc", "axbxc", "abbc", "abcbc"], ["ac", "abx", "acb", "xabc"]],
    ["ab*ba", ["abba", "abxba"], ["aba", "ab"]],
    ["a.c", ["a.c"], ["abc"]],
    ["a**c", ["ac", "abc"], ["a"]],
  ] as const) {
    const { allows } = createGrant("x", [[pattern]]);
    for (const id of yes) t.ok(allows(id), `${pattern} ${id}`);
    for (const id of no) t.notOk(allows(id), `${pattern} ${id}`);
  }
  t.ok(createGrant("x", []).allows("any"));
  t.notOk(createGrant("x", [[]]).allows("any"), "a list without patterns is for nothing");
  const narrowed = createGrant("x", [["a*"], ["*b", "*"], ["*c", "*d"]]);
  t.same(["abc", "ad", "ab", "bc"].map(narrowed.allows), [true, true, false, false], "all lists count");
});

t.test("patterns agree with regular expressions, and many asterisks take no time", async () => {
  const part = fc.stringMatching(/^[ab]{0,2}$/);
  fc.assert(
    fc.property(
      fc.array(part, { minLength: 1, maxLength: 5 }),
      fc.stringMatching(/^[ab]{0,8}$/),
      (parts, id) => {
        const expected = new RegExp(`^${parts.join(".*")}$`).test(id);
        return createGrant("x", [[parts.join("*")]]).allows(id) === expected;
      },
    ),
  );
  const hard = "a*".repeat(400);
  const beganMs = performance.now();
  createGrant("x", [[`${hard}b`]]).allows("a".repeat(1_000));
  if (performance.now() - beganMs > 100) throw new Error("expected a few microseconds");
});

const readiness = { check: async () => ({ ready: true, checks: {} }) };
const metrics = { contentType: "text/plain", render: async () => "up 1\n" };
const endpoints = createHealthEndpoints({ readiness, metrics });
const bytes = Buffer.from("chunk");
const tokenRoutes = [
  routeOf("/plain", () => ({
    ...bodyReplyOf(bytes, '"e"', { cacheControl: "public, max-age=31536000, immutable" }),
  })),
  routeOf("/dir/{name}", () => ({ kind: "redirect", to: "with-slash" })),
];
const credentialsOf = (...tokens: readonly string[]) =>
  createCredentials({
    tokens: tokens.map((token) => ({ token, patterns: [], expiresMs: Infinity })),
    signingKey: "key",
  });
const credentials = credentialsOf(TOKEN, OTHER);

t.test("without a token only the health endpoints answer", async (t) => {
  const { port } = await serveRoutes(t, tokenRoutes, { credentials, endpoints });
  for (const path of ["/plain", "/nowhere", "/dir/a", "/metrics", "/%ff", "/plain?token=", "/plain?token"]) {
    const answer = await rawRequest(port, path);
    t.equal(answer.status, 401, path);
    t.match(answer.headers, {
      "www-authenticate": /^Bearer realm="zpublish"/,
      "access-control-allow-origin": "*",
      "cache-control": /private/,
      vary: "Authorization, Cookie",
      "referrer-policy": "no-referrer",
    });
    t.match(jsonOf(answer), { detail: /^Expected a / });
  }
  for (const path of ["/healthz", "/readyz"]) t.equal((await rawRequest(port, path)).status, 200, path);
  t.equal((await rawRequest(port, "/plain", { method: "OPTIONS" })).status, 204);
  t.equal((await rawRequest(port, "/plain", { method: "HEAD" })).status, 401);
  t.equal((await rawRequest(port, "/plain", { method: "POST" })).status, 405);
});

t.test("pages of other origins hear that they need a token, if they may hear anything", async (t) => {
  const origins = "https://a.example, https://b.example";
  const { port } = await serveRoutes(t, tokenRoutes, { credentials, corsOrigin: origins });
  const allowed = { Origin: "https://b.example" };
  for (const [path, status] of [
    ["/plain", 401],
    [`/plain?token=${TOKEN}`, 200],
    [`/nowhere?token=${TOKEN}`, 404],
  ] as const) {
    const answer = await rawRequest(port, path, { headers: allowed });
    t.match(answer, {
      status,
      headers: {
        "access-control-allow-origin": "https://b.example",
        "access-control-expose-headers": /, X-Request-Id$/,
        vary: "Authorization, Cookie, Origin",
      },
    });
    const other = await rawRequest(port, path, { headers: { Origin: "https://c.example" } });
    t.equal(other.headers["access-control-allow-origin"], undefined);
    t.equal(other.headers.vary, "Authorization, Cookie, Origin");
  }
  const ask = { "Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "authorization" };
  const preflight = await rawRequest(port, "/plain", { method: "OPTIONS", headers: { ...allowed, ...ask } });
  t.match(preflight, { status: 204, headers: { "access-control-allow-headers": /Authorization/ } });
  const refused = { ...ask, Origin: "https://c.example" };
  const { headers } = await rawRequest(port, "/plain", { method: "OPTIONS", headers: refused });
  t.equal(headers["access-control-allow-origin"], undefined);
});

t.test("a token opens in the header and in the query, whatever way it is written", async (t) => {
  const { port } = await serveRoutes(t, tokenRoutes, { credentials, endpoints });
  for (const authorization of [`Bearer ${TOKEN}`, `bearer  ${TOKEN} `, `BEARER ${OTHER}`]) {
    t.equal((await rawRequest(port, "/plain", { headers: { Authorization: authorization } })).status, 200);
  }
  for (const query of [`token=${TOKEN}`, `a=1&token=${encodeURIComponent(TOKEN)}&b`, `token=${OTHER}`]) {
    t.equal((await rawRequest(port, `/plain?${query}`)).status, 200, query);
    t.equal((await rawRequest(port, `/metrics?${query}`)).status, 200, query);
  }
  const wrong = { headers: { Authorization: "Bearer wrong-token-of-some-length" } };
  t.equal((await rawRequest(port, `/plain?token=${TOKEN}`, wrong)).status, 200, "either will do");
  for (const [path, headers] of [
    ["/plain", wrong.headers],
    ["/plain", { Authorization: `Basic ${TOKEN}` }],
    ["/plain", { Authorization: TOKEN }],
    ["/plain", { Authorization: `Bearer ${TOKEN}, Bearer ${TOKEN}` }],
    [`/plain?token=${TOKEN}x`, {}],
    [`/plain?token=%ff`, {}],
    [`/plain?Token=${TOKEN}`, {}],
    [`/plain?xtoken=${TOKEN}`, {}],
    [`/plain?token=wrong-token-of-some-length&token=${TOKEN}`, {}],
    [`/plain/${TOKEN}`, {}],
  ] as const) {
    const answer = await rawRequest(port, path, { headers });
    t.equal(answer.status, 401, `${path} ${JSON.stringify(headers)}`);
  }
  const invalid = await rawRequest(port, "/plain", wrong);
  t.match(invalid.headers["www-authenticate"], /error="invalid_token"/);
});

t.test("a reply that is kept is for those with a token, too", async (t) => {
  const { port } = await serveRoutes(t, tokenRoutes, { credentials });
  for (let time = 0; time < 4; time++) {
    const answer = await rawRequest(port, `/plain?token=${TOKEN}`);
    t.equal(answer.status, 200);
    t.equal(
      answer.headers["cache-control"],
      "private, max-age=31536000, immutable",
      "for no cache of many users",
    );
    t.equal(answer.headers.vary, "Authorization, Cookie");
    t.equal((await rawRequest(port, "/plain")).status, 401);
    const conditional = await rawRequest(port, "/plain", { headers: { "If-None-Match": '"e"' } });
    t.equal(conditional.status, 401, "not even whether it has changed is told");
  }
});

t.test("a redirect keeps the token in the query", async (t) => {
  const { port } = await serveRoutes(t, tokenRoutes, { credentials });
  const answer = await rawRequest(port, `/dir/a?token=${OTHER}`);
  t.equal(answer.status, 301);
  t.equal(answer.headers.location, `/dir/a/?token=${OTHER}`);
});

t.test("other tokens count from one site to the next", async (t) => {
  const { server, port } = await serveRoutes(t, tokenRoutes, { credentials });
  server.use({ routes: tokenRoutes, credentials: credentialsOf(OTHER) });
  t.equal((await rawRequest(port, `/plain?token=${TOKEN}`)).status, 401);
  t.equal((await rawRequest(port, `/plain?token=${OTHER}`)).status, 200);
  server.use({ routes: tokenRoutes });
  const open = await rawRequest(port, "/plain");
  t.equal(open.headers["cache-control"], "public, max-age=31536000, immutable");
  t.equal(open.headers.vary, undefined);
});

t.test("caches of many users are told to keep nothing, a reader's own as before", async (t) => {
  for (const [given, expected] of [
    ["public, max-age=0, must-revalidate", "private, max-age=0, must-revalidate"],
    ["max-age=60", "private, max-age=60"],
    ["Public, s-maxage=600, max-age=60", "private, max-age=60"],
    ["no-store", "no-store"],
    ["private, max-age=5", "private, max-age=5"],
    ["no-cache", "private, no-cache"],
    ["public", "private"],
  ] as const) {
    t.equal(privateCacheControl(given), expected);
  }
});

t.test("a ticket is in no log, however it is written", async (t) => {
  const ticket = credentials.signTicket(createGrant("x", []), Date.now() + 60_000, []);
  for (const [path, expected] of [
    [`/s/${ticket}/datasets/x`, "/s/…/datasets/x"],
    [`/root/s/${ticket}`, "/root/s/…"],
    [`//s/${ticket}//`, "//s/…//"],
    [`/%73/${ticket}/a`, "/%73/…/a"],
    [`/s/${ticket.replace(".", "%2E")}/a`, "/s/…/a"],
    [`/s/${ticket.slice(0, -1)}/a`, "/s/…/a"],
    [`/a/${ticket}`, "/a/…"],
    ["/datasets/s/zarr/s/0.0", "/datasets/s/zarr/s/0.0"],
  ] as const)
    t.equal(withoutTicket(path), expected);
  t.notOk(withoutTicket(`/s/${ticket}x/a`).includes(ticket.slice(-20)));
});
