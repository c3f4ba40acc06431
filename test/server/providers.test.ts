import t, { type Test } from "tap";
import { defaultValues, optionConfig } from "../../src/config/options.js";
import { createDataTree } from "../../src/dataset/in-memory-tree.js";
import type { Plugin, PluginDatasets, ProvidedDataset, ProviderContext } from "../../src/plugins/plugin.js";
import { until } from "../support/servers/process-table.js";
import { ALL_PLUGINS, startServer } from "../support/servers/start-server.js";

/** As `startServer` has it. */
const BASE = {
  ...optionConfig(defaultValues({})),
  ...{ host: "127.0.0.1", port: 0, workers: 1, cache: null, refreshSeconds: 0, title: "test" },
  ...{ datasets: [], collections: [] },
};

/** A plugin whose datasets are one array `x` each, whose values a test sets. */
function dataPlugin(name: string, values: Record<string, number>, more: Partial<PluginDatasets> = {}) {
  const plugin = {
    name,
    version: "1",
    path: "test",
    values,
    opened: [] as string[],
    isClosed: false,
    contexts: [] as ProviderContext[],
    datasets: (context: ProviderContext): PluginDatasets => {
      plugin.contexts.push(context);
      return {
        list: () => Object.keys(plugin.values),
        async open(id) {
          plugin.opened.push(id);
          const value = plugin.values[id];
          if (value === undefined) return undefined;
          const x = { dims: ["x"], shape: [4], data: new Int16Array(4).fill(value) };
          const tree = await context.createDataTree({ variables: { x } });
          return { tree, encoding: { compressor: null } };
        },
        close() {
          plugin.isClosed = true;
        },
        ...more,
      };
    },
  } satisfies Plugin & Record<string, unknown>;
  return plugin;
}

function start(t: Test, plugins: readonly Plugin[], more: Parameters<typeof startServer>[1] = {}) {
  return startServer(t, { plugins: [...ALL_PLUGINS, ...plugins], ...more });
}

t.test(
  "datasets of plugins are served as configured ones, and a failing one is no other's problem",
  async (t) => {
    const good = dataPlugin("good", { a: 7, "b~c.nc": 8 });
    const bad = dataPlugin(
      "bad",
      { a: 1 },
      {
        open: () => {
          throw new Error("a bug in /srv/secret");
        },
      },
    );
    const { get, json } = await start(t, [bad, good]);
    t.same(await json("/datasets"), ["bad~a", "good~a", "good~b~c.nc"]);
    t.same(await json("/datasets/good~b~c.nc/keys"), ["x"]);
    const chunk = await get("/datasets/good~a/zarr/x/0");
    t.same([...new Int16Array(await chunk.arrayBuffer())], [7, 7, 7, 7]);
    t.equal((await get("/datasets/good~a/")).status, 200);
    t.equal((await get("/datasets/good~z/keys")).status, 404);
    const failed = await get("/datasets/bad~a/keys");
    t.equal(failed.status, 500);
    t.match(await failed.json(), { detail: "The source of this data cannot be read" });
    t.equal((await get("/readyz")).status, 200);
    t.equal(good.contexts.length, 1);
    t.match(good.contexts[0]?.versions, { zpublish: /^\d/ });
  },
);

t.test("the server is ready while a provider hangs and another fails, and metrics count both", async (t) => {
  let answer: (ids: readonly string[]) => void = () => {};
  const hanging = dataPlugin(
    "hanging",
    {},
    {
      list: () =>
        new Promise((resolve) => {
          answer = resolve;
        }),
    },
  );
  const failing = dataPlugin(
    "failing",
    {},
    {
      list: () => {
        throw new Error("no answer");
      },
    },
  );
  const good = dataPlugin("good", { a: 1, b: 2 });
  const { get, json } = await start(t, [hanging, failing, good]);
  t.equal((await get("/readyz")).status, 200);
  t.same(await json("/datasets"), ["good~a", "good~b"]);
  await get("/datasets/good~a/keys");
  const raw = await (await get("/metrics")).text();
  t.match(raw, /^zpublish_provider_datasets\{provider="good"\} 2$/m);
  t.match(raw, /^zpublish_provider_open_datasets\{provider="good"\} 1$/m);
  t.match(raw, /^zpublish_provider_failed_datasets\{provider="good"\} 0$/m);
  t.match(raw, /^zpublish_provider_failed_lists_total\{provider="failing"\} 1$/m);
  t.match(raw, /^zpublish_provider_list_seconds\{provider="good"\} \d/m);
  t.match(raw, /^zpublish_provider_datasets\{provider="hanging"\} 0$/m);
  answer(["late"]);
  await until(async () => ((await json("/datasets")) as string[]).includes("hanging~late"));
});

