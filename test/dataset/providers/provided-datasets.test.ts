import { setTimeout as delay } from "node:timers/promises";
import t from "tap";
import { ZpublishError } from "../../../src/errors.js";
import { version, versionedSource } from "../../support/datasets/versioned-source.js";
import { until } from "../../support/servers/process-table.js";
import { fakeProvider, openRegistry } from "./fake-provider.js";

t.test(
  "datasets of providers are listed behind configured ones, and opened when first asked for",
  async (t) => {
    const archive = fakeProvider("archive", ["b", "a"]);
    const other = fakeProvider("other", ["c"]);
    const { registry } = await openRegistry([other, archive], { configured: ["z", "m"] });
    t.same(registry.ids(), ["z", "m", "archive~a", "archive~b", "other~c"]);
    t.equal(registry.configuredCount, 2);
    t.same(archive.opened, []);
    const [one, two] = await Promise.all([registry.open("archive~a"), registry.open("archive~a")]);
    t.equal(one, two);
    t.same(
      archive.opened.map(({ id }) => id),
      ["a"],
    );
    t.equal(one.id, "archive~a");
    t.equal(registry.open("archive~a"), one, "at once");
    t.equal(registry.get("archive~a"), one);
    t.throws(() => registry.get("archive~b"), { code: "internal", message: /wait for open/ });
    t.match(registry.stats.providers, [
      { name: "other", known: 1, open: 0 },
      { name: "archive", known: 2, open: 1, failed: 0, failedLists: 0 },
    ]);
    t.equal(registry.stats.datasets, 5);
    t.equal(registry.stats.open, 3);
    await registry.close();
    t.ok(archive.opened[0]?.source.closed);
    t.ok(archive.closed && other.closed);
  },
);

t.test("of one id, the configuration counts, then the first provider", async (t) => {
  const one = fakeProvider("one", ["a", "b"], "");
  const two = fakeProvider("two", ["b", "c"], "");
  const { registry } = await openRegistry([one, two], { configured: ["a"] });
  t.same(registry.ids(), ["a", "b", "c"]);
  t.match(await registry.open("a"), { tree: { root: { attrs: { from: "configuration" } } } });
  t.match(await registry.open("b"), { tree: { root: { attrs: { from: "one" } } } });
  t.match(await registry.open("c"), { tree: { root: { attrs: { from: "two" } } } });
  one.ids = ["a"];
  await registry.refresh();
  t.match(
    await registry.open("b"),
    { tree: { root: { attrs: { from: "two" } } } },
    "as soon as the other has gone",
  );
  await registry.close();
});

t.test(
  "a dataset goes when the list does not have it, and requests in flight keep its snapshot",
  async (t) => {
    const provider = fakeProvider("p", ["a", "b"]);
    const { registry } = await openRegistry([provider], { isRefreshed: false });
    const snapshot = await registry.open("p~b");
    provider.ids = ["a"];
    await registry.refresh();
    t.same(registry.ids(), ["p~a"]);
    t.ok(provider.opened[0]?.source.closed);
    t.throws(() => registry.get("p~b"), { code: "not-found" });
    await t.rejects(async () => registry.open("p~b"), {
      code: "not-found",
      message: "Dataset 'p~b' not found",
    });
    t.ok(snapshot.arrays.has("x"));
    await registry.close();
  },
);

t.test("datasets of providers have versions, which come and go with them", async (t) => {
  const provider = fakeProvider("p", ["a", "b", "a@listed"]);
  const kept = versionedSource([version("tag", "v1", "S1"), version("tag", "v2", "S2")]);
  const { open } = provider;
  provider.open = async (id) => {
    const given = await open(id);
    const source = given?.source;
    return source && { ...given, source: { ...source, versions: kept.versions } };
  };
  const { registry, scheduler, lines } = await openRegistry([provider], { configured: ["c"] });
  const snapshot = await registry.open("p~a@v1");
  t.match(snapshot, { id: "p~a@v1", version: { dataset: "p~a", name: "v1" }, immutable: true });
  t.equal(await registry.refreshBeforeNotFound(snapshot), snapshot, "nothing in it changes");
  t.match(await registry.open("p~a@listed"), { version: undefined }, "datasets go before versions");
  t.notOk(registry.has("p~a@v1"));
  t.same(registry.ids(), ["c", "p~a", "p~a@listed", "p~b"]);
  await t.rejects(async () => registry.open("p~b@none"), {
    message: "Version 'none' not found in dataset 'p~b'",
  });
  await t.rejects(async () => registry.open("c@v1"), { message: "Version 'v1' not found in dataset 'c'" });
  provider.ids = ["a", "b", "a@new"];
  t.match(
    await registry.open("p~a@new"),
    { version: undefined },
    "a dataset that is newer than the last list",
  );
  await registry.open("p~b@v2");
  provider.ids = ["b"];
  await registry.refresh();
  t.same(kept.closed, ["v1"]);
  await t.rejects(async () => registry.open("p~a@v1"), { message: "Dataset 'p~a@v1' not found" });
  t.equal(registry.get("p~b@v2").id, "p~b@v2");
  const next = await openRegistry([provider], { configured: ["c"], former: { registry, scheduler, lines } });
  await registry.close();
  t.same(kept.closed, ["v1", "v2"], "a registry that takes over opens its own");
  t.match(await next.registry.open("p~b@v2"), { id: "p~b@v2" });
  await next.registry.close();
  t.same(kept.closed, ["v1", "v2", "v2"]);
});

