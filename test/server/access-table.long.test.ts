import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import t, { type Test } from "tap";
import { datasetOf, flatSource } from "../support/datasets/sample-tree.js";
import { version, versionedSource } from "../support/datasets/versioned-source.js";
import { type RawAnswer, rawRequest } from "../support/servers/raw-request.js";
import { ALL_PLUGINS, accessOf, startServer } from "../support/servers/start-server.js";
import { makeDirectory } from "../support/write-store.js";

const FULL = "token-of-the-operator";
const LIMITED = "token-of-a-guest/some";
const EXPIRED = "token-of-last-year-all";
const FILE = `${FULL}\n${LIMITED} air air~* v missing* expires=2099-01-01\n${EXPIRED} * expires=2020-01-01\n`;

const overviews = { levels: 1, method: "mean" } as const;
const encodings = { rows: { chunks: { y: 1 } } };
const VERSIONS = [version("tag", "v1", "S1"), version("snapshot", "S1", "S1")];

/** A plugin that lists and opens datasets by its own paths, before and after it waits. */
const NOSY = {
  name: "nosy",
  version: "1",
  path: "test",
  routes: ({
    datasets,
    createDocument,
    summaries,
  }: Parameters<NonNullable<import("../../src/plugin-api.js").Plugin["routes"]>>[0]) => {
    const reply = (value: unknown) =>
      ({ kind: "document", document: createDocument(JSON.stringify(value), "application/json") }) as const;
    const route = (path: string, handler: (name: string) => Promise<unknown>) => ({
      path,
      priority: "page" as const,
      operation: { summary: path, contentType: "application/json" },
      handler: async ({ params }: { params: Readonly<Record<string, string>> }) =>
        reply(await handler(params.name ?? "")),
    });
    const later = () => new Promise((resolve) => setTimeout(resolve, 1));
    return [
      route("/nosy/summaries", async () => [...(await summaries(["air", "secret"])).keys()]),
      route("/nosy/list", async () => {
        const before = datasets.ids();
        await later();
        return [before, datasets.ids(), datasets.configuredCount, [...datasets.failures().keys()]];
      }),
      route("/nosy/open/{name}", async (name) => {
        await later();
        return (await datasets.open(name)).id;
      }),
      {
        ...route("/nosy/stream", async () => undefined),
        handler: () =>
          ({
            kind: "stream",
            contentType: "application/octet-stream",
            byteLength: 40 * 2 ** 19,
            async *pieces() {
              for (let piece = 0; piece < 40; piece++)
                yield Buffer.from(`${JSON.stringify(datasets.ids()).padEnd(2 ** 19 - 1)}\n`);
            },
          }) as const,
      },
      route("/nosy/get/{name}", async (name) => {
        await later();
        return datasets.get(name).id;
      }),
      route("/nosy/opened/{name}", async (name) => {
        await later();
        return datasets.opened(name)?.id ?? null;
      }),
    ];
  },
};

async function start(t: Test) {
  const directory = await makeDirectory(t);
  const tokenFile = join(directory, "tokens");
  await writeFile(tokenFile, FILE);
  const more = { overviews, encodings };
  const server = await startServer(t, {
    datasets: [
      ...["air", "secret", "secret~deep", "air~2024~hot"].map((id) => datasetOf(id, flatSource(), more)),
      ...["v", "secretv"].map((id) => datasetOf(id, versionedSource(VERSIONS), more)),
    ],
    plugins: [...ALL_PLUGINS, NOSY],
    access: accessOf({ tokenFile }),
  });
  const port = Number(new URL(server.url).port);
  const ask = (path: string, headers: Readonly<Record<string, string>> = {}, method = "GET") =>
    rawRequest(port, path, { headers, method });
  return { ...server, tokenFile, ask };
}

const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });

/** Signs tickets for a token. */
async function session(ask: Awaited<ReturnType<typeof start>>["ask"], token: string, query = "") {
  const answer = await ask(`/session${query}`, bearer(token), "POST");
  const { prefix } = JSON.parse(answer.body.toString()) as { readonly prefix: string };
  const [cookie = ""] = (answer.headers["set-cookie"] ?? "").split(";");
  return { prefix: new URL(prefix).pathname.replace(/\/$/, ""), cookie: { Cookie: cookie }, answer };
}

/** Values of the parameters of templates. */
const SAMPLES: Readonly<Record<string, string>> = {
  group_path: "",
  array_path: "t",
  variable_path: "t",
  encoding: "rows",
  folder: "",
  z: "0",
  x: "0",
  y: "0.png",
};