t.test("no request fails while many more datasets are read than may be open", async (t) => {
  const values = Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`d${index}`, index]));
  const plugin = dataPlugin("p", values);
  const limits = { maxOpenDatasets: 2 };
  const { server, get } = await start(t, [plugin], { limits: { ...BASE.limits, ...limits } });
  const read = async (index: number) => {
    const response = await get(`/datasets/p~d${index}/zarr/x/0`);
    t.equal(response.status, 200);
    t.equal(new Int16Array(await response.arrayBuffer())[0], index);
  };
  for (let round = 0; round < 3; round++)
    await Promise.all(Array.from({ length: 80 }, (_, index) => read((index * 7) % 40)));
  await until(async () =>
    /^zpublish_provider_open_datasets\{provider="p"\} 2$/m.test(await (await get("/metrics")).text()),
  );
  t.ok(plugin.opened.length >= 40);
  await server.refresh();
  await read(3);
});

t.test("what a plugin gives is checked as the configuration is, and named", async (t) => {
  const given: Record<string, unknown> = {
    unknown: { location: "/x", chunk: [1] },
    none: {},
    both: { location: "/x", tree: await createDataTree({ variables: {} }) },
    foreign: { tree: { root: {} } },
    number: 7,
    wrong: { location: "/x", cacheControl: "\n" },
    null: null,
  };
  const plugin = dataPlugin(
    "odd",
    {},
    {
      list: () => Object.keys(given),
      open: (id) => given[id] as ProvidedDataset,
    },
  );
  const { get, lines } = await start(t, [plugin]);
  for (const [id, reason] of [
    ["unknown", /plugin 'odd': datasets\.unknown: unknown key "chunk"; expected one of location/],
    ["none", /plugin 'odd': datasets\.none\.location: expected a location, received nothing/],
    ["both", /plugin 'odd': datasets\.both: expected a location or a tree, received "both"/],
    ["foreign", /plugin 'odd': datasets\.foreign\.tree: expected a tree of createDataTree/],
    ["number", /plugin 'odd': datasets\.number: expected a location, or an object with one, received 7/],
    ["wrong", /plugin 'odd': datasets\.wrong\.cacheControl: expected/],
    ["null", /plugin 'odd': datasets\.null: expected .*, received null/],
  ] as const) {
    t.equal((await get(`/datasets/odd~${id}/keys`)).status, 500, id);
    t.match(
      lines.findLast(({ msg }) => msg === "dataset cannot be opened"),
      { reason },
    );
  }
});

t.test("a plugin whose datasets cannot be had keeps the server from starting", async (t) => {
  const throwing = {
    ...dataPlugin("throwing", {}),
    datasets: () => Promise.reject(new Error("no catalogue")),
  };
  await t.rejects(start(t, [throwing]), {
    code: "invalid-config",
    message: "plugin 'throwing': its datasets cannot be published: no catalogue",
  });
  const good = dataPlugin("good", {});
  const odd = { ...dataPlugin("odd", {}), datasets: () => ({ list: 7 }) as unknown as PluginDatasets };
  await t.rejects(start(t, [good, odd]), {
    code: "invalid-config",
    message: /^plugin 'odd': expected datasets \{list\(signal\), open\(id\)\}/,
  });
  t.ok(good.isClosed, "what was opened before is closed");
});

t.test(
  "a reload takes plugins over with their open datasets, and closes others after their last request",
  async (t) => {
    const kept = dataPlugin("kept", { a: 1 });
    const dropped = dataPlugin("dropped", { a: 2 });
    const { server, json, get } = await start(t, [kept, dropped]);
    const etag = (await get("/datasets/kept~a/zarr/x/0")).headers.get("etag");
    await get("/datasets/dropped~a/keys");
    const added = dataPlugin("added", { a: 3 });
    const config = { plugins: [...ALL_PLUGINS, kept, added] };
    const prepared = await server.prepare({ ...BASE, ...config });
    prepared.use();
    t.same(await json("/datasets"), ["added~a", "kept~a"]);
    t.equal((await get("/datasets/kept~a/zarr/x/0")).headers.get("etag"), etag);
    t.same(kept.opened, ["a"]);
    t.equal((await get("/datasets/dropped~a/keys")).status, 404);
    await until(() => dropped.isClosed);
    t.notOk(kept.isClosed);
  },
);
