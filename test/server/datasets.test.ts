import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay, setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import t, { type Test } from "tap";
import type { CollectionConfig, Config } from "../../src/config/config.js";
import { defaultValues, optionConfig } from "../../src/config/options.js";
import { resolveConfig } from "../../src/config/resolve-config.js";
import type { Plugin } from "../../src/plugins/plugin.js";
import { separateFolders } from "../../src/server/open-app.js";
import { startS3Origin } from "../support/origins/s3-origin.js";
import { until } from "../support/servers/process-table.js";
import { ALL_PLUGINS, accessOf, type RunningServer, startServer } from "../support/servers/start-server.js";
import { makeDirectory, writeFiles, zarray, zgroup } from "../support/write-store.js";

/** A plugin of datasets that are never opened. */
function listingPlugin(ids: readonly string[]): Plugin & { ids: readonly string[] } {
  const plugin = {
    name: "many",
    version: "1",
    path: "test",
    ids,
    datasets: () => ({ list: () => plugin.ids, open: () => undefined }),
  };
  return plugin;
}

async function startWith(t: Test, ids: readonly string[], more = {}) {
  const plugin = listingPlugin(ids);
  return { plugin, ...(await startServer(t, { plugins: [...ALL_PLUGINS, plugin], ...more })) };
}

/** Walks all pages by their links. */
async function walk(
  first: string,
  onPage: (page: number) => Promise<void> | void = () => {},
): Promise<string[]> {
  const found: string[] = [];
  let url: string | undefined = first;
  for (let page = 1; url !== undefined; page++) {
    const response: Response = await fetch(url);
    found.push(...((await response.json()) as string[]));
    url = /^<([^>]*)>; rel="next"$/.exec(response.headers.get("link") ?? "")?.[1];
    await onPage(page);
  }
  return found;
}

const IDS = Array.from({ length: 25 }, (_, index) => `d${String(index).padStart(2, "0")} é&+`);

t.test("without parameters the whole list is one document", async (t) => {
  const { get } = await startWith(t, IDS);
  const response = await get("/datasets");
  t.same(
    await response.json(),
    IDS.map((id) => `many~${id}`),
  );
  t.equal(response.headers.get("link"), null);
  const again = await get("/datasets", { "if-none-match": response.headers.get("etag") as string });
  t.equal(again.status, 304);
});

t.test("an empty id to begin behind is none, also if datasets are configured", async (t) => {
  const location = join(await makeDirectory(t), "z.zarr");
  await writeFiles(location, { ".zgroup": zgroup });
  const configured = { id: "z", location, immutable: false, encoding: {}, variables: {} };
  const { get } = await startWith(t, IDS, { datasets: [configured] });
  const response = await get("/datasets?after=&limit=2");
  t.same(await response.json(), ["z", "many~d00 é&+"]);
});

t.test("pages are walked by their links, with prefix and root path, whatever the ids", async (t) => {
  const { url, get } = await startWith(t, IDS, { rootPath: "/data" });
  const all = IDS.map((id) => `many~${id}`);
  t.same(await walk(`${url}/datasets?limit=7`), all);
  t.same(await walk(`${url}/datasets?limit=1`), all);
  t.same(await walk(`${url}/datasets?limit=4&prefix=many~d1`), all.slice(10, 20));
  t.same(await walk(`${url}/datasets?limit=25`), all);
  t.same(await walk(`${url}/datasets?after=${encodeURIComponent(all[21] as string)}`), all.slice(22));
  t.same(await walk(`${url}/datasets?prefix=many~d2`), all.slice(20));
  t.same(await walk(`${url}/datasets?prefix=nothing&limit=3`), []);
  const first = await get("/datasets?limit=7");
  t.match(
    first.headers.get("link"),
    /^<http:\/\/127\.0\.0\.1:\d+\/data\/datasets\?limit=7&after=many~d06%20%C3%A9%26%2B>/,
  );
  t.match(first.headers.get("access-control-expose-headers"), /\bLink\b/);
});

t.test("every id is on one page while others come and go", async (t) => {
  const { url, plugin, server } = await startWith(t, IDS);
  const stays = IDS.filter((_, index) => index % 2 === 0);
  const found = await walk(`${url}/datasets?limit=3`, async (page) => {
    plugin.ids = page % 2 === 1 ? stays : IDS;
    await server.refresh();
    await server.refresh();
  });
  t.equal(new Set(found).size, found.length);
  t.same(
    stays.filter((id) => !found.includes(`many~${id}`)),
    [],
  );
});

