import { rm } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import type { CollectionConfig } from "../../../src/config/config.js";
import { createCollectionProvider } from "../../../src/dataset/collection/collection-provider.js";
import type { DatasetProvider } from "../../../src/dataset/dataset-provider.js";
import { makeDirectory, writeFiles, zarray, zgroup } from "../../support/write-store.js";

function config(root: string, more: Partial<CollectionConfig> = {}): CollectionConfig {
  return { name: "archive", root, immutable: false, encoding: {}, variables: {}, ...more };
}

function list(provider: DatasetProvider): Promise<readonly string[]> {
  return provider.list(new AbortController().signal);
}

t.test("ids are paths with ~ for /, and lead to locations", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, { "2024/sst.nc": "", "2024/a/b.zarr/.zgroup": zgroup, "a.tif": "" });
  const encoding = { chunks: { time: 1 } };
  const provider = createCollectionProvider(config(root, { encoding, cacheControl: "no-store" }));
  t.same([provider.name, provider.prefix], ["archive", "archive~"]);
  const ids = await list(provider);
  t.same([...ids].sort(), ["2024~a~b.zarr", "2024~sst.nc", "a.tif"]);
  t.equal(await list(provider), ids, "the same array if nothing is new");
  const served = { immutable: false, encoding, variables: {}, cacheControl: "no-store" };
  t.same(await provider.open("2024~a~b.zarr"), {
    ...{ id: "2024~a~b.zarr", location: join(root, "2024/a/b.zarr") },
    ...served,
  });
  t.equal(await provider.open("2024"), undefined);
  t.equal(await provider.open("none"), undefined);
  await rm(join(root, "2024/sst.nc"));
  t.same([...(await list(provider))].sort(), ["2024~a~b.zarr", "a.tif"]);
  t.equal(await provider.open("2024~sst.nc"), undefined);
  t.same(provider.problems?.(), []);
  await provider.close();
});

t.test("a dataset can be opened before the first list, unless the list fails", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, { "data/a.nc": "" });
  const provider = createCollectionProvider(config(join(root, "data"), { name: "" }), "data");
  t.same([provider.name, provider.prefix], ["data", ""]);
  t.match(await provider.open("a.nc"), { id: "a.nc" });
  const gone = createCollectionProvider(config(join(root, "gone")));
  await t.rejects(gone.open("a.nc"), { code: "source-unreadable" });
});

t.test("a version tells of a changed file or store without opening it, and of other options", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, { "a.nc": "1", "b.zarr/.zgroup": zgroup, "b.zarr/.zattrs": {} });
  const provider = createCollectionProvider(config(root));
  const versions = () => Promise.all(["a.nc", "b.zarr"].map((id) => provider.versionOf?.(id)));
  const before = await versions();
  t.same(await versions(), before);
  t.notMatch(before, [undefined, undefined]);
  const other = createCollectionProvider(config(root, { encoding: { chunks: { time: 1 } } }));
  t.not(await other.versionOf?.("a.nc"), before[0], "other options");
  await writeFiles(root, { "a.nc": "12", "b.zarr/.zattrs": { title: "x" } });
  const after = await versions();
  t.not(after[0], before[0]);
  t.not(after[1], before[1]);
  t.equal(await provider.versionOf?.("none"), undefined);
  await rm(join(root, "a.nc"));
  t.equal(await provider.versionOf?.("a.nc"), undefined);
  t.equal(provider.isRemote, false);
  t.equal(createCollectionProvider(config("s3://bucket/x/")).isRemote, true);
});

t.test("names with ~ are problems, however many there are", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, { "a~b.nc": "", "c~/d.nc": "", "e.nc": "", "f\n.nc": "" });
  const provider = createCollectionProvider(config(root));
  t.same(await list(provider), ["e.nc"]);
  t.equal(await provider.open("a~b.nc"), undefined);
  t.same(provider.problems?.(), [
    { name: "f\\u000a.nc", reason: "the name has control characters, which no request can have" },
    { name: "a~b.nc", reason: 'expected a name without "~", which stands for "/" in ids' },
    { name: "c~/d.nc", reason: 'expected a name without "~", which stands for "/" in ids' },
  ]);
  const many = Array.from({ length: 1_200 }, (_, index) => [`x~${index}.nc`, ""]);
  await writeFiles(root, Object.fromEntries(many));
  await list(provider);
  t.equal(provider.problems?.().length, 1_002);
  t.same(provider.problems?.().at(-1), { name: "/", reason: "202 more names cannot be ids" });
});

t.test("groups with arrays are datasets, the root as well", async (t) => {
  const root = await makeDirectory(t);
  const metadata = { ".zgroup": zgroup, "a/b/x/.zarray": zarray, "root/x/.zarray": zarray };
  await writeFiles(root, { ".zmetadata": { metadata } });
  const provider = createCollectionProvider(config(root, { groups: true }));
  t.same([...(await list(provider))].sort(), ["a~b", "root"]);
  t.match(await provider.open("a~b"), { location: join(root, "a/b") });
  t.match(await provider.open("root"), { location: join(root, "root") });
  await writeFiles(root, { ".zmetadata": { metadata: { ...metadata, "x/.zarray": zarray } } });
  t.same([...(await list(provider))].sort(), ["a~b", "root"]);
  t.match(await provider.open("root"), { location: `${root}/` });
  t.same(provider.problems?.(), [{ name: "root", reason: "the root has the id root, since it has arrays" }]);
});