/** All paths of datasets that the service describes, for one dataset. */
async function datasetPaths(ask: Awaited<ReturnType<typeof start>>["ask"], id: string) {
  const { paths } = JSON.parse((await ask("/openapi.json", bearer(FULL))).body.toString()) as {
    readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  };
  return Object.entries(paths)
    .filter(([path]) => path.includes("{dataset_id}"))
    .flatMap(([path, item]) => {
      const filled = path
        .replace("{dataset_id}", id)
        .replace(/\{([a-z_]+)\}/g, (_, name: string) => SAMPLES[name] ?? "t");
      return ["get", "post"]
        .filter((method) => method in item)
        .map((method) => [method.toUpperCase(), filled] as const);
    });
}

for (const layer of ["", "node"]) {
  t.test(`served by ${layer || "uWebSockets.js"}`, async (t) => {
    const { ZPUBLISH_HTTP } = process.env;
    process.env.ZPUBLISH_HTTP = layer;
    t.teardown(() => {
      if (ZPUBLISH_HTTP === undefined) delete process.env.ZPUBLISH_HTTP;
      else process.env.ZPUBLISH_HTTP = ZPUBLISH_HTTP;
    });
    const { ask, lines } = await start(t);
    const limited = await session(ask, LIMITED);
    const full = await session(ask, FULL);
    const narrowed = await session(ask, FULL, "?dataset=air&seconds=60");
    const tampered = limited.prefix.replace(/.$/, (last) => (last === "A" ? "B" : "A"));
    const longer = limited.prefix.replace(/\/s\/[^.]*/, () => {
      const [, , ...rules] = JSON.parse(
        Buffer.from(limited.prefix.slice(3).split(".")[0]!, "base64url").toString(),
      );
      return `/s/${Buffer.from(JSON.stringify([4_102_444_800, "", ...rules])).toString("base64url")}`;
    });

    /** Credentials: prefix of paths, headers, and what they open. */
    const credentials = [
      ["none", "", {}, "nothing"],
      ["a wrong token", "", bearer("wrong-token-of-some-length"), "nothing"],
      ["an expired token", "", bearer(EXPIRED), "nothing"],
      ["a changed prefix", tampered, {}, "nothing"],
      ["a prefix with another payload", longer, {}, "nothing"],
      ["a changed cookie", "", { Cookie: `zpublish_session=${tampered.slice(3)}` }, "nothing"],
      ["a token in a cookie", "", { Cookie: `zpublish_session=${FULL}` }, "nothing"],
      ["a ticket as a token", "", bearer(limited.prefix.slice(3)), "nothing"],
      ["a limited token", "", bearer(LIMITED), "some"],
      ["a limited token in the query", "", {}, "some", `?token=${encodeURIComponent(LIMITED)}`],
      ["a limited prefix", limited.prefix, {}, "some"],
      ["a limited cookie", "", limited.cookie, "some"],
      ["a prefix narrowed to one dataset", narrowed.prefix, {}, "some"],
      ["a cookie narrowed to one dataset", "", narrowed.cookie, "some"],
      ["a full token", "", bearer(FULL), "all"],
      ["a full prefix", full.prefix, {}, "all"],
      ["a full cookie", "", full.cookie, "all"],
      ["a ticket as a token, after it was used", "", bearer(limited.prefix.slice(3)), "nothing"],
      ["a token as a ticket, after it was used", "", { Cookie: `zpublish_session=${LIMITED}` }, "nothing"],
      ["a wrong prefix with a full token", tampered, bearer(FULL), "all"],
    ] as const;

    const open = await datasetPaths(ask, "air");
    const others = ["secretv@v1", "secret~deep", "nowhere", "secret@v1", "nowhere@v1"];
    const below = ["keys", "zarr/.zmetadata", "zarr3/t/c/0/0"];
    const closed = [
      ...(await datasetPaths(ask, "secret")),
      ...others.flatMap((id) => below.map((path) => ["GET", `/datasets/${id}/${path}`] as const)),
    ];
    t.ok(open.length > 30, "all plugins describe their routes");
    const outside = [
      "/",
      "/?q=e",
      "/datasets",
      "/datasets?limit=1",
      "/catalog.xml",
      "/openapi.json",
      "/docs",
      "/plugins",
      "/versions",
      "/stac",
      "/stac/collections",
      "/sitemap.xml",
      "/llms.txt",
      "/robots.txt",
    ];

    const expected = new Map<string, RawAnswer>();
    for (const [method, path] of open)
      expected.set(`${method} ${path}`, await ask(path, bearer(FULL), method));
    t.ok([...expected.values()].every(({ status }) => ![401, 403, 405, 500].includes(status)));
    t.ok([...expected.values()].filter(({ status }) => status === 200).length > 20);

    for (const [name, prefix, headers, opens, query = ""] of credentials) {
      // Of each kind of credential, one is tried on every route.
      const isWhole = /^(?:none|a limited (?:token|prefix|cookie)|a full prefix)$/.test(name);
      const some = <T>(all: readonly T[]) => all.filter((_, at) => isWhole || at % 8 === 0);
      const refused: string[] = [];
      for (const [method, path] of some(closed)) {
        if (opens === "all") break;
        const { status, body, headers: got } = await ask(prefix + path + query, headers, method);
        const isRight =
          status === (opens === "nothing" ? 401 : 403) &&
          /^Bearer realm="zpublish"/.test(got["www-authenticate"] ?? "") &&
          /private/.test(got["cache-control"] ?? "") &&
          !/flat|units|scale_factor/.test(body.toString());
        if (!isRight) refused.push(`${method} ${path}: ${status}`);
      }
      t.same(refused, [], `${name} opens no dataset that it is not for, whether there is one or not`);

      const opened: string[] = [];
      for (const [method, path] of some(open)) {
        const { status, headers: got } = await ask(prefix + path + query, headers, method);
        const wanted = opens === "nothing" ? 401 : expected.get(`${method} ${path}`)?.status;
        const vary = (got.vary ?? "").split(", ");
        const isPrivate =
          vary.includes("Authorization") &&
          vary.includes("Cookie") &&
          /private|no-store/.test(got["cache-control"] ?? "");
        if (status !== wanted || !isPrivate) opened.push(`${method} ${path}: ${status}, expected ${wanted}`);
      }
      t.same(opened, [], `${name} opens ${opens}`);

      for (const path of outside) {
        const joined = path.includes("?") ? query.replace("?", "&") : query;
        const { status, body } = await ask(prefix + path + joined, headers);
        t.equal(status, opens === "nothing" ? 401 : 200, `${name}: ${path}`);
        const text = body.toString();
        if (opens === "some") t.notOk(text.includes("secret"), `${name}: ${path} lists nothing else`);
        if (opens === "all" && path === "/datasets") t.match(text, "secret~deep");
      }
      const metrics = (await ask(`/metrics${query}`, headers)).status;
      if (prefix === "") t.equal(metrics, { nothing: 401, some: 403, all: 200 }[opens], `${name}: /metrics`);
      t.equal((await ask(`${prefix}/datasets/air/keys`, headers, "OPTIONS")).status, 204);
    }

    t.equal(
      (await ask("/datasets/missing1/keys", bearer(LIMITED))).status,
      404,
      "it may know that this one is not there",
    );
    t.equal((await ask("/datasets/v@v1/keys", bearer(LIMITED))).status, 200, "a version is its dataset");
    t.equal((await ask("/datasets/v@v9/keys", bearer(LIMITED))).status, 404);
    const seen = lines.map((line) => JSON.stringify(line)).join("\n");
    for (const secret of [FULL, LIMITED, limited.prefix.slice(3), tampered.slice(3, 60)])
      t.notMatch(seen, secret, "no secret is logged");
    t.match(seen, '"path":"/s/…/datasets/secret/keys"');

    await t.test("no spelling of a path leads elsewhere", (t) => triesPaths(t, ask, limited));
    await t.test("no plugin lists or opens other datasets", (t) => triesPlugin(t, ask));
  });
}