t.test("the last page gets a link and another ETag when further ids come", async (t) => {
  const { plugin, server, get } = await startWith(t, ["a", "b"]);
  const before = await get("/datasets?limit=2");
  t.equal(before.headers.get("link"), null);
  plugin.ids = ["a", "b", "c"];
  await server.refresh();
  const etag = before.headers.get("etag") as string;
  const after = await get("/datasets?limit=2", { "if-none-match": etag });
  t.equal(after.status, 200);
  t.match(after.headers.get("link"), /after=many~b/);
});

t.test("a token in the query is kept in links", async (t) => {
  const tokens = t.testdir({ tokens: "secret-secret+secret\n" });
  const access = accessOf({ tokenFile: `${tokens}/tokens` });
  const { get } = await startWith(t, ["a", "b"], { access });
  t.equal((await get("/datasets?limit=1")).status, 401);
  const byQuery = await get("/datasets?limit=1&token=secret-secret%2Bsecret");
  t.match(byQuery.headers.get("link"), /\?limit=1&after=many~a&token=secret-secret%2Bsecret>/);
  const byHeader = await get("/datasets?limit=1", { authorization: "Bearer secret-secret+secret" });
  t.notMatch(byHeader.headers.get("link"), /token/);
});

t.test("wrong parameters are 422, and say what was expected", async (t) => {
  const { get, json } = await startWith(t, ["a"]);
  for (const [query, parameter, msg] of [
    ["limit=0", "limit", "Expected an integer from 1 to 10000, received '0'"],
    ["limit=10001", "limit", "Expected an integer from 1 to 10000, received '10001'"],
    ["limit=1.5", "limit", "Expected an integer from 1 to 10000, received '1.5'"],
    ["limit=", "limit", "Expected an integer from 1 to 10000, received ''"],
    ["offset=3", "offset", "Expected one of prefix, limit, after, received 'offset'"],
    ["after=a&after=b", "after", "Expected the parameter once, received 'b'"],
  ]) {
    const response = await get(`/datasets?${query}`);
    t.equal(response.status, 422, `${query}`);
    t.match(await response.json(), { detail: [{ loc: ["query", parameter], msg }] });
  }
  const { paths } = (await json("/openapi.json")) as {
    paths: Record<string, { get: { parameters: { name: string }[] } }>;
  };
  const described = paths["/datasets"]?.get.parameters
    .map(({ name }) => name)
    .filter((name) => name !== undefined);
  t.same(described, ["prefix", "limit", "after"]);
});

const MANY = 102;
/** The first dataset that is not read at start, and the next one. */
const [LAZY, BROKEN] = ["d100", "d101"];

async function serveMany(refreshSeconds = 0): Promise<RunningServer & { readonly directory: string }> {
  const directory = await makeDirectory(t);
  const datasets = [];
  for (let index = 0; index < MANY; index++) {
    const id = `d${index}`;
    await writeFiles(join(directory, id), {
      ".zgroup": zgroup,
      ".zattrs": { title: `title of ${id}` },
      "v/.zarray": zarray,
      "v/0": "ab",
    });
    datasets.push({ id, location: join(directory, id), immutable: false, encoding: {}, variables: {} });
  }
  return { ...(await startServer(t, { datasets, refreshSeconds })), directory };
}

t.test("the first datasets are read at start, the others when they are asked for", async (t) => {
  const { get, json } = await serveMany();
  const html = await (await get("/")).text();
  t.match(html, "title of d0");
  t.match(html, "title of d99");
  t.notMatch(html, "title of d100");
  const next = async () => (await get("/?after=d99")).text();
  t.match(await next(), 'href="datasets/d101/"');
  t.notMatch(await next(), "title of", "no page opens what is not open");

  const paths = ["zarr/v/0", "zarr/.zmetadata", "keys", "", "groups"];
  const answers = await Promise.all(paths.map((path) => get(`/datasets/${LAZY}/${path}`)));
  for (const { status } of answers) t.equal(status, 200);
  t.equal(await answers[0]?.text(), "ab");
  t.equal((await get(`/datasets/${LAZY}`)).status, 301);
  t.match(await next(), "title of d100");
  t.notMatch(await next(), "title of d101");
  t.equal((await get(`/datasets/${BROKEN}/zarr/v/0`, { "if-none-match": "*" })).status, 304);
  t.equal((await get("/datasets/d102/keys")).status, 404);
  t.equal(((await json("/datasets")) as string[]).length, MANY);
});

t.test("a dataset that disappeared is its own error, no absence, until it is back", async (t) => {
  const { get, directory, lines } = await serveMany();
  await rm(join(directory, BROKEN, ".zgroup"));
  const answers = await Promise.all([get(`/datasets/${BROKEN}/zarr/v/0`), get(`/datasets/${BROKEN}/keys`)]);
  for (const answer of answers) {
    t.equal(answer.status, 500);
    t.match(await answer.json(), { detail: /^The metadata of the source cannot be understood/ });
  }
  t.match(JSON.stringify(lines), /dataset 'd101': .*is no Zarr store/);
  t.equal((await get(`/datasets/${LAZY}/zarr/v/0`)).status, 200);
  await writeFiles(join(directory, BROKEN), { ".zgroup": zgroup });
  let status = 500;
  while (status === 500) {
    await sleep(50);
    ({ status } = await get(`/datasets/${BROKEN}/zarr/v/0`));
  }
  t.equal(status, 200);
});

