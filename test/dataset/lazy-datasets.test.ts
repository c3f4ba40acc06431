import { setTimeout as sleep } from "node:timers/promises";
import { pino } from "pino";
import t from "tap";
import type { DatasetConfig } from "../../src/config/config.js";
import { type DatasetRegistry, openDatasets } from "../../src/dataset/dataset-registry.js";
import { createRefreshScheduler } from "../../src/dataset/refresh-scheduler.js";
import { ZpublishError } from "../../src/errors.js";
import type { Source } from "../../src/zarr/stored-tree.js";
import {
  type FakeSource,
  fakeSource,
  storedArray,
  storedTree,
  unreadable,
} from "../support/datasets/fake-source.js";

/** A source that can be checked without being read. */
interface CheckedSource extends FakeSource {
  checks: number;
  refreshes: number;
}

function checkedSource(path = "x"): CheckedSource {
  const source = fakeSource(treeOf([path], "1")) as CheckedSource;
  const { fingerprint } = source;
  source.checks = 0;
  source.refreshes = 0;
  source.check = async () => {
    source.checks++;
    if (source.failure !== undefined) throw source.failure;
  };
  source.fingerprint = () => {
    source.refreshes++;
    return fingerprint();
  };
  return source;
}

function treeOf(paths: readonly string[], fingerprint: string) {
  return storedTree([{ path: "/", attrs: {}, arrays: paths.map((path) => storedArray(path)) }], {
    fingerprint,
  });
}

const MANY = 120;

/** Many datasets, of which tests request the last one, `d119`. */
async function open(
  t: { teardown(run: () => Promise<void>): void },
  last: Source = checkedSource(),
  more: Partial<DatasetConfig> = {},
  { skipInvalid = false } = {},
) {
  const lines: { level: number; msg: string; dataset: string }[] = [];
  const sources: Source[] = Array.from({ length: MANY - 1 }, () => checkedSource());
  sources.push(last);
  const configs = sources.map((source, index) => ({
    id: `d${index}`,
    location: source.location,
    immutable: false,
    encoding: {},
    variables: {},
    ...(source === last ? more : {}),
  }));
  const scheduler = createRefreshScheduler();
  const registry = await openDatasets(configs, {
    scheduler,
    cacheControl: "no-cache",
    skipInvalid,
    log: pino({ level: "debug" }, { write: (line: string) => lines.push(JSON.parse(line)) }),
    openSource: async ({ id }) => sources[Number(id.slice(1))] as Source,
  });
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

t.test("of many datasets the first are read at start, and the others are checked", async (t) => {
  const { registry, sources } = await open(t);
  t.equal(registry.ids().length, MANY);
  t.same(
    sources.map(({ reads, checks }) => [reads, checks]),
    sources.map((_, index) => (index < 100 ? [1, 0] : [0, 1])),
  );
  t.throws(() => registry.get(LAST), { code: "internal", message: /'d119' to be open/ });
});

t.test("the first request opens a dataset, and simultaneous ones share that", async (t) => {
  const last = checkedSource();
  last.tree = { ...last.tree, refused: [{ path: "y", reason: "no codec" }] };
  const { registry, lines } = await open(t, last);
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
    const wrong = open(t, checkedSource(), { variables: { nope: {} } });
    await t.rejects(wrong, {
      code: "invalid-config",
      message: /^dataset 'd119': variables: .* received 'nope'$/,
    });
    const wrongDimension = open(t, checkedSource(), { encoding: { chunks: { nope: 1 } } });
    await t.rejects(wrongDimension, { code: "invalid-config", message: /encoding\.chunks/ });
    const source = fakeSource(treeOf(["x"], "1"));
    const { registry } = await open(t, source);
    t.equal(source.reads, 1);
    t.same(arraysOf(registry), ["x"]);
  },
);

t.test("a dataset that cannot be opened is an error at start, also among many, or a warning", async (t) => {
  const broken = checkedSource();
  broken.failure = unreadable("no such store");
  await t.rejects(open(t, broken), { code: "source-unreadable", message: "dataset 'd119': no such store" });
  t.ok(broken.closed);
  const { registry, lines } = await open(t, broken, {}, { skipInvalid: true });
  t.equal(registry.ids().length, MANY - 1);
  t.match(lines, [{ level: 40, dataset: LAST, msg: "dataset skipped", reason: "no such store" }]);
  t.throws(() => registry.open(LAST), { code: "not-found" });
});

t.test("a dataset that breaks before its first request fails by name, and is tried again", async (t) => {
  const last = checkedSource();
  const { registry } = await open(t, last);
  last.failure = unreadable("gone");
  const failure = { code: "source-unreadable", message: "dataset 'd119': gone" };
  await t.rejects(async () => registry.open(LAST), failure);
  await t.rejects(async () => registry.ready(LAST), failure);
  t.equal(last.reads, 1, "not for every request");
  last.failure = undefined;
  let arrays: string[] = [];
  while (arrays.length === 0) {
    try {
      arrays = [...(await registry.open(LAST)).arrays.keys()];
    } catch (error) {
      if (!(error instanceof ZpublishError)) throw error;
      await sleep(50);
    }
  }
  t.same(arrays, ["x"]);
});

t.test("without requests nothing is refreshed until SIGHUP, which refreshes open datasets", async (t) => {
  const { registry, scheduler, sources } = await open(t);
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

t.test("an idle dataset is refreshed before a request is answered", async (t) => {
  const last = checkedSource();
  const { registry, scheduler } = await open(t, last);
  const before = await registry.open(LAST);
  t.equal(registry.ready(LAST), undefined);
  scheduler.every(0.01);
  await idle(last);
  last.tree = treeOf(["x", "y"], "2");
  const after = await registry.open(LAST);
  t.same([...after.arrays.keys()], ["x", "y"]);
  t.not(after, before);
});

t.test("a requested dataset is refreshed in every period, and requests never wait for that", async (t) => {
  const last = checkedSource();
  const { registry, scheduler } = await open(t, last);
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
  const { registry, scheduler } = await open(t, last);
  const before = await registry.open(LAST);
  scheduler.every(0.01);
  await idle(last);
  let wake = () => {};
  last.fingerprint = () => new Promise((resolve) => (wake = () => resolve("1")));
  t.equal(await registry.open(LAST), before);
  t.equal(registry.open(LAST), before, "nor is the next");
  wake();
});

t.test("a request for an unknown dataset does not wait", async (t) => {
  const { registry } = await open(t);
  t.equal(registry.ready("nope"), undefined);
  t.throws(() => registry.open("nope"), { code: "not-found", message: "Dataset 'nope' not found" });
});