t.test("versions count among the datasets that may be open, and outlive the closing of theirs", async (t) => {
  const provider = fakeProvider("p", ["a"]);
  const kept = versionedSource(["v1", "v2", "v3"].map((name, index) => version("tag", name, `S${index}`)));
  const { open } = provider;
  provider.open = async (id) => {
    const given = await open(id);
    const source = given?.source;
    return source && { ...given, source: { ...source, versions: kept.versions } };
  };
  const { registry } = await openRegistry([provider], { maxOpenDatasets: 1 });
  const { versions } = await registry.open("p~a@v1");
  await until(() => registry.opened("p~a") === undefined);
  t.equal(registry.get("p~a@v1").id, "p~a@v1");
  t.equal((await versions?.list())?.length, 3);
  await registry.open("p~a@v2");
  await until(() => registry.stats.open === 1);
  t.same(kept.closed, ["v1"]);
  await registry.close();
});

t.test("a provider that fails harms no other, keeps its datasets, and is asked again", async (t) => {
  const good = fakeProvider("good", ["a"]);
  const bad = fakeProvider("bad", ["a"]);
  bad.failure = new Error("no answer");
  const { registry, lines } = await openRegistry([bad, good]);
  t.same(registry.ids(), ["good~a"]);
  t.match(lines, [{ level: 40, provider: "bad", reason: "no answer" }]);
  await t.rejects(async () => registry.open("bad~a"), {
    code: "source-unreadable",
    message: /'bad'.*before an answer with 404/,
  });
  await t.rejects(async () => registry.open("good~b"), { code: "not-found" });
  await registry.open("good~a");
  bad.failure = undefined;
  await registry.refresh();
  t.same(registry.ids(), ["bad~a", "good~a"]);
  t.match(lines.at(-1), { level: 30, provider: "bad", msg: "datasets can be listed again" });
  bad.failure = new Error("gone again");
  await registry.refresh();
  await registry.refresh();
  t.same(registry.ids(), ["bad~a", "good~a"], "a failure is no empty list");
  await registry.open("bad~a");
  t.match(registry.stats.providers[0], { known: 1, failedLists: registry.stats.providers[0]?.failedLists });
  t.equal(lines.filter(({ reason }) => reason === "gone again").length, 1);
  await registry.close();
});

t.test("a list that is under way is aborted when the registry closes", async (t) => {
  const provider = fakeProvider("p", []);
  let signal: AbortSignal | undefined;
  provider.list = (given) => {
    signal = given;
    return new Promise((_, reject) => given.addEventListener("abort", () => reject(given.reason)));
  };
  const { registry, lines } = await openRegistry([provider]);
  t.notOk(signal?.aborted);
  await registry.close();
  t.ok(signal?.aborted);
  t.equal(lines.length, 1, "which is no failure");
});

t.test("before an answer with 404 the list is asked for again, once for many requests", async (t) => {
  const provider = fakeProvider("p", ["a"]);
  const { registry } = await openRegistry([provider]);
  provider.ids = ["a", "new"];
  t.match(await registry.open("p~new"), { id: "p~new" });
  t.same(registry.ids(), ["p~a", "p~new"]);
  const before = provider.lists;
  const flood = Array.from({ length: 1_000 }, (_, index) =>
    t.rejects(async () => registry.open(`p~${index}`), { code: "not-found" }),
  );
  await Promise.all(flood);
  t.ok(provider.lists <= before + 2, `${provider.lists - before} lists`);
  const known = provider.lists;
  await t.rejects(async () => registry.open("q~1"), { code: "not-found" });
  t.equal(provider.lists, known, "another prefix is none of its ids");
  await registry.close();
});

t.test("without refreshes the list of the start counts", async (t) => {
  const provider = fakeProvider("p", ["a"]);
  const { registry } = await openRegistry([provider], { isRefreshed: false });
  provider.ids = ["a", "new"];
  await t.rejects(async () => registry.open("p~new"), { code: "not-found" });
  t.equal(provider.lists, 1);
  await registry.close();
});