t.test("a change long after the last request is served to the next one", async (t) => {
  const { get, json, directory } = await serveMany(0.01);
  const path = `/datasets/${LAZY}/zarr/.zattrs`;
  const before = (await get(path)).headers.get("etag");
  t.equal((await get(path)).headers.get("etag"), before);
  // More periods than a dataset is refreshed in after its last request. Server and test share one event loop, so a busy
  // machine delays both.
  for (let periods = 0; periods < 60; periods++) await sleep(10);
  await writeFiles(join(directory, LAZY), { ".zattrs": { title: "new" }, "w/.zarray": zarray });
  t.same(await json(path), { title: "new" });
  t.same(await json(`/datasets/${LAZY}/keys`), ["v", "w"]);
  t.not((await get(path)).headers.get("etag"), before);
});

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

t.test("nothing stays in memory of a dataset that was closed for others", async (t) => {
  const memory = new Map<string, WeakRef<SharedArrayBuffer>>();
  const plugin: Plugin = {
    name: "p",
    version: "1",
    path: "test",
    datasets: ({ createDataTree }) => ({
      list: () => ["a", "b", "c", "last"],
      async open(id) {
        // Shared memory is not copied, so it lives as long as the dataset.
        const buffer = new SharedArrayBuffer(64 * 64 * 4);
        memory.set(id, new WeakRef(buffer));
        const attrs = { title: id };
        const values = { dims: ["y", "x"], shape: [64, 64], data: new Float32Array(buffer) };
        return { tree: await createDataTree({ attrs, variables: { values } }), overviews: { levels: 1 } };
      },
    }),
  };
  const { limits } = optionConfig(defaultValues({}));
  const { get } = await startServer(t, {
    plugins: [...ALL_PLUGINS, plugin],
    limits: { ...limits, maxOpenDatasets: 1 },
    refreshSeconds: 3_600,
  });
  const paths = [
    "",
    "tree",
    "keys",
    "info",
    "dict",
    "groups",
    "explore",
    "overviews/",
    "zarr/",
    "zarr/.zmetadata",
  ];
  const chunks = ["zarr/values/0.0", "zarr3/zarr.json", "zarr3/values/c/0/0", "thumbnail/values.png"];
  for (const id of ["a", "b", "c", "last"]) {
    for (const path of [...paths, ...chunks, "overviews/zarr/1/values/0.0"]) {
      const response = await get(`/datasets/p~${id}/${path}`);
      t.equal(response.status < 400, true, `${id} ${path} ${response.status}`);
      await response.arrayBuffer();
    }
    await (await get("/")).arrayBuffer();
  }
  await until(async () => {
    collectGarbage();
    await delay(50);
    return ["a", "b", "c"].every((id) => memory.get(id)?.deref() === undefined);
  });
  t.ok(memory.get("last")?.deref(), "the last one is open");
});

function collection(root: string, more: Partial<CollectionConfig> = {}): CollectionConfig {
  return { name: "", root, immutable: false, encoding: {}, variables: {}, ...more };
}

const STORE = { ".zgroup": zgroup, "v/.zarray": zarray, "v/0": "ab" };

/** Writes a store below a folder. */
function writeStore(root: string, name: string): Promise<void> {
  return writeFiles(join(root, name), STORE);
}

t.test("datasets of a folder come and go while the server runs", async (t) => {
  const root = await makeDirectory(t);
  await writeStore(root, "2024/a.zarr");
  await writeFiles(root, { "broken.nc": "no NetCDF" });
  const other = await makeDirectory(t);
  await writeStore(other, "b.zarr");
  const { server, get, json } = await startServer(t, {
    collections: [collection(root), collection(other, { name: "archive" })],
    refreshSeconds: 3_600,
  });
  t.same(await json("/datasets"), ["2024~a.zarr", "archive~b.zarr", "broken.nc"]);
  t.equal(await (await get("/datasets/2024~a.zarr/zarr/v/0")).text(), "ab");
  t.equal(await (await get("/datasets/archive~b.zarr/zarr/v/0")).text(), "ab");
  t.equal((await get("/datasets/broken.nc/zarr/.zmetadata")).status, 500);
  t.equal((await get("/datasets/none/zarr/.zmetadata")).status, 404);

  await writeStore(root, "c.zarr");
  t.equal((await get("/datasets/c.zarr/zarr/v/0")).status, 200, "before a refresh");
  await rm(join(root, "2024"), { recursive: true });
  await server.refresh();
  t.same(await json("/datasets"), ["archive~b.zarr", "broken.nc", "c.zarr"]);
  t.equal((await get("/datasets/2024~a.zarr/zarr/v/0")).status, 404);
});

