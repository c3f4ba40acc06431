import { join } from "node:path";
import t from "tap";
import { datasetOf, flatSource, nestedSource } from "../support/datasets/sample-tree.js";
import { ALL_PLUGINS, startServer } from "../support/servers/start-server.js";
import { makeDirectory, writeFiles, zarray, zgroup } from "../support/write-store.js";

const FLAT = datasetOf("flat", flatSource());
const NESTED = datasetOf("nested ü", nestedSource());
const HEADERS = ["etag", "content-type", "content-length", "cache-control", "accept-ranges", "x-cache"];

t.test("a store has the same answers below .zarr as below zarr/", async (t) => {
  const { url, get } = await startServer(t, { datasets: [FLAT, NESTED] });
  const stores = [
    [
      "/datasets/flat.zarr",
      "/datasets/flat/zarr",
      ["/.zmetadata", "/.zgroup", "/t/.zarray", "/t/0.0", "/t/"],
    ],
    [
      "/datasets/nested%20%C3%BC.zarr",
      "/datasets/nested%20%C3%BC/zarr",
      ["/a/.zmetadata", "/a/b/v/0", "/a/"],
    ],
  ] as const;
  for (const [name, store, paths] of stores) {
    for (const path of [...paths, "", "/", "/none", "/none/0.0", "/t/9.9"]) {
      for (const [method, headers] of [
        ["GET", {}],
        ["HEAD", {}],
        ["GET", { range: "bytes=0-3" }],
        ["GET", { range: "bytes=99999999-" }],
        ["GET", { "if-none-match": "*" }],
      ] as const) {
        const ask = (place: string) => fetch(url + place + path, { method, headers, redirect: "manual" });
        const [own, other] = [await ask(name), await ask(store)];
        const of = `${method} ${name}${path} ${JSON.stringify(headers)}`;
        t.equal(own.status, other.status, of);
        for (const header of HEADERS)
          t.equal(own.headers.get(header), other.headers.get(header), `${of}: ${header}`);
        t.equal(
          own.headers.get("location"),
          other.headers.get("location")?.replace(store, name) ?? null,
          `${of}: location`,
        );
        t.same(Buffer.from(await own.arrayBuffer()), Buffer.from(await other.arrayBuffer()), of);
      }
    }
  }
  t.equal((await get("/datasets/flat.zarr")).headers.get("location"), "/datasets/flat.zarr/");
  t.equal((await fetch(`${url}/datasets/flat.zarr/t/0.0`, { method: "POST" })).status, 405);
  for (const path of [
    ".zarr/.zmetadata",
    "none.zarr/.zmetadata",
    "flat.zar/.zmetadata",
    "flat.zarr.zarr/t/0.0",
  ])
    t.equal((await get(`/datasets/${path}`)).status, 404, path);
  t.equal((await get("/datasets/%ff.zarr/.zmetadata")).status, 422);
  const error = await (await get("/datasets/flat.zarr/none", { accept: "text/html" })).text();
  t.match(error, 'href="../../"', "links of an error page lead to the root from this path");
});

t.test("a dataset goes before the store of another one", async (t) => {
  const named = datasetOf("flat.zarr", nestedSource());
  const { get, json } = await startServer(t, { datasets: [FLAT, named] });
  t.same(await json("/datasets/flat.zarr/keys"), []);
  t.equal((await get("/datasets/flat.zarr/zarr/a/b/v/0")).status, 200);
  t.equal((await get("/datasets/flat.zarr/.zmetadata")).status, 404, "which is no store itself");
  t.same(
    await json("/datasets/flat.zarr.zarr/.zmetadata"),
    await json("/datasets/flat.zarr/zarr/.zmetadata"),
    "its store has the ending once more",
  );
});

t.test("datasets that are newer than the last list have stores of that name", async (t) => {
  const root = await makeDirectory(t);
  const array = { ...zarray, shape: [2], chunks: [2] };
  const collection = { name: "c", root, immutable: false, encoding: {}, variables: {} };
  // A list in each hour, and before each 404.
  const { get, json } = await startServer(t, { collections: [collection], refreshSeconds: 3_600 });
  const write = (name: string) =>
    writeFiles(join(root, name), { ".zgroup": zgroup, "v/.zarray": array, "v/0": "ab" });
  await write("one.zarr");
  t.equal((await get("/datasets/c~one.zarr/zarr/v/0")).status, 200, "a dataset");
  await write("two");
  t.equal((await get("/datasets/c~two.zarr/v/0")).status, 200, "a store");
  t.equal((await get("/datasets/c~two.zarr/v/1")).status, 404);
  await write("two.zarr");
  t.equal((await get("/datasets/c~two.zarr.zarr/v/0")).status, 200);
  t.match(await json("/datasets/c~two.zarr/keys"), ["v"], "known by then");
});

t.test("below a root path, alone, and without the plugin", async (t) => {
  const prefixed = await startServer(t, { datasets: [FLAT], rootPath: "/prefix" });
  t.equal((await fetch(`${prefixed.url}/datasets/flat.zarr/t/0.0`)).status, 200);
  const alone = await startServer(t, { datasets: [FLAT], single: true });
  t.equal((await alone.get("/flat.zarr/t/0.0")).status, 200);
  t.equal((await alone.get("/flat.zarr")).headers.get("location"), "/flat.zarr/");
  for (const path of ["/other.zarr/t/0.0", "/datasets/flat.zarr/t/0.0", "/.zarr/t/0.0"])
    t.equal((await alone.get(path)).status, 404, path);
  const plugins = ALL_PLUGINS.filter(({ name }) => name !== "zarr");
  const without = await startServer(t, { datasets: [FLAT], plugins });
  t.equal((await without.get("/datasets/flat.zarr/t/0.0")).status, 404);
});
