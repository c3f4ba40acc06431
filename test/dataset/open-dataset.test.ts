import t from "tap";
import type { DatasetConfig } from "../../src/config/config.js";
import { openDataset } from "../../src/dataset/open-dataset.js";
import { fakeSource, storedArray, storedTree } from "../support/datasets/fake-source.js";

function config(more: Partial<DatasetConfig> = {}): DatasetConfig {
  return { id: "d", location: "here", immutable: false, encoding: {}, variables: {}, ...more };
}

const both = storedTree([{ path: "/", attrs: {}, arrays: [storedArray("x"), storedArray("y")] }]);

t.test("a configured variable that is removed is a warning, and other changes are served", async (t) => {
  const source = fakeSource(both);
  const dataset = await openDataset(config({ variables: { y: { chunks: [4, 6] } } }), source, "");
  source.tree = storedTree([{ path: "/", attrs: { title: "new" }, arrays: [storedArray("x")] }], {
    fingerprint: "2",
  });
  t.equal(await dataset.refresh(), "changed");
  t.same([...dataset.snapshot().arrays.keys()], ["x"]);
  t.same(dataset.snapshot().tree.root.attrs, { title: "new" });
  t.same(dataset.snapshot().warnings, ["variables: expected the path of an array (x), received 'y'"]);
});

t.test("a configured variable that never existed is an error", async (t) => {
  await t.rejects(openDataset(config({ variables: { nope: {} } }), fakeSource(both), ""), {
    code: "invalid-config",
    message: "variables: expected the path of an array (x, y), received 'nope'",
  });
});

t.test(
  "a group that cannot be understood any more is still served until three refreshes find so",
  async (t) => {
    const root = { path: "/", attrs: {}, arrays: [storedArray("x")] };
    const source = fakeSource(storedTree([root, { path: "/g", attrs: { a: 1 }, arrays: [] }]));
    const dataset = await openDataset(config(), source, "");
    source.tree = storedTree([root], { fingerprint: "2", refused: [{ path: "g", reason: "half written" }] });
    t.equal(await dataset.refresh(), "held");
    t.equal(await dataset.refresh(), "held");
    t.ok(dataset.snapshot().tree.groups.has("/g"));
    t.equal(await dataset.refresh(), "changed");
    t.notOk(dataset.snapshot().tree.groups.has("/g"));
  },
);

t.test("an array that was served and is now refused is withdrawn until it is served again", async (t) => {
  const source = fakeSource({ ...both, refused: [{ path: "never", reason: "no codec" }] });
  const dataset = await openDataset(config(), source, "");
  t.same(dataset.snapshot().withdrawn, new Set());
  const broken = storedTree([{ path: "/", attrs: {}, arrays: [storedArray("x")] }], {
    refused: [
      { path: "never", reason: "no codec" },
      { path: "y", reason: "half written" },
    ],
  });
  source.tree = { ...broken, fingerprint: "2" };
  for (let refreshes = 0; refreshes < 3; refreshes++) await dataset.refresh();
  t.same(dataset.snapshot().withdrawn, new Set(["y"]));
  source.tree = { ...broken, fingerprint: "3" };
  await dataset.refresh();
  t.same(dataset.snapshot().withdrawn, new Set(["y"]));
  source.tree = { ...both, fingerprint: "4" };
  await dataset.refresh();
  t.same(dataset.snapshot().withdrawn, new Set());
});
