import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, type JWK, SignJWT } from "jose";
import t, { type Test } from "tap";
import { createCredentials } from "../../src/http/access/credentials.js";
import { createIssuer } from "../../src/http/access/issuer.js";
import { createDocument } from "../../src/http/create-document.js";
import { rawRequest } from "../support/servers/raw-request.js";
import { createTestLog, routeOf, serveRoutes } from "../support/servers/serve-routes.js";

const ISSUER = "https://issuer.example";
const AUDIENCE = "zpublish";
const TOKEN = "a-token-of-the-token-file";

/** Creates a key pair of an issuer. */
async function keyOf(alg: string, kid: string) {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  return { alg, kid, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg } as JWK };
}

type Key = Awaited<ReturnType<typeof keyOf>>;

/** Signs a JWT that is valid for an hour, unless claims say otherwise. */
function sign(
  { alg, kid, privateKey }: Key,
  claims: Readonly<Record<string, unknown>> = {},
): Promise<string> {
  const now = Math.floor(Date.now() / 1_000);
  const all = { iss: ISSUER, aud: AUDIENCE, exp: now + 3_600, datasets: ["air"], ...claims };
  const given = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
  return new SignJWT(given).setProtectedHeader({ alg, kid }).sign(privateKey);
}

/** Starts an issuer's server, whose answers a test decides. */
async function startIssuer(t: Test, first: readonly Key[]) {
  const state = {
    keys: first,
    requests: 0,
    hanging: [] as ServerResponse[],
    answer: "keys" as "keys" | "hang" | "fail" | "long",
  };
  const server = createServer((_, res) => {
    state.requests++;
    if (state.answer === "hang") state.hanging.push(res);
    else if (state.answer === "fail") res.writeHead(500).end();
    else if (state.answer === "long") res.end(`{"keys":[],"x":"${"x".repeat(2 ** 20)}"}`);
    else res.end(JSON.stringify({ keys: state.keys.map(({ jwk }) => jwk) }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const jwksUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks.json`;
  return Object.assign(state, { jwksUrl });
}

const routes = [
  routeOf("/datasets/{dataset_id}", ({ params }) => ({
    kind: "document",
    document: createDocument(params.dataset_id as string, "text/plain"),
  })),
  {
    ...routeOf("/echo", async (request) => ({
      kind: "document",
      document: createDocument(await request.body(), "text/plain"),
    })),
    methods: ["POST" as const],
    maxBodyBytes: 100_000,
  },
];

async function start(t: Test, keys: readonly Key[], { timeoutMs = 5_000 } = {}) {
  const issuer = await startIssuer(t, keys);
  const clock = { nowMs: 0 };
  const options = { jwksUrl: issuer.jwksUrl, issuer: ISSUER, audience: AUDIENCE, claim: "datasets" };
  const { log, lines } = createTestLog();
  const credentials = createCredentials({
    tokens: [{ token: TOKEN, patterns: [], expiresMs: Number.POSITIVE_INFINITY }],
    issuer: createIssuer(options, log, { now: () => clock.nowMs, timeoutMs }),
    signingKey: "key",
  });
  const { currentGrant } = await import("../../src/http/access/grants.js");
  const mayRead = (id: string) => currentGrant()?.allows(id) ?? true;
  const { port } = await serveRoutes(t, routes, {
    credentials,
    datasets: { ready: () => undefined, mayRead },
  });
  const get = async (jwt: string, id = "air") => {
    const answer = await rawRequest(port, `/datasets/${id}`, { headers: { Authorization: `Bearer ${jwt}` } });
    return answer.status;
  };
  return { issuer, clock, port, get, lines };
}

t.test("a JWT opens what its claim says, if the issuer signed it for this audience and time", async (t) => {
  const keys = await Promise.all(
    ["RS256", "PS384", "ES256", "ES512", "EdDSA"].map((alg) => keyOf(alg, `key of ${alg}`)),
  );
  const { issuer, get } = await start(t, keys);
  for (const key of keys) t.equal(await get(await sign(key)), 200, key.alg);
  const [key] = keys as [Key];
  for (const [claim, air, sea] of [
    [["air", "s*"], 200, 200],
    [["*"], 200, 200],
    ["air land", 200, 403],
    [["land"], 403, 403],
    [[], 403, 403],
    [undefined, 403, 403],
    [17, 403, 403],
    [[null, "air"], 200, 403],
  ] as const) {
    const jwt = await sign(key, { datasets: claim });
    t.same([await get(jwt), await get(jwt, "sea")], [air, sea], JSON.stringify(claim));
  }
  const now = Math.floor(Date.now() / 1_000);
  for (const claims of [
    { iss: "https://other.example" },
    { iss: undefined },
    { aud: "other" },
    { aud: undefined },
    { exp: now - 60 },
    { exp: undefined },
    { nbf: now + 600 },
  ])
    t.equal(await get(await sign(key, claims)), 401, JSON.stringify(claims));
  t.equal(await get(await sign(key, { aud: ["other", AUDIENCE] })), 200);
  t.equal(issuer.requests, 1, "the keys are fetched once");
});

t.test("a JWT that others made is refused", async (t) => {
  const key = await keyOf("RS256", "one");
  const { get, lines } = await start(t, [key]);
  const jwt = await sign(key);
  const [head = "", payload = "", signature = ""] = jwt.split(".");
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const shared = await new SignJWT({ iss: ISSUER, aud: AUDIENCE, datasets: ["*"] })
    .setProtectedHeader({ alg: "HS256", kid: "one" })
    .setExpirationTime("1h")
    .sign(Buffer.from(JSON.stringify(key.jwk)));
  const impostor = await keyOf("RS256", "one");
  for (const wrong of [
    shared,
    await sign(impostor),
    `${encode({ alg: "none" })}.${payload}.`,
    `${encode({ alg: "none", kid: "one" })}.${payload}.${signature}`,
    `${encode({ alg: "RS256", kid: "one", jwk: impostor.jwk })}.${payload}.${signature}`,
    `${encode({ alg: "RS256", kid: "one", crit: ["b64"], b64: false })}.${payload}.${signature}`,
    `${head}.${encode({ iss: ISSUER, aud: AUDIENCE, exp: 4_102_444_800, datasets: ["*"] })}.${signature}`,
    `${head}.${payload}.${signature.slice(0, -4)}AAAA`,
    `${head}.${payload}`,
    `${jwt}.${signature}`,
    `eyJ.${payload}.${signature}`,
    `eyJhbGciOiJSUzI1NiJ.e30.AA`,
  ])
    t.equal(await get(wrong), 401, wrong.slice(0, 60));
  t.equal(await get(jwt), 200);
  t.notOk(JSON.stringify(lines).includes(payload), "no JWT is logged");
});

t.test("keys are rotated, and a hanging or failing issuer stops nobody whose key is known", async (t) => {
  const [old, next, last] = await Promise.all([
    keyOf("ES256", "old"),
    keyOf("ES256", "next"),
    keyOf("ES256", "last"),
  ]);
  const { issuer, clock, get, lines } = await start(t, [old], { timeoutMs: 300 });
  t.equal(await get(await sign(old)), 200);
  issuer.keys = [next];
  t.equal(await get(await sign(next)), 401, "not asked again at once");
  clock.nowMs += 30_001;
  t.same(
    await Promise.all([sign(next), sign(next, { jti: 2 })].map(async (jwt) => get(await jwt))),
    [200, 200],
  );
  t.equal(issuer.requests, 2, "one request for all who wait");
  t.equal(await get(await sign(old, { jti: 3 })), 401, "a key that was taken back counts no more");

  issuer.answer = "hang";
  clock.nowMs += 30_001;
  const waiting = Array.from({ length: 120 }, async (_, index) => get(await sign(last, { jti: index })));
  while (issuer.hanging.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
  t.equal(await get(await sign(next, { jti: 4 })), 200, "a known key is not held up");
  t.equal(await get(TOKEN), 200);
  t.same(new Set(await Promise.all(waiting)), new Set([503]), "a failure is not the client's fault");
  t.equal(issuer.requests, 3, "one request at a time");
  t.equal(await get(await sign(last, { jti: "x" })), 503, "and none soon after");
  t.equal(issuer.requests, 3);

  for (const answer of ["fail", "long"] as const) {
    issuer.answer = answer;
    clock.nowMs += 600_001;
    t.equal(await get(await sign(next, { jti: answer })), 200, `${answer}: keys are kept`);
    t.equal(await get(await sign(last, { jti: answer })), 503);
  }
  issuer.answer = "keys";
  issuer.keys = [next, last];
  clock.nowMs += 30_001;
  t.equal(await get(await sign(last, { jti: "again" })), 200);
  t.ok(lines.some(({ msg }) => /keys of the issuer/.test(msg)));
});

t.test("a JWT is verified once, and not after its end", async (t) => {
  const key = await keyOf("ES256", "one");
  const { issuer, clock, get } = await start(t, [key]);
  const jwt = await sign(key);
  t.equal(await get(jwt), 200);
  issuer.keys = [];
  clock.nowMs += 600_001;
  t.equal(await get(await sign(key, { jti: 1 })), 200, "keys are fetched in the background");
  while (issuer.requests < 2) await new Promise((resolve) => setTimeout(resolve, 1));
  t.equal(await get(jwt), 200);
  const { now } = Date;
  t.teardown(() => Object.assign(Date, { now }));
  Object.assign(Date, { now: () => now() + 3_601_000 });
  t.equal(await get(jwt), 401);
});

t.test("the body of a POST waits for the verification", async (t) => {
  const key = await keyOf("RS256", "one");
  const { port, issuer } = await start(t, [key]);
  const post = async (jwt: string, body: string, path = "/echo") =>
    (await fetch(`http://127.0.0.1:${port}${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${jwt}` },
      body,
    })) satisfies Response;
  const body = "x".repeat(90_000);
  const answer = await post(await sign(key), body);
  t.equal(answer.status, 200);
  t.equal(await answer.text(), body);
  t.equal((await post(await sign(key, { jti: 1 }), "x".repeat(200_000))).status, 413);
  t.equal((await post(await sign(key, { jti: 2 }), body, "/datasets/air")).status, 405);
  t.equal((await post(await sign(key, { iss: "other" }), body)).status, 401);
  issuer.answer = "fail";
  t.equal((await post(await sign(await keyOf("RS256", "two")), body)).status, 401);
});