t.test("a root that cannot be listed keeps the server from starting, unless it may be skipped", async (t) => {
  const root = await makeDirectory(t);
  await writeStore(root, "a.zarr");
  const at = (name: string, more = {}) => ({ collections: [collection(join(root, name))], ...more });
  await t.rejects(startServer(t, at("none")), {
    code: "source-unreadable",
    message: /none: .*does not exist/,
  });
  await t.rejects(startServer(t, at("a.zarr")), { code: "invalid-config", message: /found a Zarr store/ });
  const { lines, json } = await startServer(t, at("none", { skipInvalid: true }));
  t.same(await json("/datasets"), []);
  t.match(
    lines.find(({ msg }) => msg === "collection cannot be listed yet"),
    { provider: "none" },
  );
});

t.test("groups of a hierarchy, and prefixes of a bucket, are collections", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, { ".zgroup": zgroup });
  await writeStore(root, "g/h");
  await writeFiles(root, {
    ".zmetadata": { metadata: { ".zgroup": zgroup, "g/h/v/.zarray": STORE["v/.zarray"] } },
  });
  const { endpoint, put } = await startS3Origin(t);
  for (const [key, value] of Object.entries(STORE))
    await put("data", `in/deep/s.zarr/${key}`, typeof value === "string" ? value : JSON.stringify(value));
  const stores = [{ name: "s", url: "s3://data/", endpoint, anonymous: true }];
  const { json, get } = await startServer(t, {
    collections: [
      collection(root, { name: "tree", groups: true }),
      collection("s3://data/in/", { name: "bucket", stores }),
    ],
  });
  t.same(await json("/datasets"), ["bucket~deep~s.zarr", "tree~g~h"]);
  t.equal(await (await get("/datasets/tree~g~h/zarr/v/0")).text(), "ab");
  t.equal(await (await get("/datasets/bucket~deep~s.zarr/zarr/v/0")).text(), "ab");
});

function resolve(argv: readonly string[], cwd: string): Config {
  return resolveConfig({ argv, env: {}, cwd });
}

t.test(
  "a folder of files and stores on the command line is a collection, a store is a dataset",
  async (t) => {
    const cwd = t.testdir({
      days: { "a.nc": "", b: {} },
      "store.zarr": { ".zgroup": "{}" },
      v3: { "zarr.json": "{}" },
      "c.nc": "",
      empty: {},
      "broken.zarr": {},
      "config.json": JSON.stringify({ datasets: { inFile: "days" }, collections: { other: "empty" } }),
    });
    const argv = [
      "--config",
      "config.json",
      "days",
      "store.zarr",
      "v3",
      "c.nc",
      "x=empty",
      "broken.zarr",
      "absent",
    ];
    const config = resolve(argv, cwd);
    const { datasets, collections } = await separateFolders(config);
    t.same(
      datasets.map(({ id }) => id),
      ["inFile", "store", "v3", "c", "broken", "absent"],
      "what the file calls a dataset stays one",
    );
    t.same(collections, [
      config.collections[0],
      { name: "", root: join(cwd, "days"), immutable: false, encoding: {}, variables: {} },
      { name: "x", root: join(cwd, "empty"), immutable: false, encoding: {}, variables: {} },
    ]);
  },
);

t.test("a folder whose files are joined is a dataset", async (t) => {
  const cwd = t.testdir({ days: { "a.nc": "" } });
  const config = resolve(["days", "--concat", "time"], cwd);
  t.equal(await separateFolders(config), config);
});

t.test("a folder has the options that hold for datasets", async (t) => {
  const cwd = t.testdir({ days: {}, "config.json": JSON.stringify({ references: { allow: ["/x"] } }) });
  const { collections } = await separateFolders(
    resolve(["--config", "config.json", "--overviews", "days"], cwd),
  );
  t.match(collections, [{ references: { allow: ["/x"] }, overviews: { levels: "auto" } }]);
});

t.test("what cannot be looked at stays a dataset", async (t) => {
  const config = resolve(["s3://bucket/x", "/data", "https://host/y"], "/");
  const asked: string[] = [];
  const separated = await separateFolders(config, async (location) => {
    asked.push(location);
    if (location === "/data") throw new Error("EIO");
    return true;
  });
  t.same(asked.sort(), ["/data", "s3://bucket/x"], "what cannot be listed is not looked at");
  t.same(separated.datasets, config.datasets.slice(1));
  t.match(separated.collections, [{ name: "", root: "s3://bucket/x/" }]);
});
