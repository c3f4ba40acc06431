import { pino } from "pino";
import t from "tap";
import type { DatasetConfig } from "../../src/config/config.js";
import type { DatasetSnapshot } from "../../src/dataset/dataset.js";
import { createDatasetHandle } from "../../src/dataset/dataset-handle.js";
import { type DatasetRegistry, openDatasets } from "../../src/dataset/dataset-registry.js";
import { createRefreshScheduler } from "../../src/dataset/refresh-scheduler.js";
import { createSnapshot } from "../../src/dataset/snapshot.js";
import type { StoredTree } from "../../src/zarr/stored-tree.js";
import {
  type FakeSource,
  fakeSource,
  storedArray,
  storedTree,
  unreadable,
} from "../support/datasets/fake-source.js";

function config(more: Partial<DatasetConfig> = {}): DatasetConfig {
  return { id: "d", location: "here", immutable: false, encoding: {}, variables: {}, ...more };
}

/** Opens a dataset without a log. */
async function openDataset(config: DatasetConfig, source: FakeSource) {
  const handle = createDatasetHandle(config, source, { cacheControl: "", log: pino({ level: "silent" }) });
  await handle.open();
  return {
    refresh: handle.refresh,
    get snapshot() {
      return handle.snapshot as DatasetSnapshot;
    },
  };
}

const both = storedTree([{ path: "/", attrs: {}, arrays: [storedArray("x"), storedArray("y")] }]);

t.test("a configured variable that is removed is a warning, and other changes are served", async (t) => {
  const source = fakeSource(both);
  const dataset = await openDataset(config({ variables: { y: { chunks: [4, 6] } } }), source);
  source.tree = storedTree([{ path: "/", attrs: { title: "new" }, arrays: [storedArray("x")] }], {
    fingerprint: "2",
  });
  await dataset.refresh();
  t.same([...dataset.snapshot.arrays.keys()], ["x"]);
  t.same(dataset.snapshot.tree.root.attrs, { title: "new" });
  t.same(dataset.snapshot.warnings, ["variables: expected the path of an array (x), received 'y'"]);
});

t.test(
  "a group that cannot be understood any more is still served until three refreshes find so",
  async (t) => {
    const root = { path: "/", attrs: {}, arrays: [storedArray("x")] };
    const source = fakeSource(storedTree([root, { path: "/g", attrs: { a: 1 }, arrays: [] }]));
    const dataset = await openDataset(config(), source);
    source.tree = storedTree([root], { fingerprint: "2", refused: [{ path: "g", reason: "half written" }] });
    await dataset.refresh();
    await dataset.refresh();
    t.ok(dataset.snapshot.tree.groups.has("/g"));
    await dataset.refresh();
    t.notOk(dataset.snapshot.tree.groups.has("/g"));
  },
);

t.test("an array that was served and is now refused is withdrawn until it is served again", async (t) => {
  const source = fakeSource({ ...both, refused: [{ path: "never", reason: "no codec" }] });
  const dataset = await openDataset(config(), source);
  t.same(dataset.snapshot.withdrawn, new Set());
  const broken = storedTree([{ path: "/", attrs: {}, arrays: [storedArray("x")] }], {
    refused: [
      { path: "never", reason: "no codec" },
      { path: "y", reason: "half written" },
    ],
  });
  source.tree = { ...broken, fingerprint: "2" };
  for (let refreshes = 0; refreshes < 2; refreshes++) await dataset.refresh();
  t.ok(dataset.snapshot.arrays.has("y"), "it may be half written");
  await dataset.refresh();
  t.notOk(dataset.snapshot.arrays.has("y"));
  t.same(dataset.snapshot.withdrawn, new Set(["y"]));
  source.tree = { ...broken, fingerprint: "3" };
  await dataset.refresh();
  t.same(dataset.snapshot.withdrawn, new Set(["y"]));
  source.tree = { ...both, fingerprint: "4" };
  await dataset.refresh();
  t.same(dataset.snapshot.withdrawn, new Set());
});

const tree = storedTree([
  {
    path: "/",
    attrs: { title: "x" },
    arrays: [storedArray("a"), storedArray("b", { codecs: [{ id: "mystery" }] })],
  },
  { path: "/g", attrs: {}, arrays: [storedArray("g/a", { dimNames: null })] },
]);

