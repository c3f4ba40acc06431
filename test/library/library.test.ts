import { setTimeout as delay } from "node:timers/promises";
import t from "tap";
import * as zpublish from "../../src/index.js";
import { createDataTree, type PluginDatasets } from "../../src/index.js";
import { startFaultyOrigin } from "../support/origins/faulty-origin.js";
import { writeNetcdfPart } from "../support/write-parts.js";
import { makeDirectory, writeFiles, zarray, zgroup } from "../support/write-store.js";

t.test("the package exports this, and nothing else", async (t) => {
  t.same(Object.keys(zpublish).sort(), [
    "COLOUR_QUERY",
    "COLOUR_SCALES",
    "FOLDER_END",
    "LEGEND_SIZE",
    "NC",
    "POINT",
    "TEXT_TYPE",
    "WEB_MERCATOR",
    "ZpublishError",
    "assertNoColours",
    "bytesOfTexts",
    "chooseMediaType",
    "colourTable",
    "createBoundedMap",
    "createColumn",
    "createDataTree",
    "createDimNames",
    "createFileBody",
    "createSelectionPlan",
    "createServer",
    "createSlice",
    "dataLinks",
    "datasetFacts",
    "dimOf",
    "documentReply",
    "elementCount",
    "encodingOf",
    "exportedByteLength",
    "extentText",
    "findArray",
    "findGroup",
    "firstNotLess",
    "firstText",
    "groupPathOf",
    "idFolderSteps",
    "idOfVersion",
    "idPageSteps",
    "indexOf",
    "indexRange",
    "indexWithin",
    "jsonReply",
    "jsonValues",
    "keepPromise",
    "labelSelection",
    "labelText",
    "netcdfAttributes",
    "netcdfStorage",
    "nodeName",
    "objectSteps",
    "openApiDocument",
    "openDataTree",
    "overviewsOf",
    "packageVersion",
    "packingOf",
    "parentPath",
    "parseColourRange",
    "parseColours",
    "parseDataType",
    "parseQuery",
    "periodText",
    "pickedLength",
    "pictureReply",
    "placesOf",
    "plainText",
    "publicDetail",
    "pythonFloatText",
    "queryToken",
    "readInteger",
    "renamedReferences",
    "runCooperatively",
    "selectIds",
    "shortestFloat",
    "sliceOfAxis",
    "stringifyJson",
    "stringifyJsonPieces",
    "swapWords",
    "tableColumns",
    "tableRows",
    "variableFacts",
    "workThrough",
    "writeArrow",
    "writeCsv",
    "writeJson",
    "writeNetcdf",
    "writeNpy",
    "wrongParameter",
    "xmlText",
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

  const { get } = await start({
    datasets: { memory: { source: tree, variables: { t2m: { compressor: null } } } },
  });
  const chunk = await get("/datasets/memory/zarr/t2m/0.0");
  t.same([...new Float32Array(await chunk.arrayBuffer())], [0, 1, 2, 3, 4, 5]);
});

t.test("a store is opened, and served by its location as well", async (t) => {
  const directory = await makeDirectory(t);
  const array = { ...zarray, shape: [2] };
  await writeFiles(directory, { ".zgroup": zgroup, "a/.zarray": array, "a/0": Uint8Array.of(1, 2) });
  const tree = await zpublish.openDataTree(directory);
  t.same([...tree.root.variables.keys()], ["a"]);
  const { get } = await start({ datasets: { one: tree, two: directory } });
  for (const id of ["one", "two"]) {
    const chunk = await get(`/datasets/${id}/zarr/a/0`);
    t.same([...new Uint8Array(await chunk.arrayBuffer())], [1, 2], id);
  }
});

/** Options that a program without types may pass. */
const BAD_OPTIONS: readonly (readonly [options: object, message: RegExp])[] = [
  [{ prot: 1 }, /unknown key "prot"; did you mean port\?$/],
  [{ port: 99_999 }, /^createServer: port: expected an integer from 0 to 65535, received 99999$/],
  [{ workers: 0 }, /workers: expected an integer from 1 to 1024, received 0/],
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
    { datasets: { air: { source: "x", variables: { a: {}, "/a": {} } } } },
    /datasets\.air\.variables\["\/a"\]: the variable a is named twice/,
  ],
  [{ datasets: { air: "x/*.nc" } }, /datasets\.air: expected "concat" or "stack" with a pattern/],
  [{ single: "air" }, /single: expected true or false, received "air"/],
  [{ collections: { "a~b": "/x" } }, /collections\["a~b"\]: expected a name without "~"/],
  [{ collections: { a: { root: "/x", variables: {} } } }, /collections\.a: unknown key "variables"/],
  [{ datasets: { "a/b": "x" } }, /dataset 'a\/b'/],
  [{ plugins: ["no-such-package"] }, /no-such-package/],
  [{ maxRequests: 0 }, /createServer: maxRequests: expected an integer from 1/],
  [{ drainDelay: -1 }, /drainDelay: expected a number of seconds/],
  [{ trustedProxies: "x" }, /trustedProxies: expected addresses/],
  [{ tlsCert: "x.pem" }, /tlsCert: expected tlsKey with it, received none/],
  [{ tokenFile: "no-such-file" }, /no-such-file/],
  [{ maxOpenDatasets: 0 }, /maxOpenDatasets: expected an integer from 1 to 1000000, received 0/],
  [{ providers: { "a~b": providerOf([]) } }, /providers\["a~b"\]: expected a name without "~"/],
  [{ providers: { "": providerOf([]) } }, /providers\[""\]: expected a non-empty name/],
  [{ providers: { a: 7 } }, /providers\.a: expected an object with list and open, received 7/],
  [
    { providers: { a: { list: () => [] } } },
    /^provider 'a': expected datasets \{list\(signal\), open\(id\)\}/,
  ],
  [{ providers: [] }, /createServer: providers: expected an object of providers by name/],
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
  [{ variables: { a: { data: new Uint8Array(3), shape: [4] } } }, /'a'/],
  [undefined, /'\/': expected a group with attrs, variables and groups, received nothing/],
  [{ variable: {} }, /'\/': unknown key "variable"; did you mean variables\?/],
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
  const documents = { ".zgroup": zgroup, "a/.zarray": { ...zarray, shape: [2] } };
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

async function start(options: zpublish.ServerOptions) {
  const server = await zpublish.createServer({ workers: 1, refresh: 0, drainTimeout: 0, ...options });
  t.teardown(() => server.close());
  const { url } = await server.listen({ port: 0 });
  const get = (path: string) => fetch(url + path);
  return { server, get, json: async (path: string): Promise<unknown> => (await get(path)).json() };
}

t.test("a program joins files, and publishes a folder of them", async (t) => {
  const root = await makeDirectory(t);
  for (const first of [0, 1, 2]) await writeNetcdfPart(root, `run-${first}.nc`, { first, count: 1 });
  const runs = await makeDirectory(t);
  for (const run of [7, 12]) await writeNetcdfPart(runs, `run-${run}.nc`, { first: 0, count: 1 });
  const stack = { dimension: "run", coordinate: "run-(\\d+)" };
  const options: zpublish.ServerOptions = {
    datasets: {
      all: { source: `${root}/run-*.nc`, concat: "time" },
      some: { source: runs, stack },
    },
    collections: { each: { root, exclude: ["*-2.nc"] }, "": root },
  };
  const { server, json } = await start(options);
  const each = ["each~run-0.nc", "each~run-1.nc"];
  const rest = ["run-0.nc", "run-1.nc", "run-2.nc"];
  t.same(await json("/datasets"), ["all", "some", ...each, ...rest]);
  t.match(await json("/datasets/all/zarr/v/.zarray"), { shape: [3, 2] });
  t.match(await json("/datasets/some/zarr/v/.zarray"), { shape: [2, 1, 2] });
  t.match(await json("/datasets/some/dict"), { coords: { run: { dims: ["run"], attrs: {} } } });
  t.match(await json("/datasets/each~run-1.nc/zarr/v/.zarray"), { shape: [1, 2] });

  await server.reload({ ...options, collections: { other: root }, workers: 1, refresh: 0 });
  t.same(await json("/datasets"), ["all", "some", ...[0, 1, 2].map((run) => `other~run-${run}.nc`)]);
});

function providerOf(ids: readonly string[]): PluginDatasets & { isClosed: boolean } {
  const provider = {
    isClosed: false,
    list: () => ids,
    async open() {
      const x = { dims: ["x"], shape: [1], data: new Int16Array(1) };
      return { tree: await createDataTree({ variables: { x } }) };
    },
    close() {
      provider.isClosed = true;
    },
  };
  return provider;
}

t.test("a program publishes datasets that come and go", async (t) => {
  const [mine, other] = [providerOf(["a"]), providerOf(["c"])];
  const { server, json } = await start({ datasets: {}, providers: { mine } });
  t.same(await json("/datasets"), ["mine~a"]);
  t.same(await json("/datasets/mine~a/keys"), ["x"]);
  await server.reload({ datasets: {}, providers: { mine, other }, workers: 1 });
  t.same(await json("/datasets"), ["mine~a", "other~c"]);
  await server.close();
  t.ok(mine.isClosed && other.isClosed);
});

async function treeOf(value: number): Promise<zpublish.ServableTree> {
  return zpublish.createDataTree({ variables: { v: { data: Uint8Array.of(value), shape: [1] } } });
}

t.test("a library's server applies other options while it runs", async (t) => {
  const [one, two] = [await treeOf(1), await treeOf(2)];
  const { server, get } = await start({ datasets: { one } });
  const before = await get("/datasets/one/zarr/v/0");
  t.same(
    await server.reload({
      datasets: { one, two: { source: two, encoding: { compressor: null } } },
      workers: 1,
      title: "other",
    }),
    [],
  );
  const after = await get("/datasets/one/zarr/v/0");
  t.equal(after.headers.get("etag"), before.headers.get("etag"));
  t.same([...new Uint8Array(await (await get("/datasets/two/zarr/v/0")).arrayBuffer())], [2]);
  t.match(await (await get("/")).text(), "other");
  t.same(await server.reload({ datasets: { two }, workers: 1 }), []);
  t.equal((await get("/datasets/one/zarr/v/0")).status, 404);
  t.same([...one.root.variables.keys()], ["v"], "a given tree stays open");
});

t.test("options that cannot change are named", async (t) => {
  const { server } = await start({ datasets: {} });
  t.same(await server.reload({ datasets: {}, workers: 3, port: 1, workerMemory: "1GiB" }), [
    "port",
    "workers",
    "workerMemory",
  ]);
});

t.test("invalid options are refused, and nothing changes", async (t) => {
  const { server, get } = await start({ datasets: { one: await treeOf(1) } });
  await t.rejects(server.reload({ datasets: { "a/b": "x" } }), { code: "invalid-config" });
  await t.rejects(server.reload({ datasets: { none: "/no/such/store" } }), /dataset 'none'/);
  t.same(await (await get("/datasets")).json(), ["one"]);
});

t.test("concurrent reloads run one after the other, and the last one stays", async (t) => {
  const { server, get } = await start({ datasets: {} });
  const trees = await Promise.all([1, 2, 3].map(treeOf));
  const reloads = trees.map((tree, index) =>
    server.reload({ datasets: { [`d${index}`]: tree }, workers: 1 }),
  );
  await t.resolves(Promise.all(reloads));
  t.same(await (await get("/datasets")).json(), ["d2"]);
});

t.test("a plugin stays while it is the same, and is closed when its last request is answered", async (t) => {
  const events: string[] = [];
  let open = () => {};
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  const pluginOf = (name: string): zpublish.Plugin => ({
    name,
    version: "1.0.0",
    path: `example/${name}`,
    routes({ createDocument, title }) {
      events.push(`${name} routes of ${title}`);
      return [
        {
          path: `/${name}`,
          priority: "chunk",
          operation: { summary: "", contentType: "text/plain" },
          async handler() {
            await gate;
            return { kind: "document", document: createDocument(title, "text/plain") };
          },
        },
      ];
    },
    async close() {
      events.push(`${name} closed`);
    },
  });
  const [kept, dropped] = [pluginOf("kept"), pluginOf("dropped")];
  const { server, get } = await start({ datasets: {}, plugins: [kept, dropped], title: "one" });
  const asked = [get("/kept"), get("/dropped")];
  await delay(100);
  await server.reload({ datasets: {}, plugins: [kept], title: "two", workers: 1 });
  const expected = ["kept routes of one", "dropped routes of one", "kept routes of two"];
  await delay(300);
  t.same(events, expected);
  open();
  t.same(await Promise.all(asked.map(async (answer) => (await answer).text())), ["one", "one"]);
  t.equal(await (await get("/kept")).text(), "two");
  while (events.length === expected.length) await delay(10);
  t.same(events.slice(3), ["dropped closed"]);
  await server.close();
  t.same(events.slice(4), ["kept closed"]);
});

t.test("after close() nothing is reloaded", async (t) => {
  const { server } = await start({ datasets: {} });
  await server.close();
  await t.rejects(server.reload({ datasets: {} }), { code: "draining" });
});
