import { join } from "node:path";
import t, { type Test } from "tap";
import { datasetOf, flatSource } from "../support/datasets/sample-tree.js";
import { crawl } from "../support/servers/crawl.js";
import { accessOf, type RunningServer, startServer } from "../support/servers/start-server.js";
import { makeDirectory, writeFiles } from "../support/write-store.js";

const TOKEN = "a-token+of/a-client==";
const GUEST = "token-of-a-guest";
const SOON = "token-that-ends-soon";
const HEADERS = { authorization: `Bearer ${TOKEN}` };
const overviews = { levels: 1, method: "mean" } as const;

/** Starts a server with tokens and two datasets. */
async function start(t: Test, more: Parameters<typeof startServer>[1] = {}) {
  const directory = await makeDirectory(t);
  const many = Array.from({ length: 400 }, (_, index) => `dataset-${index}`).join(" ");
  await writeFiles(directory, {
    tokens: `${TOKEN}\n${GUEST} flat\n${SOON} * expires=${new Date(Date.now() + 90_000).toISOString().replace(/\.\d+/, "")}\n${GUEST}-of-many ${many}\n`,
    key: `${"k".repeat(40)}\n`,
    short: "short\n",
  });
  const { access = {}, ...config } = more;
  const server = await startServer(t, {
    datasets: ["flat", "other"].map((id) => datasetOf(id, flatSource(), { overviews })),
    ...config,
    access: accessOf({ ...access, tokenFile: join(directory, "tokens") }),
  });
  return { ...server, directory };
}

/** Asks for tickets. */
async function open(
  { url }: Pick<RunningServer, "url">,
  query = "",
  headers: Record<string, string> = HEADERS,
) {
  const answer = await fetch(`${url}/session${query}`, { method: "POST", headers });
  const body = (await answer.json()) as {
    readonly prefix: string;
    readonly expires: string;
    readonly detail: unknown;
  };
  const cookie = answer.headers.get("set-cookie") ?? "";
  return { answer, ...body, cookie, pair: { cookie: cookie.split(";")[0] as string } };
}

t.test("a session has a cookie for browsers and a prefix for programs", async (t) => {
  const server = await start(t, { rootPath: "/root", access: accessOf({ trustedProxies: ["127.0.0.1"] }) });
  const { answer, prefix, cookie, expires } = await open(server);
  t.match(answer.headers, { get: Function });
  t.match(
    cookie,
    /^zpublish_session=[\w-]+\.[\w-]{43}; Path=\/root; Max-Age=86\d{3}; HttpOnly; SameSite=Lax$/,
  );
  t.equal(answer.headers.get("cache-control"), "no-store");
  t.ok(prefix.startsWith(`${server.url}/s/`), "the address of the service has the root path");
  t.ok(Math.abs(Date.parse(expires) - Date.now() - 86_400_000) < 5_000);
  const proxied = await open(server, "", {
    ...HEADERS,
    "x-forwarded-proto": "https",
    "x-forwarded-host": "data.example",
    "x-forwarded-prefix": "/air",
  });
  t.match(proxied.cookie, /; Path=\/air; .*; Secure$/);
  t.match(proxied.prefix, /^https:\/\/data\.example\/air\/s\/[\w-]+\.[\w-]{43}\/$/);
  const below = await open({ url: prefix.replace(/\/$/, "") });
  t.match(below.prefix, /^[^?]*\/root\/s\/[^/]+\/$/, "not one below another");
  t.equal((await server.get("/session", HEADERS)).status, 405);
  t.equal((await server.get("/session", HEADERS)).headers.get("allow"), "POST, OPTIONS");
});

t.test("only a token opens a session, and a session is no longer or wider than it", async (t) => {
  const server = await start(t);
  const first = await open(server);
  for (const [headers, path] of [
    [{}, ""],
    [first.pair, ""],
    [{}, `/s/${first.prefix.split("/s/")[1]?.replace(/\/$/, "")}`],
    [{ authorization: "Bearer wrong-token-of-some-length", ...first.pair }, ""],
  ] as const) {
    const { status, headers: got } = await fetch(`${server.url}${path}/session`, { method: "POST", headers });
    t.equal(status, 401, JSON.stringify(headers));
    t.match(got.get("www-authenticate"), /^Bearer/);
    t.equal(got.get("set-cookie"), null);
  }
  for (const query of [
    "?seconds=59",
    "?seconds=1e3",
    "?seconds=99999999",
    "?until=1",
    "?seconds=60&seconds=61",
  ])
    t.equal((await open(server, query)).answer.status, 422, query);
  t.equal(
    (await open(server, "", { authorization: `Bearer ${GUEST}-of-many` })).answer.status,
    200,
    "the ticket names the token",
  );
  const many = Array.from({ length: 400 }, (_, index) => `dataset=dataset-${index}`).join("&");
  t.equal((await open(server, `?${many}`)).answer.status, 413, "too long for a cookie");
  const soon = await open(server, "", { authorization: `Bearer ${SOON}` });
  t.ok(Date.parse(soon.expires) <= Date.now() + 90_000);
  const narrow = await open(server, "?dataset=f*&dataset=x", HEADERS);
  const guest = await open(server, "?dataset=*", { authorization: `Bearer ${GUEST}` });
  for (const { pair, prefix } of [narrow, guest]) {
    t.equal((await server.get("/datasets/flat/keys", pair)).status, 200);
    t.equal((await server.get("/datasets/other/keys", pair)).status, 403);
    t.same(await (await fetch(`${prefix}datasets`)).json(), ["flat"]);
  }
  const { now } = Date;
  t.teardown(() => Object.assign(Date, { now }));
  for (const [laterMs, expected] of [
    [80_000, [200, 200]],
    [91_000, [401, 200]],
    [86_401_000, [401, 401]],
  ] as const) {
    Object.assign(Date, { now: () => now() + laterMs });
    const statuses = [soon, first].map(async ({ prefix }) => (await fetch(`${prefix}datasets`)).status);
    t.same(await Promise.all(statuses), expected);
  }
});

