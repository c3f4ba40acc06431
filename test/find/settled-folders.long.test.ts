import { rename, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import t from "tap";
import { createFileFinder } from "../../src/find/create-file-finder.js";
import { makeDirectory, writeFiles, zgroup } from "../open/write-store.js";

t.test("changes are found in folders that have been old at the look before", async (t) => {
  const elsewhere = await makeDirectory(t);
  const root = await makeDirectory(t);
  await writeFiles(root, { "a/1.nc": "", "b/c/1.nc": "", "d/s.zarr/.zgroup": zgroup, "plain/zarr.json": {} });
  await symlink(join(elsewhere, "later.nc"), join(root, "a/later.nc"));
  await symlink(join(elsewhere, "folder"), join(root, "folder"));
  // A directory's time of change cannot be set.
  await sleep(2_100);
  for (const withVersions of [false, true]) {
    const finder = createFileFinder({ root, withVersions });
    const look = async () => (await finder.look()).files.map(({ path }) => path);
    const all = ["a/1.nc", "b/c/1.nc", "d/s.zarr", "plain"];
    t.same(await look(), all);
    const found = await finder.look();
    t.equal(await finder.look(), found);
    t.same(
      found.problems.map(({ path }) => path),
      ["a/later.nc", "folder"],
    );
    await writeFiles(elsewhere, { "later.nc": "", "folder/x.nc": "" });
    t.same(await look(), ["a/1.nc", "a/later.nc", "b/c/1.nc", "d/s.zarr", "folder/x.nc", "plain"]);
    await rm(join(elsewhere, "later.nc"));
    await rm(join(elsewhere, "folder"), { recursive: true });
    await writeFiles(root, { "b/c/2.nc": "" });
    await rename(join(root, "d/s.zarr"), join(root, "s.zarr"));
    t.ok((await look()).join().endsWith("b/c/1.nc,b/c/2.nc,plain,s.zarr"));
    await rename(join(root, "s.zarr"), join(root, "d/s.zarr"));
    await rm(join(root, "b/c/2.nc"));
    if (!withVersions) await sleep(2_100);
  }
});