t.test("a provider says that its list has changed; several changes make one list", async (t) => {
  const provider = fakeProvider("p", ["a"]);
  const { registry } = await openRegistry([provider], { isRefreshed: false });
  provider.ids = ["a", "b"];
  for (let i = 0; i < 100; i++) provider.changed();
  await until(() => registry.ids().length === 2);
  t.equal(provider.lists, 2);
  provider.ids = ["b"];
  provider.changed();
  await until(() => registry.ids().length === 1);
  await registry.close();
  provider.changed();
  await delay(150);
  t.equal(provider.lists, 3, "none after it is closed");
});

t.test(
  "a dataset that cannot be opened is an error of its own, listed with its reason, and tried again",
  async (t) => {
    const provider = fakeProvider("p", ["a", "b", "c", "gone"]);
    provider.broken.set("a", new ZpublishError("invalid-metadata", "expected a store, found none"));
    provider.broken.set("b", new Error("a bug"));
    const { registry, lines } = await openRegistry([provider]);
    await t.rejects(async () => registry.open("p~a"), {
      code: "invalid-metadata",
      message: "dataset 'p~a': expected a store, found none",
    });
    await t.rejects(async () => registry.open("p~b"), {
      code: "source-unreadable",
      message: "dataset 'p~b': provider 'p' failed: a bug",
    });
    await registry.open("p~c");
    t.same([...registry.failures().keys()], ["p~a", "p~b"]);
    t.match(registry.stats.providers, [{ failed: 2, open: 1 }]);
    provider.broken.clear();
    await t.rejects(async () => registry.open("p~a"), { code: "invalid-metadata" }, "not at once");
    await delay(1_100);
    await registry.open("p~a");
    t.same([...registry.failures().keys()], ["p~b"]);
    t.equal(lines.filter(({ msg }) => msg === "dataset cannot be opened").length, 2);
    provider.ids = ["c", "gone"];
    provider.ids = provider.ids.filter((id) => id !== "gone");
    await t.rejects(
      async () => registry.open("p~gone"),
      { code: "not-found" },
      "still listed, but there is none any more",
    );
    await registry.close();
  },
);

t.test("only so many are open: those close first that were not asked for for the longest time", async (t) => {
  const ids = Array.from({ length: 400 }, (_, index) => String(index).padStart(3, "0"));
  const provider = fakeProvider("p", ids);
  const { registry } = await openRegistry([provider], { maxOpenDatasets: 3 });
  // Each is looked up when it is open, as a request does.
  const snapshots = await Promise.all(ids.map((id) => registry.open(`p~${id}`)));
  t.same(
    snapshots.map(({ id }) => id.slice(2)),
    ids,
  );
  t.ok(registry.stats.open < 150, `${registry.stats.open} open`);
  await until(() => registry.stats.open <= 3);
  const open = provider.opened.filter(({ source }) => !source.closed).map(({ id }) => id);
  t.equal(open.length, 3);
  await delay(150);
  const kept = `p~${open[0]}`;
  await registry.open(kept);
  await registry.open("p~000");
  await until(() => registry.stats.open <= 3);
  t.equal((await registry.open(kept)).id, kept);
  t.notOk(provider.opened.find(({ id, source }) => id === open[0] && !source.closed)?.source.closed);
  await registry.close();
  t.ok(provider.opened.every(({ source }) => source.closed));
});

t.test("a configuration that cannot be opened closes its own providers alone", async (t) => {
  const kept = fakeProvider("kept", ["a"]);
  const added = fakeProvider("added", ["a"]);
  const first = await openRegistry([kept]);
  await t.rejects(openRegistry([kept, added], { former: first, configured: ["a", "a"] }), {
    code: "invalid-config",
  });
  t.ok(added.closed);
  t.notOk(kept.closed);
  await first.registry.close();
});

t.test("a dataset of a provider is refreshed, and has its own or the server's Cache-Control", async (t) => {
  const provider = fakeProvider("p", ["a", "b"]);
  const open = provider.open.bind(provider);
  provider.open = async (id) => {
    const given = await open(id);
    return given === undefined || id === "a" ? given : { ...given, cacheControl: "own" };
  };
  const { registry } = await openRegistry([provider]);
  const before = await registry.open("p~a");
  t.equal(before.cacheControl, "no-cache");
  t.equal((await registry.open("p~b")).cacheControl, "own");
  const { source } = provider.opened[0] as (typeof provider.opened)[number];
  source.tree = { ...source.tree, warnings: ["odd"], fingerprint: "2" };
  await registry.refresh();
  t.same(registry.get("p~a").warnings, ["odd"]);
  t.equal(registry.get("p~b").cacheControl, "own");
  await registry.close();
});
