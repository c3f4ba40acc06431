import t, { type Test } from "tap";
import { type CatalogParts, createCatalog } from "../../src/catalog/catalog.js";
import { ZpublishError } from "../../src/errors.js";
import { createKeptIndexes } from "../../src/formats/kept-indexes.js";
import { fakeSnapshot } from "../support/datasets/fake-snapshot.js";
import { until } from "../support/folder-of-days.js";
import { inlineValues } from "../support/inline-values.js";
import { createTestLog } from "../support/servers/serve-routes.js";
import { makeDirectory } from "../support/write-store.js";

/** Creates a catalog of datasets that are opened by counting. Those whose ids begin with `far` are on another machine. */
function makeCatalog(t: Test, ids: readonly string[], more: Partial<CatalogParts> = {}) {
  const opened: string[] = [];
  const versions = new Map(ids.map((id) => [id, "1"]));
  const datasets: CatalogParts["datasets"] = {
    ids: () => ids,
    opened: () => undefined,
    isDescribable: (id, isRemote) => versions.has(id) && (isRemote || !id.startsWith("far")),
    versionOf: async (id) => versions.get(id),
    async lend(id, use) {
      opened.push(id);
      if (id.includes("bad")) throw new ZpublishError("unsupported", "/srv/secret is compressed");
      if (id.includes("gone")) throw new ZpublishError("source-unreadable", "gone");
      return use(fakeSnapshot(id, { attrs: { title: `${id} ${versions.get(id)}` } }));
    },
  };
  const { log } = createTestLog();
  const values = inlineValues;
  const catalog = createCatalog({ datasets, values, kept: undefined, isBusy: () => false, log, ...more });
  t.teardown(() => catalog.close());
  const titles = async () => {
    const found = await catalog.descriptions(ids, 10_000);
    return Object.fromEntries(
      Array.from(found, ([id, each]) => [id, "summary" in each ? each.summary.title : each.problem.code]),
    );
  };
  return { catalog, opened, versions, titles };
}

t.test("each dataset is opened once, and described with what it is or why it is not", async (t) => {
  const { opened, titles } = makeCatalog(t, ["a", "bad", "far"]);
  const expected = { a: "a 1", bad: "unsupported", far: "far 1" };
  t.same(await titles(), expected);
  t.same(await titles(), expected);
  t.same(opened.sort(), ["a", "bad", "far"]);
});

t.test("descriptions are kept for the same version, but for failures that may pass", async (t) => {
  const kept = createKeptIndexes(await makeDirectory(t));
  const ids = ["a", "b", "bad", "gone"];
  const first = makeCatalog(t, ids, { kept });
  await first.titles();
  const second = makeCatalog(t, ids, { kept });
  second.versions.set("b", "2");
  t.same(await second.titles(), { a: "a 1", b: "b 2", bad: "unsupported", gone: "source-unreadable" });
  t.same(second.opened.sort(), ["b", "gone"]);
});

t.test("the first datasets of this machine are read ahead, while the server is not busy", async (t) => {
  let isBusy = true;
  let asked = 0;
  const { catalog, opened } = makeCatalog(t, ["a", "far", "b"], {
    isBusy() {
      asked++;
      return isBusy;
    },
  });
  catalog.begin();
  await until(
    async () => asked,
    (count) => count > 2,
  );
  t.same(opened, []);
  isBusy = false;
  await until(
    async () => opened.length,
    (count) => count === 2,
  );
  t.same(opened, ["a", "b"]);
  await catalog.close();
});
