import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { privateCacheControl } from "../../../src/http/access/access-rules.js";
import { createTokens, readTokenFile } from "../../../src/http/access/tokens.js";
import { createHealthEndpoints } from "../../../src/server/readiness.js";
import { jsonOf, rawRequest } from "../../support/servers/raw-request.js";
import { bodyReplyOf, routeOf, startTestServer } from "../../support/servers/serve-routes.js";
import { makeDirectory } from "../../support/write-store.js";

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
  t.ok(tokens.has(TOKEN));
  t.ok(tokens.has(OTHER));
  for (const no of ["", "# readers", `${TOKEN}x`, TOKEN.slice(1), `#${TOKEN}x`, TOKEN.toUpperCase()]) {
    t.notOk(tokens.has(no), no);
  }
});

t.test("an invalid token is named by its line, without quoting it", async (t) => {
  const short = "tooshort";
  for (const [text, message] of [
    [`${TOKEN}\n${short}\n`, /line 2: expected a token of 16 to 1024 characters, received one of 8$/],
    [`${TOKEN} with a space\n`, /line 1: expected a token of letters, digits/],
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

const readiness = { check: async () => ({ ready: true, checks: {} }) };
const metrics = { contentType: "text/plain", render: async () => "up 1\n" };
const endpoints = createHealthEndpoints({ readiness, metrics });
const bytes = Buffer.from("chunk");
const routes = [
  routeOf("/plain", () => ({
    ...bodyReplyOf(bytes, '"e"', { cacheControl: "public, max-age=31536000, immutable" }),
  })),
  routeOf("/dir/{name}", () => ({ kind: "redirect", to: "with-slash" })),
];
const tokens = createTokens([TOKEN, OTHER]);

t.test("without a token only the health endpoints answer", async (t) => {
  const { port } = await startTestServer(t, routes, { tokens, endpoints });
  for (const path of ["/plain", "/nowhere", "/dir/a", "/metrics", "/%ff", "/plain?token=", "/plain?token"]) {
    const answer = await rawRequest(port, path);
    t.equal(answer.status, 401, path);
    t.match(answer.headers, {
      "www-authenticate": /^Bearer realm="zpublish"/,
      "access-control-allow-origin": "*",
      "cache-control": /private/,
      vary: "Authorization",
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
  const { port } = await startTestServer(t, routes, { tokens, corsOrigin: origins });
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
        vary: "Authorization, Origin",
      },
    });
    const other = await rawRequest(port, path, { headers: { Origin: "https://c.example" } });
    t.equal(other.headers["access-control-allow-origin"], undefined);
    t.equal(other.headers.vary, "Authorization, Origin");
  }
  const ask = { "Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "authorization" };
  const preflight = await rawRequest(port, "/plain", { method: "OPTIONS", headers: { ...allowed, ...ask } });
  t.match(preflight, { status: 204, headers: { "access-control-allow-headers": /Authorization/ } });
  const refused = { ...ask, Origin: "https://c.example" };
  const { headers } = await rawRequest(port, "/plain", { method: "OPTIONS", headers: refused });
  t.equal(headers["access-control-allow-origin"], undefined);
});

t.test("a token opens in the header and in the query, whatever way it is written", async (t) => {
  const { port } = await startTestServer(t, routes, { tokens, endpoints });
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
  const { port } = await startTestServer(t, routes, { tokens });
  for (let time = 0; time < 4; time++) {
    const answer = await rawRequest(port, `/plain?token=${TOKEN}`);
    t.equal(answer.status, 200);
    t.equal(
      answer.headers["cache-control"],
      "private, max-age=31536000, immutable",
      "for no cache of many users",
    );
    t.equal(answer.headers.vary, "Authorization");
    t.equal((await rawRequest(port, "/plain")).status, 401);
    const conditional = await rawRequest(port, "/plain", { headers: { "If-None-Match": '"e"' } });
    t.equal(conditional.status, 401, "not even whether it has changed is told");
  }
});

t.test("a redirect keeps the token in the query", async (t) => {
  const { port } = await startTestServer(t, routes, { tokens });
  const answer = await rawRequest(port, `/dir/a?token=${OTHER}`);
  t.equal(answer.status, 301);
  t.equal(answer.headers.location, `/dir/a/?token=${OTHER}`);
});

t.test("other tokens count from one site to the next", async (t) => {
  const { server, port } = await startTestServer(t, routes, { tokens });
  server.use({ routes, tokens: createTokens([OTHER]) });
  t.equal((await rawRequest(port, `/plain?token=${TOKEN}`)).status, 401);
  t.equal((await rawRequest(port, `/plain?token=${OTHER}`)).status, 200);
  server.use({ routes });
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
