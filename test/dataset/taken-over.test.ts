import { pino } from "pino";
import t from "tap";
import type { DatasetConfig } from "../../src/config/config.js";
import { type DatasetRegistry, openDatasets } from "../../src/dataset/dataset-registry.js";
import { createRefreshScheduler } from "../../src/dataset/refresh-scheduler.js";
import {
  type FakeSource,
  fakeSource,
  storedArray,
  storedTree,
  unreadable,
} from "../support/datasets/fake-source.js";

/** Successive registries, over sources that count how often they were opened. */
function createHistory() {
  const opened: string[] = [];
  const sources = new Map<string, FakeSource>();
  const scheduler = createRefreshScheduler();
  const open = (configs: readonly DatasetConfig[], former?: DatasetRegistry, cacheControl = "first") =>
    openDatasets(configs, {
      scheduler,
      former,
      cacheControl,
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

function config(id: string, more: Partial<DatasetConfig> = {}): DatasetConfig {
  return { id, location: `at ${id}`, immutable: false, encoding: {}, variables: {}, ...more };
}

t.test("datasets whose configuration is the same are taken over as they are, also many", async (t) => {
  const { opened, open } = createHistory();
  const many = Array.from({ length: 10_000 }, (_, index) => config(`d${index}`));
  const first = await open(many);
  const snapshot = first.get("d7");
  t.equal(opened.length, 10_000);
  const second = await open([...many.toReversed(), config("new")], first);
  t.same(opened.slice(10_000), ["at new"]);
  second.applyCacheControl();
  await first.close();
  t.equal(second.get("d7").revision, snapshot.revision);
  t.equal(second.ids().length, 10_001);
  t.equal(second.stats.datasets, 10_001);
  await second.close();
});

t.test("a dataset is taken over with its snapshot and its findings", async (t) => {
  const { open } = createHistory();
  const first = await open([config("a")]);
  const snapshot = await first.open("a");
  const second = await open([config("a")], first);
  t.equal(second.open("a"), snapshot, "without another refresh");
});

t.test("a dataset whose configuration differs is opened beside the former one", async (t) => {
  const { opened, sources, open } = createHistory();
  const first = await open([config("a"), config("b"), config("c")]);
  const before = first.get("b");
  const second = await open(
    [
      config("a", { immutable: true }),
      config("b", { location: "elsewhere" }),
      config("c", { encoding: { chunks: [1, 1] } }),
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

t.test(
  "another Cache-Control opens nothing, and applies from the moment the registry is in use",
  async (t) => {
    const { opened, open } = createHistory();
    const first = await open([config("a"), config("b", { cacheControl: "own" })]);
    const second = await open([config("a"), config("b", { cacheControl: "other" })], first, "second");
    t.same([first.get("a").cacheControl, first.get("b").cacheControl], ["first", "own"]);
    second.applyCacheControl();
    t.same([second.get("a").cacheControl, second.get("b").cacheControl], ["second", "other"]);
    t.equal(opened.length, 2);
  },
);

t.test("another Cache-Control outlives a refresh", async (t) => {
  const { sources, open } = createHistory();
  const first = await open([config("a", { cacheControl: "own" })]);
  const second = await open([config("a")], first, "second");
  second.applyCacheControl();
  const source = sources.get("at a") as FakeSource;
  source.tree = storedTree([{ path: "/", attrs: {}, arrays: [storedArray("y")] }], { fingerprint: "2" });
  await second.refresh();
  t.ok(second.get("a").arrays.has("y"));
  t.equal(second.get("a").cacheControl, "second");
});

t.test("a registry that cannot be opened leaves the former one unchanged", async (t) => {
  const { sources, open } = createHistory();
  const first = await open([config("a")]);
  await t.rejects(open([config("a"), config("n"), config("bad", { location: "nowhere" })], first), {
    message: "dataset 'bad': no such store",
  });
  t.ok(sources.get("at n")?.closed);
  t.notOk(sources.get("at a")?.closed);
  t.ok(first.get("a"));
  await first.close();
  t.ok(sources.get("at a")?.closed);
});

t.test("a dataset in several registries is closed with the last of them", async (t) => {
  const { sources, open } = createHistory();
  const first = await open([config("a")]);
  const second = await open([config("a")], first);
  const third = await open([config("a")], second);
  await second.close();
  await first.close();
  t.notOk(sources.get("at a")?.closed);
  await third.close();
  t.ok(sources.get("at a")?.closed);
});

t.test("a registry counts open datasets and failed refreshes", async (t) => {
  const { sources, open } = createHistory();
  const registry = await open([config("a"), config("b")]);
  t.same(registry.stats, { datasets: 2, open: 2, failedRefreshes: 0, providers: [] });
  const source = sources.get("at b") as FakeSource;
  source.failure = unreadable();
  await registry.refresh();
  t.same(registry.stats, { datasets: 2, open: 2, failedRefreshes: 1, providers: [] });
  source.failure = undefined;
  await registry.refresh();
  t.equal(registry.stats.failedRefreshes, 1, "so far");
});