async function triesPaths(
  t: Test,
  ask: Awaited<ReturnType<typeof start>>["ask"],
  { prefix }: { readonly prefix: string },
): Promise<void> {
  const paths = [
    "/datasets/%73ecret/keys",
    "/datasets/secre%74/zarr/.zmetadata",
    "/datasets//secret/keys",
    "//datasets/secret/keys",
    "/datasets/air/../secret/keys",
    "/datasets/air/%2e%2e/secret/keys",
    "/datasets/air/%2E./secret/keys",
    "/datasets/air%2f..%2fsecret/keys",
    "/datasets/air%2Fsecret/keys",
    "/datasets/air/zarr/../../secret/keys",
    "/datasets/air/groups/../../secret/keys",
    "/datasets/air\\..\\secret/keys",
    "/datasets/secret.zarr/.zmetadata",
    "/datasets/secret%2ezarr/.zmetadata",
    "/datasets/secretv@v1.zarr/.zmetadata",
    "/datasets/secretv%40S1/zarr/.zmetadata",
    "/datasets/secret~deep/zarr/t/0.0",
    "/datasets/secret/",
    "/datasets/secret",
    "/datasets/SECRET/keys",
    "/datasets/secret%00/keys",
    "/datasets/secret%20/keys",
    "/datasets/air~/keys",
    "/datasets/air@secret/keys",
    "/datasets/air@../secret/keys",
    "/datasets/secret;air/keys",
    "/datasets/secret?dataset_id=air",
    "/datasets/secret/references.json",
    "/datasets/secret/opendap/secret.nc.dds",
    "/datasets/secret/opendap/air.nc.dds",
    "/datasets/air/opendap/secret.nc.dds",
    "/datasets/secret/select?var=t&f=json",
    "/datasets/secret/thumbnail/t.png",
    "/catalog/secret/catalog.xml",
    "/?folder=secret",
    "/?q=secret",
    "/datasets?prefix=secret",
    "/datasets?after=air&limit=10",
    "/s/x/datasets/secret/keys",
    `${prefix}${prefix}/datasets/secret/keys`,
    `${prefix}/s/x/datasets/secret/keys`,
    `${prefix}//datasets/secret/keys`,
    `${prefix}/../datasets/secret/keys`,
    `${prefix}/metrics`,
    `${prefix}%2f/datasets/secret/keys`,
  ];
  for (const path of paths) {
    for (const method of ["GET", "HEAD", "POST"]) {
      const { status, body } = await ask(path, bearer(LIMITED), method);
      // What was asked for may be quoted; what is stored may not.
      const text = body.toString();
      t.notOk(/"units"|scale_factor|"t"|flat|Int16|href="[^"]*secret/.test(text), `${method} ${path}`);
      t.ok([200, 301, 403, 404, 405, 415, 422].includes(status), `${method} ${path}: ${status}`);
      const quoted = /[?=]secret/.test(path)
        ? /<title>secret|value="secret"|<bdi>secret<\/bdi>|content="secret|<span class="path">secret</g
        : /$^/;
      if (status === 200) t.notOk(text.replace(quoted, "").includes("secret"), path);
    }
  }
}