t.test("every link below a prefix stays below it, without any header", async (t) => {
  for (const rootPath of ["", "/root"]) {
    const server = await start(t, { rootPath });
    const { prefix } = await open(server, "?dataset=flat");
    const { visited, elsewhere } = await crawl(prefix);
    t.same(
      [...visited].filter(([path, status]) => status !== 200 && path !== "datasets/"),
      [],
      "but what is above a listing",
    );
    t.same(elsewhere, []);
    const paths = [...visited.keys()].map((path) => path.replace(/\?.*/, ""));
    for (const path of [
      "",
      "datasets",
      "docs",
      "datasets/flat/explore",
      "datasets/flat/zarr/.zmetadata",
      "datasets/flat/overviews/zarr",
    ])
      t.ok(paths.includes(path), path);
    t.notOk(paths.some((path) => path.includes("other")));
    for (const path of ["catalog.xml", "stac", "stac/collections", "sitemap.xml"]) {
      const text = await (await fetch(prefix + path)).text();
      const links = [...text.matchAll(/(?:https?:\/\/127\.0\.0\.1|(?<=["=])\/)[^"<>\s]+/g)].map(
        ([link]) => new URL(link, server.url).href,
      );
      t.ok(links.length > 0, path);
      t.same(
        links.filter((link) => !link.startsWith(prefix.replace(/\/$/, ""))),
        [],
        path,
      );
    }
    const missing = await fetch(`${prefix}datasets/flat/groups/none/x`, { headers: { accept: "text/html" } });
    t.equal(missing.status, 404);
    const page = await missing.text();
    const [, home = ""] = /<a href="([^"]*)">Start page/.exec(page) ?? [];
    t.equal(new URL(home, missing.url).href, prefix);
  }
});

t.test("servers with one key take each other's tickets, and none of another key", async (t) => {
  const [one, other] = [await start(t), await start(t)];
  const key = accessOf({ signingKeyFile: join(one.directory, "key") });
  const [third, fourth] = [await start(t, { access: key }), await start(t, { access: key })];
  const statusAt = async (server: RunningServer, { pair }: { readonly pair: Record<string, string> }) =>
    (await server.get("/datasets", pair)).status;
  t.same([await statusAt(one, await open(one)), await statusAt(other, await open(one))], [200, 401]);
  t.same([await statusAt(fourth, await open(third)), await statusAt(third, await open(one))], [200, 401]);
  await t.rejects(start(t, { access: accessOf({ signingKeyFile: join(one.directory, "short") }) }), {
    code: "invalid-config",
    message: /Signing key .*: expected at least 32 characters, received 5/,
  });
  await t.rejects(start(t, { access: accessOf({ signingKeyFile: "/nowhere/key" }) }), {
    message: /cannot be read: ENOENT/,
  });
});

t.test("answers are for no shared cache, and conditions hold below a prefix as elsewhere", async (t) => {
  const server = await start(t);
  const { prefix, pair } = await open(server);
  for (const [url, headers] of [
    [`${prefix}datasets/flat/zarr/t/0.0`, {}],
    [`${server.url}/datasets/flat/zarr/t/0.0`, pair],
    [`${server.url}/datasets/flat/zarr/t/0.0`, HEADERS],
  ] as const) {
    const whole = await fetch(url, { headers });
    const etag = whole.headers.get("etag") as string;
    const kept = await fetch(url, { headers: { ...headers, "if-none-match": etag } });
    t.equal(kept.status, 304);
    const head = await fetch(url, { headers, method: "HEAD" });
    for (const { headers: got } of [whole, kept, head]) {
      t.match(got.get("cache-control"), /^private/);
      t.equal(got.get("vary"), "Authorization, Cookie");
      t.equal(got.get("etag"), etag);
      t.equal(got.get("referrer-policy"), "no-referrer");
    }
  }
  t.equal((await fetch(`${server.url}/datasets`, { headers: { "if-none-match": "*" } })).status, 401);
});