t.test("arrays without an encoding are served as stored", async (t) => {
  const { arrays, refused } = createSnapshot(config(), tree, "no-store");
  t.same(refused, []);
  t.same([...arrays.keys()], ["a", "b", "g/a"]);
  t.equal(arrays.get("b")?.plan.kind, "passthrough", "an unknown codec can be passed through");
  t.same(arrays.get("a")?.document, {
    zarr_format: 2,
    shape: [4, 6],
    chunks: [2, 2],
    dtype: "<i2",
    fill_value: 0,
    order: "C",
    filters: null,
    compressor: { id: "zlib", level: 1 },
    dimension_separator: ".",
  });
  t.same(arrays.get("a")?.zattrs, { _ARRAY_DIMENSIONS: ["axis0", "axis1"] });
  t.same(arrays.get("g/a")?.zattrs, { _ARRAY_DIMENSIONS: ["dim_4", "dim_6"] });
});

t.test("chunks by name apply to the dimensions that an array has; a variable's own come first", async (t) => {
  const { arrays } = createSnapshot(
    config({ encoding: { chunks: { axis1: -1, other: 3 } }, variables: { a: { chunks: [4, 3] } } }),
    storedTree([
      {
        path: "/",
        attrs: {},
        arrays: [storedArray("a"), storedArray("b", { shape: [9], dimNames: ["other"] }), storedArray("c")],
      },
    ]),
    "",
  );
  t.same(arrays.get("a")?.document.chunks, [4, 3]);
  t.same(arrays.get("c")?.document.chunks, [2, 6]);
  t.equal(arrays.get("c")?.plan.kind, "rechunk");
});

t.test("an array that cannot be served as asked is refused by name, and the rest is served", async (t) => {
  const asked = config({
    encoding: { compressor: { id: "zstd", level: 1 } },
    variables: { a: { chunks: { z: 1 } } },
  });
  const { arrays, refused } = createSnapshot(asked, tree, "");
  t.same([...arrays.keys()], ["g/a"]);
  t.match(refused, [
    { path: "a", reason: /array 'a': chunks: expected dimension names among axis0, axis1, received z/ },
    { path: "b", reason: /mystery/ },
  ]);
});

t.test("Blosc with an inner codec that is not encoded is a warning that names the arrays", async (t) => {
  const compressor = { id: "blosc", cname: "lz4hc", clevel: 5, shuffle: 1, blocksize: 0 };
  const { arrays, warnings } = createSnapshot(config({ encoding: { compressor } }), tree, "");
  t.match(arrays.get("a")?.document.compressor, { ...compressor, cname: "lz4" });
  t.same(warnings, ["Blosc with lz4hc is decoded but not encoded: served with lz4 (a, g/a)"]);
});

t.test("an array that Zarr v3 cannot describe is a warning that names it", async (t) => {
  const { arrays, warnings } = createSnapshot(config(), tree, "");
  t.same(warnings, ["served as Zarr v2 only: array 'b': Zarr v3 has no name for the codec mystery"]);
  t.throws(() => arrays.get("b")?.describeV3(), { code: "unsupported" });
  t.equal(arrays.get("a")?.describeV3().plan, arrays.get("a")?.plan);
});

t.test("the revision tells metadata and encoding apart, and nothing else", async (t) => {
  const revision = (asked: DatasetConfig, stored = tree) => createSnapshot(asked, stored, "").revision;
  const plain = revision(config());
  t.equal(revision(config({ location: "elsewhere" }), { ...tree, identity: "other" }), plain);
  t.not(revision(config({ variables: { a: { chunks: [4, 3] } } })), plain);
  t.not(revision(config(), storedTree([{ path: "/", attrs: { title: "y" }, arrays: [] }])), plain);
});

function joinedTree(steps: number): StoredTree {
  const parts = Array.from({ length: steps }, (_, start) => ({ name: `${start >> 1}.nc`, start, length: 1 }));
  const arrays = [storedArray("v", { shape: [steps, 2] })];
  return storedTree([{ path: "/", attrs: {}, arrays }], {
    join: { kind: "concat", dimension: "time", parts },
    fingerprint: String(steps),
  });
}

t.test("the log has a line about the files of a joined dataset, and another when it has grown", async (t) => {
  const lines: unknown[] = [];
  const log = pino({}, { write: (line: string) => lines.push(JSON.parse(line)) });
  const source = fakeSource(joinedTree(4));
  const dataset = createDatasetHandle(config({ id: "sst" }), source, { cacheControl: "no-cache", log });
  await dataset.open();
  t.match(lines, [{ level: 30, msg: "files joined", dataset: "sst", dimension: "time", files: 2, steps: 4 }]);
  t.match(dataset.snapshot?.join, { kind: "concat", dimension: "time" });
  source.tree = joinedTree(6);
  await dataset.refresh();
  t.match(lines.slice(1), [{ msg: "dataset refreshed", dataset: "sst", files: 3, steps: 6 }]);
  await dataset.close();
});

