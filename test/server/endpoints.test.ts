import { truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import t, { type Test } from "tap";
import { createSnapshot } from "../../src/dataset/snapshot.js";
import { runNow } from "../../src/event-loop/cooperative-task.js";
import { createDataTree, type Plugin, ZpublishError } from "../../src/index.js";
import type { JsonValue } from "../../src/json/json-value.js";
import { stringifyJson } from "../../src/json/stringify-json.js";
import { groupDict, groupSchema } from "../../src/plugins/dataset-info/dataset-info-plugin.js";
import { consolidatedMetadata } from "../../src/plugins/zarr-plugin.js";
import { fakeSource, storedArray, storedTree } from "../support/datasets/fake-source.js";
import { datasetOf, flatSource, nestedSource } from "../support/datasets/sample-tree.js";
import { ALL_PLUGINS, startServer } from "../support/servers/start-server.js";
import { zarray } from "../support/write-store.js";

const DATASETS = [datasetOf("flat", flatSource()), datasetOf("nested", nestedSource())];

/** One server for all tests that change nothing. */
const published = await startServer(t, { datasets: DATASETS });

t.test("programs get the content of a dataset", async (t) => {
  const { json } = published;
  t.same(await json("/datasets"), ["flat", "nested"]);
  t.same(new Set((await json("/datasets/flat/keys")) as string[]), new Set(["t", "x", "y", "crs"]));
  t.same(await json("/datasets/flat/groups"), ["/"]);
  t.same(await json("/datasets/nested/groups"), ["/", "/a", "/a/b", "/c"]);
  t.same(await json("/datasets/flat/info"), {
    dimensions: { y: 3, x: 5 },
    variables: {
      t: { type: "int16", dimensions: ["y", "x"], attributes: { units: "K", scale_factor: 0.5 } },
      x: { type: "float32", dimensions: ["x"], attributes: {} },
      y: { type: "int64", dimensions: ["y"], attributes: {} },
      crs: { type: "int32", dimensions: [], attributes: {} },
    },
    global_attributes: { title: "flat" },
  });
  t.match(await json("/datasets/flat/dict"), {
    coords: { x: { dims: ["x"], dtype: "float32", shape: [5] }, y: { dtype: "int64" } },
    attrs: { title: "flat" },
    dims: { y: 3, x: 5 },
    data_vars: { t: { dims: ["y", "x"], attrs: { units: "K" }, dtype: "int16", shape: [3, 5] } },
  });
});

t.test("paths of /groups are usable verbatim, and suffixes win", async (t) => {
  const { get, json } = published;
  t.same(await json("/datasets/nested/groups//a/b/keys"), ["v"]);
  t.same(await json("/datasets/nested/groups/a/b/keys"), ["v"]);
  t.same(await json("/datasets/nested/groups//keys"), []);
  t.match(await json("/datasets/nested/groups/a/b/info"), { global_attributes: { deep: true } });
  for (const page of [
    "/datasets/nested/groups/a",
    "/datasets/nested/groups//a/b",
    "/datasets/nested/groups/a/",
  ]) {
    const answer = await get(page);
    t.equal(answer.status, 200, page);
    t.equal(answer.headers.get("content-type"), "text/html; charset=utf-8");
  }
  for (const missing of ["a/x", "a/keys/", "/a//x"]) {
    const answer = await get(`/datasets/nested/groups/${missing}`);
    t.equal(answer.status, 404);
    const name = missing.split("/").filter(Boolean).join("/");
    t.same(await answer.json(), { detail: `Group '${name}' not found in dataset 'nested'` });
  }
});

t.test("plugins and versions are listed", async (t) => {
  const { json } = published;
  const plugins = (await json("/plugins")) as Record<string, { path: string; version: string }>;
  t.same(
    Object.keys(plugins),
    ALL_PLUGINS.map(({ name }) => name),
  );
  t.ok(Object.values(plugins).every(({ path, version }) => path !== "" && /^\d+\.\d+/.test(version)));
  const versions = (await json("/versions")) as Record<string, string>;
  for (const name of "zpublish node v8 uWebSockets.js piscina zarrita numcodecs lmdb".split(" ")) {
    t.match(versions[name], /^v?\d+\./, name);
  }
  for (const name of ["OS", "OS-release", "machine", "byteorder", "LANG"]) {
    t.type(versions[name], "string", name);
  }
});

t.test("without the zarr plugin, everything below /zarr is an ordinary 404", async (t) => {
  const { get, json } = await startServer(t, {
    datasets: DATASETS,
    plugins: [{ name: "dataset_info" }, { name: "plugin_info" }],
  });
  for (const path of ["zarr", "zarr/", "zarr/.zmetadata", "zarr/t/0.0"]) {
    const answer = await get(`/datasets/flat/${path}`);
    t.equal(answer.status, 404, path);
    t.same(await answer.json(), { detail: "Not Found" });
  }
  t.same(Object.keys((await json("/plugins")) as object), ["dataset_info", "plugin_info"]);
});

t.test("names and routes used twice are refused at start", async (t) => {
  const plugin = { name: "other", version: "1", path: "test/other", routes: () => [] };
  await t.rejects(startServer(t, { plugins: [plugin, plugin] }), {
    code: "invalid-config",
    message: /plugin name 'other': expected to be used once/,
  });
  const operation = { summary: "x", contentType: "text/plain" };
  const handler = () => ({ kind: "redirect", to: "with-slash" }) as const;
  const routes = () => [{ path: "/datasets/{id}/info", priority: "page", operation, handler } as const];
  await t.rejects(startServer(t, { plugins: [{ name: "dataset_info" }, { ...plugin, routes }] }), {
    code: "invalid-config",
    message: /datasets/,
  });
  await t.rejects(startServer(t, { plugins: [{ name: "nope" }] }), { message: /plugin 'nope'/ });
});

const COUNT = 100_000;
const SECRET = "/home/secret/of.nc";

/** Publishes many datasets, of which the second cannot be opened, and counts calls to open one. */
async function manyDatasets() {
  const opened: string[] = [];
  const tree = await createDataTree({
    attrs: { title: "one of many" },
    variables: { v: { data: new Float32Array(64), shape: [8, 8], dims: ["y", "x"] } },
  });
  const ids = Array.from({ length: COUNT }, (_, index) => `d${String(index).padStart(5, "0")}`);
  const plugin: Plugin = {
    ...{ name: "many", version: "1", path: "many" },
    datasets: () => ({
      list: () => ids,
      open(id) {
        opened.push(id);
        if (id === "d00001") throw new ZpublishError("source-unreadable", `cannot read ${SECRET}`);
        return { tree };
      },
    }),
  };
  return { plugin, opened };
}

t.test("the home page of a hundred thousand datasets opens none of a collection", async (t) => {
  const { plugin, opened } = await manyDatasets();
  const { get } = await startServer(t, {
    datasets: [datasetOf("flat", flatSource())],
    plugins: [...ALL_PLUGINS, plugin],
  });
  const home = async (query = "") => (await get(`/${query}`)).text();
  const first = await home();
  t.match(first, "(100,001)");
  t.match(first, '<a href="./?folder=many"><bdi>many/</bdi></a> <span class="count">(100,000)</span>');
  t.match(first, 'href="datasets/flat/"');
  const inside = await home("?folder=many");
  t.match(inside, '<a rel="next" href="./?folder=many&amp;after=many%7Ed00099">');
  t.match(inside, "<bdi>d00000</bdi>");
  t.match(await home("?q=D99999"), 'href="datasets/many~d99999/"');
  t.notMatch(await home("?after=many%7Ed99990"), 'rel="next"');
  t.same(opened, []);

  t.equal((await get("/datasets/many~d00002/keys")).status, 200);
  t.equal((await get("/datasets/many~d00001/keys")).status, 500);
  const second = await home("?folder=many");
  t.match(second, "one of many");
  t.match(second, '<img src="datasets/many~d00002/thumbnail/v.png"');
  t.match(second, /<bdi>d00001<\/bdi><\/a> <span class="problem">The source of this data cannot be read</);
  t.notMatch(second, SECRET);
  t.same(opened, ["d00002", "d00001"]);
});

const CONFIG = { id: "large", location: "here", immutable: false, encoding: {}, variables: {} };
const PLAIN = { "accept-encoding": "identity" };
const TREE = storedTree([
  {
    path: "/",
    attrs: { title: "größer" },
    arrays: Array.from({ length: 6_000 }, (_, index) =>
      storedArray(`v${index}`, { attrs: { units: "K", index, note: `número ${index}` }, dimNames: null }),
    ),
  },
]);

t.test("documents too large for one iteration of the loop have the same bytes", async (t) => {
  const source = { ...fakeSource(TREE), location: "here" };
  const { url, get } = await startServer(t, { datasets: [{ ...CONFIG, source }] });
  const snapshot = createSnapshot(CONFIG, TREE, "");
  const { tree } = snapshot;
  const expected: Readonly<Record<string, JsonValue>> = {
    "zarr/.zmetadata": runNow(consolidatedMetadata(snapshot, tree.root, tree.root.attrs)),
    info: runNow(groupSchema(tree.root)),
    dict: runNow(groupDict(tree.root)),
    keys: [...tree.root.variables.keys()],
  };
  for (const [path, value] of Object.entries(expected)) {
    const text = stringifyJson(value);
    const ask = async (headers: Record<string, string>) => {
      const response = await fetch(`${url}/datasets/large/${path}`, { headers });
      return { response, body: await response.text() };
    };
    // Concurrent requests before it is made: made once, and compressed for clients that accept it.
    const answers = await Promise.all(
      ["identity", "br", "gzip", "identity"].map((coding) => ask({ "accept-encoding": coding })),
    );
    for (const { response, body } of answers) {
      t.equal(response.status, 200);
      t.ok(body === text, `${path} as ${response.headers.get("content-encoding") ?? "it is"}`);
    }
    const etags = answers.map(({ response }) => response.headers.get("etag")?.replace(/-(br|gz)"$/, '"'));
    t.equal(new Set(etags).size, 1, "one document");
    t.equal(
      (await get(`/datasets/large/${path}`, { "if-none-match": etags[0] as string, ...PLAIN })).status,
      304,
    );
  }
  const listing = await (await get("/datasets/large/zarr/")).text();
  t.equal(listing.match(/<li>/g)?.length, 1 + 3 + 6_000);
  t.equal((await get("/datasets/large/")).status, 200);
});

t.test("a client that leaves while a document is made does not affect other clients", async (t) => {
  const source = { ...fakeSource(TREE), location: "here" };
  const { url, json } = await startServer(t, { datasets: [{ ...CONFIG, source }] });
  const impatient = new AbortController();
  const path = `${url}/datasets/large/zarr/.zmetadata`;
  const given = fetch(path, { signal: impatient.signal }).catch(() => "gone");
  const patient = fetch(path);
  await json("/versions");
  impatient.abort();
  await given;
  t.ok(((await (await patient).json()) as { metadata: object }).metadata);
});

const ARRAY = { ...zarray, shape: [4], dtype: "<i4", compressor: { id: "gzip", level: 1 } };

function arrayFiles(changes: object = {}) {
  return { ".zarray": JSON.stringify({ ...ARRAY, ...changes }), "0": gzipSync(Int32Array.of(1, 2)) };
}

/** Writes a store with the given arrays and a valid one. */
function writeStore(test: Test, arrays: Record<string, object>): string {
  return test.testdir({ ".zgroup": '{"zarr_format":2}', good: arrayFiles(), ...arrays });
}

function datasetAt(id: string, location: string, more: object = {}) {
  return { id, location, immutable: false, encoding: {}, variables: {}, ...more };
}

const TRANSCODED = { encoding: { compressor: null } };

t.test("an array that cannot be understood is refused by name, and the rest is served", async (t) => {
  const location = writeStore(t, {
    broken: { ".zarray": "{" },
    wrong: arrayFiles({ chunks: [-1] }),
    unknown: arrayFiles({ dtype: "<q9" }),
  });
  const { get, json, lines } = await startServer(t, { datasets: [datasetAt("d", location)] });
  t.same(await json("/datasets/d/keys"), ["good"]);
  t.equal((await get("/datasets/d/zarr/good/0")).status, 200);
  t.equal((await get("/datasets/d/zarr/broken/.zarray")).status, 404);
  const refused = (lines as unknown as { path: string; reason: string; msg: string }[]).filter(
    ({ msg }) => msg === "refused",
  );
  t.same(refused.map(({ path }) => path).sort(), ["broken", "unknown", "wrong"]);
  t.ok(refused.every(({ reason }) => reason.length > 10));
});

t.test(
  "an unknown compressor is passed through, and refused only if it would have to be decoded",
  async (t) => {
    const location = writeStore(t, { odd: arrayFiles({ compressor: { id: "mystery", level: 9 } }) });
    const datasets = [datasetAt("stored", location), datasetAt("plain", location, TRANSCODED)];
    const { get, json, lines } = await startServer(t, { datasets });
    t.match(await json("/datasets/stored/zarr/odd/.zarray"), { compressor: { id: "mystery", level: 9 } });
    t.equal((await get("/datasets/stored/zarr/odd/0")).status, 200);
    t.equal((await get("/datasets/plain/zarr/odd/0")).status, 404);
    t.equal((await get("/datasets/plain/zarr/good/0")).status, 200);
    t.match(
      lines.filter(({ msg }) => msg === "refused"),
      [{ path: "odd", reason: /mystery/ }],
    );
  },
);

t.test(
  "chunks that are damaged, or decode to another length, are failures that the log explains",
  async (t) => {
    const location = writeStore(t, {
      short: { ...arrayFiles(), "0": gzipSync(Int32Array.of(1)) },
      long: { ...arrayFiles(), "0": gzipSync(new Int32Array(1000)) },
      cut: arrayFiles(),
      noise: { ...arrayFiles(), "0": "no gzip" },
      empty: { ...arrayFiles(), "0": "" },
    });
    truncateSync(join(location, "cut", "0"), 20);
    const { get, lines } = await startServer(t, { datasets: [datasetAt("d", location, TRANSCODED)] });
    for (const name of ["short", "long", "cut", "noise", "empty"]) {
      const answer = await get(`/datasets/d/zarr/${name}/0`);
      t.equal(answer.status, 500, name);
      const body = (await answer.json()) as { detail: string; id: string };
      t.equal(answer.headers.get("access-control-allow-origin"), "*");
      t.notMatch(JSON.stringify(body), location, "no path of the machine");
      const line = lines.find(({ id }) => id === body.id) as unknown as { err: { message: string } };
      t.match(JSON.stringify(line), new RegExp(`array '${name}': stored chunk 0`));
    }
    const good = await get("/datasets/d/zarr/good/0");
    t.same([...new Int32Array(await good.arrayBuffer())], [1, 2]);
  },
);

t.test("errors name a location that is no store or does not exist", async (t) => {
  const open = (location: string) => startServer(t, { datasets: [datasetAt("d", location)] });
  await t.rejects(open(t.testdir({ "readme.txt": "hello" })), {
    code: "invalid-metadata",
    message: /dataset 'd': .*is no Zarr store/,
  });
  await t.rejects(open("/no/such/place"), { message: /dataset 'd': .*\/no\/such\/place/ });
  const corrupt = t.testdir({ ".zgroup": "{" });
  writeFileSync(join(corrupt, ".zgroup"), "[]");
  await t.rejects(open(corrupt), { code: "invalid-metadata", message: /\.zgroup/ });
});
