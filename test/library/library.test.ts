import { writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import * as zpublish from "../../src/index.js";
import { startFaultyOrigin } from "../support/origins/faulty-origin.js";

t.test("the package exports this, and nothing else", async (t) => {
  t.same(Object.keys(zpublish).sort(), [
    "ZpublishError",
    "createDataTree",
    "createServer",
    "openDataTree",
    "packingOf",
    "stringifyJson",
    "zarrStoreSource",
  ]);
});

t.test("a tree of typed arrays is built, inspected and served", async (t) => {
  const tree = await zpublish.createDataTree({
    attrs: { title: "from memory" },
    variables: { t2m: { data: Float32Array.from([0, 1, 2, 3, 4, 5]), shape: [2, 3], dims: ["y", "x"] } },
    groups: { high: { variables: { flag: { data: new Uint8Array(4), shape: [4] } } } },
  });
  t.same([...tree.groups.keys()], ["/", "/high"]);
  t.same(tree.root.variables.get("t2m")?.shape, [2, 3]);
  t.same(tree.groups.get("/high")?.variables.get("flag")?.dims, ["dim_4"]);

  const server = await zpublish.createServer({
    datasets: { memory: { source: tree, variables: { t2m: { compressor: null } } } },
    workers: 1,
  });
  t.teardown(() => server.close());
  const { url } = await server.listen({ port: 0 });
  const chunk = await fetch(`${url}/datasets/memory/zarr/t2m/0.0`);
  t.same([...new Float32Array(await chunk.arrayBuffer())], [0, 1, 2, 3, 4, 5]);
});

t.test("a store is opened, and served by its location as well", async (t) => {
  const directory = t.testdir({
    ".zgroup": '{"zarr_format": 2}',
    a: {
      ".zarray": JSON.stringify({
        zarr_format: 2,
        shape: [2],
        chunks: [2],
        dtype: "|u1",
        fill_value: 0,
        order: "C",
        filters: null,
        compressor: null,
      }),
    },
  });
  writeFileSync(join(directory, "a", "0"), Uint8Array.of(1, 2));
  const tree = await zpublish.openDataTree(directory);
  t.same([...tree.root.variables.keys()], ["a"]);
  const server = await zpublish.createServer({
    datasets: { one: tree, two: directory },
    workers: 1,
    refresh: 0,
  });
  t.teardown(() => server.close());
  const { url } = await server.listen({ port: 0 });
  for (const id of ["one", "two"]) {
    const chunk = await fetch(`${url}/datasets/${id}/zarr/a/0`);
    t.same([...new Uint8Array(await chunk.arrayBuffer())], [1, 2], id);
  }
});

t.test("errors name what cannot be opened or served", async (t) => {
  await t.rejects(zpublish.openDataTree(t.testdir({})), { code: "invalid-metadata" });
  await t.rejects(zpublish.createServer({ datasets: { "a/b": "x" } }), { code: "invalid-config" });
  await t.rejects(zpublish.createDataTree({ variables: { a: { data: new Uint8Array(3), shape: [4] } } }), {
    code: "invalid-metadata",
  });
  await t.rejects(zpublish.createServer({ datasets: {}, plugins: ["no-such-package"] }), {
    code: "invalid-config",
    message: /no-such-package/,
  });
});

/** Options that a program without types may pass. */
const BAD_OPTIONS: readonly (readonly [options: object, message: RegExp])[] = [
  [
    { prot: 1 },
    /unknown key "prot"; expected one of datasets, collections, providers, stores, plugins, .*port/,
  ],
  [{ port: 99_999 }, /^createServer: port: expected an integer from 0 to 65535, received 99999$/],
  [{ workers: 0 }, /workers: expected an integer from 1 to 1024, received 0/],
  [{ workers: Number.NaN }, /workers: expected an integer from 1 to 1024, received NaN/],
  [{ refresh: -1 }, /refresh: expected a number of seconds/],
  [{ rootPath: "a b" }, /rootPath: expected a path/],
  [{ corsOrigin: "example.org" }, /corsOrigin: expected \*/],
  [{ cacheControl: "a\r\nB: c" }, /cacheControl: expected a Cache-Control value/],
  [{ title: "" }, /title: expected a title/],
  [{ skipInvalid: "yes" }, /skipInvalid: expected true or false, received "yes"/],
  [{ log: "loud" }, /log: expected one of silent, .*, or a pino logger, received "loud"/],
  [{ cache: {} }, /cache\.directory: expected a directory, received nothing/],
  [{ cache: { directory: "x", maxBytes: -5 } }, /cache\.maxBytes: expected .*1MiB/],
  [{ plugins: "zarr" }, /plugins: expected an array/],
  [{ plugins: [1] }, /plugins\[0\]: expected a plugin/],
  [{ datasets: undefined }, /datasets: expected an object of datasets by id, received nothing/],
  [{ datasets: { air: 5 } }, /datasets\.air: expected a location, .*, received 5/],
  [{ datasets: { air: null } }, /datasets\.air: expected a location/],
  [{ datasets: { air: {} } }, /datasets\.air\.source: expected a location/],
  [
    { datasets: { air: { root: {}, groups: new Map() } } },
    /datasets\.air\.source: expected .*createDataTree\(\)/,
  ],
  [{ datasets: { air: { source: "x", cacheControl: "\n" } } }, /datasets\.air\.cacheControl: expected/],
  [{ datasets: { air: { source: "x", encoding: { chunk: [1] } } } }, /encoding: unknown key "chunk"/],
  [
    { datasets: { air: { source: "x", variables: { a: { chunks: [0] } } } } },
    /datasets\.air\.variables\.a\.chunks\[0\]: expected a positive integer/,
  ],
  [
    { datasets: { air: { source: "x", concat: "a", stack: "b" } } },
    /datasets\.air: expected concat or stack/,
  ],
  [
    { datasets: { air: { source: "x", overlap: "last" } } },
    /datasets\.air: overlap: expected concat with it/,
  ],
  [{ datasets: { air: "x/*.nc" } }, /datasets\.air: expected "concat" or "stack" with a pattern/],
  [{ single: "air" }, /single: expected true or false, received "air"/],
  [{ collections: { "a~b": "/x" } }, /collections\["a~b"\]: expected a name without "~"/],
  [{ collections: { a: { root: "/x", variables: {} } } }, /collections\.a: unknown key "variables"/],
  [{ maxOpenDatasets: 0 }, /maxOpenDatasets: expected an integer from 1 to 1000000, received 0/],
];

for (const [options, message] of BAD_OPTIONS) {
  t.test(`createServer refuses, by name: ${message.source}`, async (t) => {
    const all = { datasets: {}, ...options } as unknown as zpublish.ServerOptions;
    await t.rejects(zpublish.createServer(all), { name: "ZpublishError", code: "invalid-config", message });
  });
}

t.test("createServer joins files, and no trees", async (t) => {
  const source = await zpublish.createDataTree({});
  await t.rejects(zpublish.createServer({ datasets: { air: { source, concat: "time" } } }), {
    code: "invalid-config",
    message: "createServer: datasets.air.source: expected a pattern or a folder to join, received a tree",
  });
});

t.test("createServer reports all mistakes at once, each on a line", async (t) => {
  const options = { datasets: { "a/b": "x" }, port: -1, refresh: "5" } as unknown as zpublish.ServerOptions;
  const error = (await zpublish.createServer(options).catch((error: unknown) => error)) as Error;
  t.equal(error.message.split("\n").length, 3);
});

/** Values that are no tree, and the place that the error names. */
const BAD_TREES: readonly (readonly [tree: unknown, message: RegExp])[] = [
  [undefined, /'\/': expected a group with attrs, variables and groups, received nothing/],
  [{ variable: {} }, /'\/': unknown key "variable"; expected one of attrs, variables, groups/],
  [{ variables: [] }, /'\/': variables: expected an object by name/],
  [{ groups: { a: null } }, /'\/a': expected a group/],
  [{ variables: { a: 1 } }, /'a': expected a variable with data and shape, received 1/],
  [{ variables: { a: { shape: [2] } } }, /'a': data: expected a typed array, received nothing/],
  [{ variables: { a: { data: new Uint8Array(2) } } }, /'a': shape: expected an array of lengths/],
  [{ variables: { a: { data: new Uint8Array(2), shape: [2], dim: ["x"] } } }, /'a': unknown key "dim"/],
  [{ groups: { b: { variables: { a: { data: [1], shape: [1] } } } } }, /'b\/a': data: expected a typed/],
  [{ groups: { "a/b": {} } }, /'\/': groups\["a\/b"\]: expected a name without a slash/],
  [{ attrs: { a: undefined } }, /'\/': attrs\.a: expected a JSON value, received nothing/],
  [{ attrs: { at: [{ day: new Date(0) }] } }, /'\/': attrs\.at\[0\]\.day: expected a JSON value/],
  [{ attrs: [] }, /'\/': attrs: expected an object/],
  [
    { variables: { a: { data: new Uint8Array(1), shape: [1], attrs: { f: () => 1 } } } },
    /'a': attrs\.f: expected a JSON value, received \(\) => 1/,
  ],
];

for (const [tree, message] of BAD_TREES) {
  t.test(`createDataTree refuses, by name: ${message.source}`, async (t) => {
    await t.rejects(zpublish.createDataTree(tree as zpublish.GroupInput), {
      name: "ZpublishError",
      code: "invalid-metadata",
      message,
    });
  });
}

t.test("openDataTree wants a location", async (t) => {
  for (const location of [undefined, "", 5]) {
    await t.rejects(zpublish.openDataTree(location as string), {
      code: "invalid-config",
      message: /openDataTree: expected a location, received/,
    });
  }
});

t.test("modules of plugins are looked for from the working directory", async (t) => {
  const directory = t.testdir({
    "count.mjs": `export default {
      name: "count", version: "1", path: "count",
      routes: ({ createDocument }) => [{
        path: "/count", priority: "page", operation: { summary: "Count", contentType: "text/plain" },
        handler: () => ({ kind: "document", document: createDocument("1", "text/plain") }),
      }],
    };`,
  });
  const before = process.cwd();
  process.chdir(directory);
  t.teardown(() => process.chdir(before));
  for (const plugin of ["./count.mjs", { name: "count", module: "./count.mjs" }]) {
    const server = await zpublish.createServer({ datasets: {}, plugins: [plugin], workers: 1 });
    await server.close();
  }
});

t.test("remote stores are reached as the options say", async (t) => {
  const documents = {
    ".zgroup": { zarr_format: 2 },
    "a/.zarray": {
      ...{ zarr_format: 2, shape: [2], chunks: [2], dtype: "|u1" },
      ...{ fill_value: 0, order: "C", filters: null, compressor: null },
    },
  };
  const origin = await startFaultyOrigin(t, {
    objects: {
      "x/.zmetadata": JSON.stringify({ zarr_consolidated_format: 1, metadata: documents }),
      "x/a/0": Uint8Array.of(1, 2),
    },
    fault: ({ headers }) => (headers.authorization === "a-token" ? undefined : { status: 403 }),
  });
  const url = `${origin.url}/`;
  process.env.LIBRARY_TEST_TOKEN = "a-token";
  const options = {
    datasets: { x: { source: `${url}x`, freshness: "always" } },
    stores: { web: { url, headers: { Authorization: { env: "LIBRARY_TEST_TOKEN" } } } },
    workers: 1,
  } as const;
  const server = await zpublish.createServer(options);
  t.teardown(() => server.close());
  const chunk = `${(await server.listen({ port: 0 })).url}/datasets/x/zarr/a/0`;
  t.same([...new Uint8Array(await (await fetch(chunk)).arrayBuffer())], [1, 2]);
  origin.put("x/a/0", Uint8Array.of(3, 4));
  t.same([...new Uint8Array(await (await fetch(chunk)).arrayBuffer())], [3, 4], "it is asked each time");
  await t.rejects(zpublish.createServer({ ...options, stores: {} }), {
    code: "source-unreadable",
    message: /answers 403/,
  });
  await t.rejects(
    zpublish.createServer({ ...options, stores: { web: { url: "https://me:secret@host/" } } }),
    {
      code: "invalid-config",
      message: /^createServer: stores\.web\.url: expected .*, received "https:\/\/…@host\/"$/,
    },
  );
});