async function triesPlugin(t: Test, ask: Awaited<ReturnType<typeof start>>["ask"]): Promise<void> {
  const get = async (path: string, token: string) => {
    const { status, body } = await ask(path, bearer(token));
    return [status, status === 200 ? JSON.parse(body.toString()) : null];
  };
  const all = ["air", "secret", "secret~deep", "air~2024~hot", "v", "secretv"];
  const some = ["air", "air~2024~hot", "v"];
  // At the same time, so that one request waits while another is answered.
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, index) => get("/nosy/list", index % 2 === 0 ? FULL : LIMITED)),
  );
  for (const [index, answer] of answers.entries())
    t.same(answer, [200, index % 2 === 0 ? [all, all, 6, []] : [some, some, 3, []]]);
  const lines = (await ask("/nosy/stream", bearer(LIMITED))).body.toString().trim().split("\n");
  t.equal(lines.length, 40);
  t.same(
    [...new Set(lines.map((line) => line.trim()))].map((line) => JSON.parse(line)),
    [some],
  );
  t.same(await get("/nosy/summaries", FULL), [200, ["air", "secret"]]);
  t.same(await get("/nosy/summaries", LIMITED), [200, ["air"]]);
  for (const way of ["open", "get"]) {
    t.same(await get(`/nosy/${way}/secret`, FULL), [200, "secret"]);
    t.same(await get(`/nosy/${way}/secret`, LIMITED), [403, null]);
    t.same(await get(`/nosy/${way}/secretv@v1`, LIMITED), [403, null]);
    t.same(await get(`/nosy/${way}/nowhere`, LIMITED), [403, null]);
    t.same(await get(`/nosy/${way}/air`, LIMITED), [200, "air"]);
  }
  t.same(await get("/nosy/opened/secret", FULL), [200, "secret"]);
  t.same(await get("/nosy/opened/secret", LIMITED), [200, null]);
}
