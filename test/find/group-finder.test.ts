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

async function look(finder: FileFinder): Promise<string[]> {
  return (await finder.look()).files.map(({ path }) => path);
}

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

t.test("a root that is no group is an error", async (t) => {
  const directory = await makeDirectory(t);
  await writeFiles(directory, { "array/.zarray": zarray, "v3/zarr.json": v3Array, "plain/.zgroup": zgroup });
  for (const name of ["array", "v3", "plain"]) {
    const finder = createGroupFinder({ root: join(directory, name) });
    await t.rejects(finder.look(), {
      code: "invalid-config",
      message: "expected a Zarr group with consolidated metadata, found none",
    });
  }
  await t.rejects(createGroupFinder({ root: join(directory, "none") }).look(), { code: "source-unreadable" });
  t.throws(() => createGroupFinder({ root: "https://host/a" }), { code: "invalid-config" });
});

t.test("a root that is a link may lead elsewhere later", async (t) => {
  const directory = await makeDirectory(t);
  const metadata = (group: string) => ({ metadata: { ".zgroup": zgroup, [`${group}/x/.zarray`]: zarray } });
  await writeFiles(directory, { "one/.zmetadata": metadata("a"), "two/.zmetadata": metadata("b") });
  await symlink(join(directory, "one"), join(directory, "root"));
  const finder = createGroupFinder({ root: join(directory, "root") });
  t.same(await look(finder), ["a"]);
  await rm(join(directory, "root"));
  await symlink(join(directory, "two"), join(directory, "root"));
  t.same(await look(finder), ["b"]);
});