/** Successive registries, over sources that count how often they were opened. */
function createHistory() {
  const opened: string[] = [];
  const sources = new Map<string, FakeSource>();
  const scheduler = createRefreshScheduler();
  const open = (configs: readonly DatasetConfig[], former?: DatasetRegistry) =>
    openDatasets(configs, {
      scheduler,
      former,
      cacheControl: "",
      skipInvalid: false,
      log: pino({ level: "silent" }),
      async openSource({ location }) {
        if (location === "nowhere") throw unreadable("no such store");
        opened.push(location);
        const tree = storedTree([{ path: "/", attrs: { location }, arrays: [storedArray("x")] }]);
        const source = fakeSource(tree);
        sources.set(location, source);
        return source;
      },
    });
  return { opened, sources, open };
}

function takenOverConfig(id: string, more: Partial<DatasetConfig> = {}): DatasetConfig {
  return config({ id, location: `at ${id}`, ...more });
}

t.test("datasets whose configuration is the same are taken over as they are, also many", async (t) => {
  const { opened, open } = createHistory();
  const many = Array.from({ length: 10_000 }, (_, index) => takenOverConfig(`d${index}`));
  const first = await open(many);
  const snapshot = first.get("d7");
  t.equal(opened.length, 10_000);
  const second = await open([...many.toReversed(), takenOverConfig("new")], first);
  t.same(opened.slice(10_000), ["at new"]);
  await first.close();
  t.equal(second.get("d7").revision, snapshot.revision);
  t.equal(second.ids().length, 10_001);
  t.equal(second.stats.datasets, 10_001);
  await second.close();
});

t.test("a dataset whose configuration differs is opened beside the former one", async (t) => {
  const { opened, sources, open } = createHistory();
  const first = await open([takenOverConfig("a"), takenOverConfig("b"), takenOverConfig("c")]);
  const before = first.get("b");
  const second = await open(
    [
      takenOverConfig("a", { immutable: true }),
      takenOverConfig("b", { location: "elsewhere" }),
      takenOverConfig("c", { encoding: { chunks: [1, 1] } }),
    ],
    first,
  );
  t.same(opened.slice(3).sort(), ["at a", "at c", "elsewhere"]);
  t.equal(first.get("b"), before, "requests in flight have the same snapshot");
  t.not(second.get("b"), before);
  const old = sources.get("at b");
  t.notOk(old?.closed);
  await first.close();
  t.ok(old?.closed);
  t.notOk(sources.get("elsewhere")?.closed);
});

t.test("a registry that cannot be opened leaves the former one unchanged", async (t) => {
  const { sources, open } = createHistory();
  const first = await open([takenOverConfig("a")]);
  await t.rejects(
    open(
      [takenOverConfig("a"), takenOverConfig("n"), takenOverConfig("bad", { location: "nowhere" })],
      first,
    ),
    {
      message: "dataset 'bad': no such store",
    },
  );
  t.ok(sources.get("at n")?.closed);
  t.notOk(sources.get("at a")?.closed);
  t.ok(first.get("a"));
  await first.close();
  t.ok(sources.get("at a")?.closed);
});

t.test("a dataset in several registries is closed with the last of them", async (t) => {
  const { sources, open } = createHistory();
  const first = await open([takenOverConfig("a")]);
  const second = await open([takenOverConfig("a")], first);
  const third = await open([takenOverConfig("a")], second);
  await second.close();
  await first.close();
  t.notOk(sources.get("at a")?.closed);
  await third.close();
  t.ok(sources.get("at a")?.closed);
});

t.test("a registry counts open datasets and failed refreshes", async (t) => {
  const { sources, open } = createHistory();
  const registry = await open([takenOverConfig("a"), takenOverConfig("b")]);
  t.same(registry.stats, { datasets: 2, open: 2, failedRefreshes: 0, providers: [] });
  const source = sources.get("at b") as FakeSource;
  source.failure = unreadable();
  await registry.refresh();
  t.same(registry.stats, { datasets: 2, open: 2, failedRefreshes: 1, providers: [] });
  source.failure = undefined;
  await registry.refresh();
  t.equal(registry.stats.failedRefreshes, 1, "so far");
});
