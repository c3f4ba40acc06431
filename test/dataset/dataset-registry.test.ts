import { pino } from "pino";
import t from "tap";
import type { DatasetConfig } from "../../src/config/config.js";
import { openDatasets } from "../../src/dataset/dataset-registry.js";
import { createRefreshScheduler } from "../../src/dataset/refresh-scheduler.js";
import type { Source } from "../../src/zarr/stored-tree.js";
import {
  type FakeSource,
  fakeSource,
  storedArray,
  storedTree,
  unreadable,
} from "../support/datasets/fake-source.js";

function config(id: string): DatasetConfig {
  return { id, location: `at ${id}`, immutable: false, encoding: {}, variables: {} };
}

function oneArray(path: string, fingerprint = "1"): FakeSource {
  return fakeSource(storedTree([{ path: "/", attrs: {}, arrays: [storedArray(path)] }], { fingerprint }));
}

function open(
  sources: Record<string, Source | Error>,
  { skipInvalid = false, ids = Object.keys(sources) } = {},
) {
  const lines: { level: number; msg: string; dataset: string }[] = [];
  const log = pino({ level: "debug" }, { write: (line: string) => lines.push(JSON.parse(line)) });
  const scheduler = createRefreshScheduler();
  const opening = openDatasets(ids.map(config), {
    scheduler,
    cacheControl: "no-cache",
    skipInvalid,
    log,
    openSource: async ({ id }) => {
      const source = sources[id];
      if (source === undefined || source instanceof Error) throw source;
      return source;
    },
  });
  return { opening, lines, scheduler };
}

t.test("ids come in the order configured, and an unknown one is not found", async (t) => {
  const registry = await open({ b: oneArray("x"), a: oneArray("y") }).opening;
  t.same(registry.ids(), ["b", "a"]);
  t.same([...registry.get("a").arrays.keys()], ["y"]);
  t.throws(() => registry.get("c"), { code: "not-found", message: "Dataset 'c' not found" });
});

t.test("a dataset that cannot be opened is an error by name, and closes what was open", async (t) => {
  const good = oneArray("x");
  await t.rejects(open({ good, bad: unreadable("no such store") }).opening, {
    code: "source-unreadable",
    message: "dataset 'bad': no such store",
  });
  t.ok(good.closed);
});

t.test("or a warning with skipInvalid", async (t) => {
  const { opening, lines } = open({ bad: unreadable(), good: oneArray("x") }, { skipInvalid: true });
  const registry = await opening;
  t.same(registry.ids(), ["good"]);
  t.match(lines, [{ level: 40, dataset: "bad", msg: "dataset skipped" }]);
});

t.test("an id used twice is refused with both locations", async (t) => {
  await t.rejects(open({ a: oneArray("x") }, { ids: ["a", "a"] }).opening, {
    code: "invalid-config",
    message: /'at a' and for 'at a'/,
  });
});

t.test(
  "new metadata is served after a refresh; a request has the snapshot with which it began",
  async (t) => {
    const source = oneArray("x");
    const registry = await open({ d: source }).opening;
    const before = registry.get("d");
    await registry.refresh();
    t.equal(registry.get("d"), before, "nothing changed");
    t.equal(source.reads, 1, "and nothing was read");
    source.tree = storedTree([{ path: "/", attrs: {}, arrays: [storedArray("x"), storedArray("y")] }], {
      fingerprint: "2",
    });
    await registry.refresh();
    t.same([...registry.get("d").arrays.keys()], ["x", "y"]);
    t.same([...before.arrays.keys()], ["x"]);
    t.not(registry.get("d").revision, before.revision);
  },
);

t.test(
  "an array that cannot be understood any more is still served until three refreshes find so",
  async (t) => {
    const source = oneArray("x");
    const registry = await open({ d: source }).opening;
    source.tree = storedTree([{ path: "/", attrs: {}, arrays: [] }], {
      fingerprint: "2",
      refused: [{ path: "x", reason: "half written" }],
    });
    await registry.refresh();
    await registry.refresh();
    t.ok(registry.get("d").arrays.has("x"));
    await registry.refresh();
    t.notOk(registry.get("d").arrays.has("x"));
    t.same(registry.get("d").refused, [{ path: "x", reason: "half written" }]);
  },
);

t.test("findings of a refresh are logged once", async (t) => {
  const source = oneArray("x");
  source.tree = { ...source.tree, warnings: ["odd"], refused: [{ path: "y", reason: "no codec" }] };
  const { opening, lines } = open({ d: source });
  const registry = await opening;
  const before = lines.length;
  t.equal(before, 2);
  source.tree = {
    ...source.tree,
    fingerprint: "2",
    warnings: ["odd", "odder"],
    refused: [...source.tree.refused, { path: "z", reason: "no type" }],
  };
  await registry.refresh();
  t.match(lines.slice(before), [
    { msg: "dataset refreshed" },
    { msg: "refused", path: "z", reason: "no type" },
    { msg: "odder" },
  ]);
  t.equal(lines.length, before + 3);
});

t.test(
  "a source that fails is logged once, its last state is still served, and its recovery is logged",
  async (t) => {
    const source = oneArray("x");
    const { opening, lines } = open({ d: source });
    const registry = await opening;
    source.failure = unreadable("gone");
    await registry.refresh();
    await registry.refresh();
    t.ok(registry.get("d").arrays.has("x"));
    source.failure = undefined;
    await registry.refresh();
    t.same(
      lines.map(({ msg }) => msg),
      ["dataset cannot be refreshed; its last state is still served", "dataset can be refreshed again"],
    );
  },
);

t.test("datasets are refreshed in every period until the registry closes", async (t) => {
  const source = oneArray("x");
  const { opening, scheduler } = open({ d: source });
  const registry = await opening;
  scheduler.every(0.01);
  source.tree = storedTree([{ path: "/", attrs: {}, arrays: [storedArray("z")] }], { fingerprint: "2" });
  while (!registry.get("d").arrays.has("z")) await new Promise((resolve) => setTimeout(resolve, 5));
  scheduler.close();
  await registry.close();
  t.ok(source.closed);
});

t.test("a dataset that seems half written is refreshed again soon, also with --refresh 0", async (t) => {
  const source = oneArray("x");
  const registry = await open({ d: source }).opening;
  source.tree = storedTree([{ path: "/", attrs: {}, arrays: [storedArray("y")] }], {
    fingerprint: "2",
    refused: [{ path: "x", reason: "half written" }],
  });
  await registry.refresh();
  t.notOk(registry.get("d").arrays.has("y"));
  source.tree = storedTree([{ path: "/", attrs: {}, arrays: [storedArray("x"), storedArray("y")] }], {
    fingerprint: "3",
  });
  while (!registry.get("d").arrays.has("y")) await new Promise((resolve) => setTimeout(resolve, 20));
  await registry.close();
});

t.test("a source that hangs does not delay other datasets", async (t) => {
  const [hanging, source] = [oneArray("x"), oneArray("x")];
  const { opening, scheduler } = open({ hanging, d: source });
  const registry = await opening;
  let wake = () => {};
  hanging.fingerprint = () => new Promise((resolve) => (wake = () => resolve("1")));
  registry.get("hanging");
  scheduler.every(0.01);
  for (const name of ["y", "z"]) {
    source.tree = storedTree([{ path: "/", attrs: {}, arrays: [storedArray("x"), storedArray(name)] }], {
      fingerprint: name,
    });
    while (!registry.get("d").arrays.has(name)) await new Promise((resolve) => setTimeout(resolve, 5));
  }
  wake();
  scheduler.close();
  await registry.close();
  t.ok(source.closed && hanging.closed);
});
