import { setTimeout as sleep } from "node:timers/promises";
import { pino } from "pino";
import t from "tap";
import type { DatasetConfig } from "../../src/config/config.js";
import { createRefreshThrottle, type RefreshTarget } from "../../src/dataset/dataset-handle.js";
import { type DatasetRegistry, openDatasets } from "../../src/dataset/dataset-registry.js";
import { createRefreshScheduler } from "../../src/dataset/refresh-scheduler.js";
import type { Source } from "../../src/zarr/stored-tree.js";
import {
  type FakeSource,
  fakeSource,
  storedArray,
  storedTree,
  unreadable,
} from "../support/datasets/fake-source.js";
import { until } from "../support/servers/process-table.js";

function config(id: string): DatasetConfig {
  return { id, location: `at ${id}`, immutable: false, encoding: {}, variables: {} };
}

function treeOf(paths: readonly string[], fingerprint: string) {
  return storedTree([{ path: "/", attrs: {}, arrays: paths.map((path) => storedArray(path)) }], {
    fingerprint,
  });
}

function oneArray(path: string): FakeSource {
  return fakeSource(treeOf([path], "1"));
}

function open(
  sources: Record<string, Source | Error>,
  {
    skipInvalid = false,
    ids = Object.keys(sources),
    more = {} as Readonly<Record<string, Partial<DatasetConfig>>>,
  } = {},
) {
  const lines: { level: number; msg: string; dataset: string }[] = [];
  const log = pino({ level: "debug" }, { write: (line: string) => lines.push(JSON.parse(line)) });
  const scheduler = createRefreshScheduler();
  const configs = ids.map((id) => ({ ...config(id), ...more[id] }));
  const opening = openDatasets(configs, {
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

t.test("a dataset that cannot be opened is an error by name, and closes what was open", async (t) => {
  const good = oneArray("x");
  await t.rejects(open({ good, bad: unreadable("no such store") }).opening, {
    code: "source-unreadable",
    message: "dataset 'bad': no such store",
  });
  t.ok(good.closed);
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
    source.tree = treeOf(["x", "y"], "2");
    await registry.refresh();
    t.same([...registry.get("d").arrays.keys()], ["x", "y"]);
    t.same([...before.arrays.keys()], ["x"]);
    t.not(registry.get("d").revision, before.revision);
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

t.test("a dataset that seems half written is refreshed again soon, also with --refresh 0", async (t) => {
  const source = oneArray("x");
  const registry = await open({ d: source }).opening;
  source.tree = storedTree([{ path: "/", attrs: {}, arrays: [storedArray("y")] }], {
    fingerprint: "2",
    refused: [{ path: "x", reason: "half written" }],
  });
  await registry.refresh();
  t.notOk(registry.get("d").arrays.has("y"));
  source.tree = treeOf(["x", "y"], "3");
  await until(() => registry.get("d").arrays.has("y"));
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
    source.tree = treeOf(["x", name], name);
    await until(() => registry.get("d").arrays.has(name));
  }
  wake();
  scheduler.close();
  await registry.close();
  t.ok(source.closed && hanging.closed);
});

/** A source that can be checked without being read. */
interface CheckedSource extends FakeSource {
  refreshes: number;
}

function checkedSource(path = "x"): CheckedSource {
  const source = fakeSource(treeOf([path], "1")) as CheckedSource;
  const { fingerprint } = source;
  source.refreshes = 0;
  source.check = async () => {
    if (source.failure !== undefined) throw source.failure;
  };
  source.fingerprint = () => {
    source.refreshes++;
    return fingerprint();
  };
  return source;
}

const MANY = 120;

/** Many datasets, of which tests request the last one, `d119`. */
async function openLazy(
  t: { teardown(run: () => Promise<void>): void },
  last: Source = checkedSource(),
  more: Partial<DatasetConfig> = {},
  { skipInvalid = false } = {},
) {
  const sources: Source[] = Array.from({ length: MANY - 1 }, () => checkedSource());
  sources.push(last);
  const named = Object.fromEntries(sources.map((source, index) => [`d${index}`, source]));
  const { opening, lines, scheduler } = open(named, { skipInvalid, more: { [LAST]: more } });
  const registry = await opening;
  t.teardown(() => {
    scheduler.close();
    return registry.close();
  });
  return { registry, scheduler, sources: sources as CheckedSource[], lines };
}

const LAST = `d${MANY - 1}`;

function arraysOf(registry: DatasetRegistry): string[] {
  return [...registry.get(LAST).arrays.keys()];
}

t.test("the first request opens a dataset, and simultaneous ones share that", async (t) => {
  const last = checkedSource();
  last.tree = { ...last.tree, refused: [{ path: "y", reason: "no codec" }] };
  const { registry, lines } = await openLazy(t, last);
  t.same(lines, []);
  const [first, second] = await Promise.all([registry.open(LAST), registry.open(LAST)]);
  t.equal(first, second);
  t.equal(last.reads, 1);
  t.equal(registry.get(LAST), first);
  t.equal(registry.open(LAST), first, "and it is open from then on");
  t.equal(registry.ready(LAST), undefined);
  t.match(lines, [{ level: 40, dataset: LAST, msg: "refused" }], "its refusals are logged now");
});

t.test(
  "what must be read to be checked is read: settings that name its parts, a source that cannot tell",
  async (t) => {
    const wrong = openLazy(t, checkedSource(), { variables: { nope: {} } });
    await t.rejects(wrong, {
      code: "invalid-config",
      message: /^dataset 'd119': variables: .* received 'nope'$/,
    });
    const wrongDimension = openLazy(t, checkedSource(), { encoding: { chunks: { nope: 1 } } });
    await t.rejects(wrongDimension, { code: "invalid-config", message: /encoding\.chunks/ });
    const source = fakeSource(treeOf(["x"], "1"));
    const { registry } = await openLazy(t, source);
    t.equal(source.reads, 1);
    t.same(arraysOf(registry), ["x"]);
  },
);

t.test("a dataset that cannot be opened is an error at start, also among many, or a warning", async (t) => {
  const broken = checkedSource();
  broken.failure = unreadable("no such store");
  await t.rejects(openLazy(t, broken), {
    code: "source-unreadable",
    message: "dataset 'd119': no such store",
  });
  t.ok(broken.closed);
  const { registry, lines } = await openLazy(t, broken, {}, { skipInvalid: true });
  t.equal(registry.ids().length, MANY - 1);
  t.match(lines, [{ level: 40, dataset: LAST, msg: "dataset skipped", reason: "no such store" }]);
  t.throws(() => registry.open(LAST), { code: "not-found" });
});

t.test(
  "a dataset that breaks before its first request fails by name, and not for every request",
  async (t) => {
    const last = checkedSource();
    const { registry } = await openLazy(t, last);
    last.failure = unreadable("gone");
    const failure = { code: "source-unreadable", message: "dataset 'd119': gone" };
    await t.rejects(async () => registry.open(LAST), failure);
    await t.rejects(async () => registry.ready(LAST), failure);
    t.equal(last.reads, 1, "not for every request");
  },
);

t.test("without requests nothing is refreshed until SIGHUP, which refreshes open datasets", async (t) => {
  const { registry, scheduler, sources } = await openLazy(t);
  scheduler.every(0.005);
  await sleep(60);
  t.same(new Set(sources.map(({ refreshes }) => refreshes)), new Set([0]));
  await registry.refresh();
  t.equal(sources.filter(({ refreshes }) => refreshes === 1).length, 100);
});

/** Waits until a source is not refreshed any more. */
async function idle(source: { readonly refreshes: number }): Promise<void> {
  for (let refreshes = -1; refreshes !== source.refreshes; await sleep(200)) refreshes = source.refreshes;
}

t.test("a requested dataset is refreshed in every period, and requests never wait for that", async (t) => {
  const last = checkedSource();
  const { registry, scheduler } = await openLazy(t, last);
  await registry.open(LAST);
  scheduler.every(0.01);
  last.tree = treeOf(["x", "y"], "2");
  while (arraysOf(registry).length === 1) {
    t.equal(registry.ready(LAST), undefined);
    await sleep(2);
  }
  t.pass("served without a wait");
});

t.test("a refresh that hangs delays no request for long: it is answered from the state before", async (t) => {
  const last = checkedSource();
  const { registry, scheduler } = await openLazy(t, last);
  const before = await registry.open(LAST);
  scheduler.every(0.01);
  await idle(last);
  let wake = () => {};
  last.fingerprint = () => new Promise((resolve) => (wake = () => resolve("1")));
  t.equal(await registry.open(LAST), before);
  t.equal(registry.open(LAST), before, "nor is the next");
  wake();
});

/** A dataset whose refreshes end when the test says so. */
function createTarget() {
  const ends: (() => void)[] = [];
  let refreshing: Promise<void> | undefined;
  let begun = 0;
  let hasFailed = false;
  const target: RefreshTarget = {
    name: "dataset 'd': its source",
    refresh() {
      refreshing ??= new Promise<void>((resolve) => {
        begun++;
        ends.push(() => {
          refreshing = undefined;
          resolve();
        });
      });
      return refreshing;
    },
    isRefreshing: () => refreshing !== undefined,
    hasFailed: () => hasFailed,
  };
  return {
    target,
    begun: () => begun,
    fail: () => {
      hasFailed = true;
    },
    /** Ends a refresh as soon as one is under way. */
    async end() {
      await until(() => ends.length > 0);
      ends.shift()?.();
    },
  };
}

t.test("requests before a refresh begins share it; later ones wait for another", async (t) => {
  const { target, begun, end } = createTarget();
  const throttle = createRefreshThrottle(target);
  const done: string[] = [];
  const ask = (name: string) => void throttle.refresh().then(() => done.push(name));
  for (const name of ["a", "b"]) ask(name);
  await until(() => begun() === 1);
  for (const name of ["c", "d"]) ask(name);
  await end();
  await until(() => begun() === 2);
  t.same(done, ["a", "b"], "that refresh may miss what was written since");
  await end();
  await until(() => done.length === 4);
  t.equal(begun(), 2);
});

t.test("a refresh that fails is an error", async (t) => {
  const { target, end, fail } = createTarget();
  const asked = createRefreshThrottle(target).refresh();
  fail();
  const rejected = t.rejects(asked, {
    code: "source-unreadable",
    message: /^dataset 'd': its source .* cannot be read$/,
  });
  await end();
  await rejected;
});
