import t from "tap";
import { datasetOf, flatSource, nestedSource } from "../support/datasets/sample-tree.js";
import { startServer } from "../support/servers/start-server.js";

const DATASETS = [datasetOf("flat", flatSource()), datasetOf("nested", nestedSource())];

t.test("programs get the content of a dataset", async (t) => {
  const { json } = await startServer(t, { datasets: DATASETS });
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
  const { get, json } = await startServer(t, { datasets: DATASETS });
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
  const missing = await get("/datasets/nested/groups/a/x");
  t.equal(missing.status, 404);
  t.same(await missing.json(), { detail: "Group 'a/x' not found in dataset 'nested'" });
});

t.test("plugins and versions are listed", async (t) => {
  const { json } = await startServer(t, { datasets: DATASETS });
  const plugins = (await json("/plugins")) as Record<string, { path: string; version: string }>;
  t.same(Object.keys(plugins), [
    "dataset_info",
    "explore",
    "module_version",
    "plugin_info",
    "thumbnail",
    "zarr",
    "zarr3",
  ]);
  t.ok(Object.values(plugins).every(({ path, version }) => path !== "" && /^\d+\.\d+/.test(version)));
  const versions = (await json("/versions")) as Record<string, string>;
  for (const name of [
    "zpublish",
    "node",
    "v8",
    "uWebSockets.js",
    "piscina",
    "zarrita",
    "numcodecs",
    "lmdb",
  ]) {
    t.match(versions[name], /^v?\d+\./, name);
  }
  for (const name of ["OS", "OS-release", "machine", "byteorder", "LANG"]) {
    t.type(versions[name], "string", name);
  }
});

t.test("people get pages", async (t) => {
  const { get } = await startServer(t, { datasets: DATASETS });
  for (const path of ["/", "/datasets/flat/", "/datasets/nested/tree", "/docs"]) {
    const answer = await get(path);
    t.equal(answer.status, 200, path);
    t.equal(answer.headers.get("content-type"), "text/html; charset=utf-8");
  }
  t.match(await (await get("/datasets/flat/")).text(), /int16/);
  const openapi = (await (await get("/openapi.json")).json()) as { openapi: string; paths: object };
  t.match(openapi.openapi, /^3\.1/);
  t.ok("/datasets/{dataset_id}/info" in openapi.paths);
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

t.test("another plugin gets the context of the built-in ones", async (t) => {
  const { json } = await startServer(t, {
    datasets: DATASETS,
    plugins: [
      {
        name: "count",
        version: "1.0.0",
        path: "test/count",
        routes: ({ datasets, createDocument }) => [
          {
            path: "/datasets/{dataset_id}/count",
            priority: "page",
            operation: { summary: "Number of variables", contentType: "application/json" },
            handler: ({ params }) => ({
              kind: "document",
              document: createDocument(
                String(datasets.get(params.dataset_id as string).arrays.size),
                "application/json",
              ),
            }),
          },
        ],
      },
    ],
  });
  t.equal(await json("/datasets/flat/count"), 4);
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
