import { rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import type { FileFinder } from "../../src/find/file-finder.js";
import { createGroupFinder } from "../../src/find/group-finder.js";
import { startFaultyOrigin } from "../support/origins/faulty-origin.js";
import { makeDirectory, v3Array, writeFiles, zarray, zgroup } from "../support/write-store.js";

const v3Group = { zarr_format: 3, node_type: "group" };

const V2 = {
  ".zgroup": zgroup,
  "a/.zgroup": zgroup,
  "a/x/.zarray": zarray,
  "a/x/0": "",
  "a/deep/.zgroup": zgroup,
  "a/deep/y/.zarray": zarray,
  "empty/.zgroup": zgroup,
  "other/file.txt": "",
};

const V3 = {
  "zarr.json": v3Group,
  "root_array/zarr.json": v3Array,
  "a/zarr.json": v3Group,
  "a/deep/zarr.json": v3Group,
  "a/deep/y/zarr.json": v3Array,
  "a/broken/zarr.json": "{",
};

async function look(finder: FileFinder): Promise<string[]> {
  return (await finder.look()).files.map(({ path }) => path);
}

t.test("groups that have arrays are found, in Zarr v2 and v3", async (t) => {
  for (const [files, expected] of [
    [V2, ["a", "a/deep"]],
    [V3, ["", "a", "a/deep"]],
  ] as const) {
    const root = await makeDirectory(t);
    await writeFiles(root, files);
    const finder = createGroupFinder({ root });
    const found = await finder.look();
    t.same(
      found.files.map(({ path }) => path),
      expected,
    );
    t.ok(found.files.every(({ isStore }) => isStore));
    t.same(found.problems, []);
    t.equal(await finder.look(), found);
    t.equal(finder.locationOf("a/deep"), join(root, "a/deep"));
  }
});

t.test("groups come and go, and patterns choose them", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, V2);
  const finder = createGroupFinder({ root });
  const only = createGroupFinder({ root, include: ["*/*"], exclude: ["**/z"] });
  t.same(await look(finder), ["a", "a/deep"]);
  t.same(await look(only), ["a/deep"]);
  await writeFiles(root, { "b/z/.zgroup": zgroup, "b/.zgroup": zgroup, "b/z/t/.zarray": zarray });
  await rm(join(root, "a/x"), { recursive: true });
  t.same(await look(finder), ["a/deep", "b/z"]);
  t.same(await look(only), ["a/deep"]);
});

t.test("consolidated metadata is enough, and is read again only if it changes", async (t) => {
  const entries = Object.entries(V2).filter(([key, value]) => typeof value !== "string" && key !== "x");
  const zmetadata = { zarr_consolidated_format: 1, metadata: Object.fromEntries(entries) };
  const metadata = {
    "": undefined,
    a: v3Group,
    "a/x": v3Array,
    r: v3Array,
    "b~c/d\n": v3Group,
    "b\n/e": v3Array,
  };
  const consolidated = { kind: "inline", must_understand: false, metadata };
  for (const [objects, expected, problems] of [
    [{ ".zgroup": zgroup, ".zmetadata": zmetadata }, ["a", "a/deep"], 0],
    [{ "zarr.json": { ...v3Group, consolidated_metadata: consolidated } }, ["", "a"], 1],
  ] as const) {
    const texts = Object.entries(objects).map(([key, value]) => [`in/${key}`, JSON.stringify(value)]);
    const origin = await startFaultyOrigin(t, { objects: Object.fromEntries(texts), s3: { bucket: "data" } });
    const stores = [{ name: "s", url: "s3://data/", endpoint: origin.url, anonymous: true }];
    const finder = createGroupFinder({ root: "s3://data/in", stores });
    const found = await finder.look();
    t.same(
      found.files.map(({ path }) => path),
      expected,
    );
    t.equal(found.problems.length, problems);
    t.equal(await finder.look(), found);
    t.notOk(origin.requests.some(({ query }) => query.has("prefix")));
    t.equal(finder.locationOf("a"), "s3://data/in/a");
  }
});

t.test("a bucket without consolidated metadata is walked through", async (t) => {
  const texts = Object.entries(V3).map(([key, value]) => [
    `in/${key}`,
    typeof value === "string" ? value : JSON.stringify(value),
  ]);
  const origin = await startFaultyOrigin(t, { objects: Object.fromEntries(texts), s3: { bucket: "data" } });
  const stores = [{ name: "s", url: "s3://data/", endpoint: origin.url, anonymous: true }];
  const finder = createGroupFinder({ root: "s3://data/in/", stores });
  t.same(await look(finder), ["", "a", "a/deep"]);
  origin.resetCounts();
  t.same(await look(finder), ["", "a", "a/deep"]);
  const asked = origin.requests.map(({ key, query }) => query.get("prefix") ?? key).sort();
  t.same(
    asked.filter((key) => key.endsWith("/")),
    ["in/", "in/a/", "in/a/deep/"],
  );
  t.notOk(
    asked.some((key) => /array|y\/zarr|broken/.test(key)),
    "known nodes are not asked for again",
  );
});

t.test("a root that is no group is an error", async (t) => {
  const directory = await makeDirectory(t);
  await writeFiles(directory, { "array/.zarray": zarray, "v3/zarr.json": v3Array, "plain/x.nc": "" });
  for (const name of ["array", "v3", "plain"]) {
    const finder = createGroupFinder({ root: join(directory, name) });
    await t.rejects(finder.look(), { code: "invalid-config", message: "expected a Zarr group, found none" });
  }
  await t.rejects(createGroupFinder({ root: join(directory, "none") }).look(), { code: "source-unreadable" });
  t.throws(() => createGroupFinder({ root: "https://host/a" }), { code: "invalid-config" });
});

t.test("a root that is a link may lead elsewhere later", async (t) => {
  const directory = await makeDirectory(t);
  await writeFiles(directory, { "one/.zgroup": zgroup, "one/a/.zgroup": zgroup, "one/a/x/.zarray": zarray });
  await writeFiles(directory, { "two/.zgroup": zgroup, "two/b/.zgroup": zgroup, "two/b/x/.zarray": zarray });
  await symlink(join(directory, "one"), join(directory, "root"));
  const finder = createGroupFinder({ root: join(directory, "root") });
  t.same(await look(finder), ["a"]);
  await rm(join(directory, "root"));
  await symlink(join(directory, "two"), join(directory, "root"));
  t.same(await look(finder), ["b"]);
});
