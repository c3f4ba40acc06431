import { mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import t from "tap";
import { assertRoot, createFileFinder } from "../../src/find/collection-root.js";
import type { Findings } from "../../src/find/file-finder.js";
import { setSourceTimeout } from "../../src/stores/file-calls.js";
import { faultMountMissing, mountFaults } from "../support/fault-mount.js";
import { makeDirectory, writeFiles, zgroup } from "../support/write-store.js";

const skip = faultMountMissing();
setSourceTimeout(1_000);

const pathsOf = ({ files }: Findings) => files.map(({ path }) => path);
const problemsOf = ({ problems }: Findings) => problems.map(({ path, reason }) => `${path}: ${reason}`);

t.test("a folder that cannot be read keeps what it had, and is named", { skip }, async (t) => {
  const mount = await mountFaults(t, true);
  await writeFiles(mount.behind, { "a/1.nc": "", "a/deep/2.nc": "", "b/1.nc": "", "c.nc": "" });
  const finder = createFileFinder({ root: mount.directory });
  const all = ["a/1.nc", "a/deep/2.nc", "b/1.nc", "c.nc"];
  t.same(pathsOf(await finder.look()), all);
  await writeFiles(mount.behind, { "a/3.nc": "", "b/3.nc": "" });
  await mount.fail("EACCES readdir /a");
  const failed = await finder.look();
  t.same(pathsOf(failed), ["a/1.nc", "a/deep/2.nc", "b/1.nc", "b/3.nc", "c.nc"]);
  t.same(problemsOf(failed), ["a: the folder cannot be read (EACCES)"]);
  await mount.fail("EIO getattr /a");
  t.same(problemsOf(await finder.look()), ["a: the folder cannot be read (EIO)"]);
  const withVersions = createFileFinder({ root: mount.directory, withVersions: true });
  await mount.fail("EIO getattr /b/4.nc");
  await writeFiles(mount.behind, { "b/4.nc": "", "b/5.nc": "" });
  const partly = await withVersions.look();
  t.ok(pathsOf(partly).includes("a/3.nc") && pathsOf(partly).includes("b/5.nc"));
  t.same(problemsOf(partly), ["b/4.nc: it cannot be read (EIO)"]);
  await mount.fail("EIO readdir /");
  await mkdir(join(mount.behind, "new"));
  await t.rejects(finder.look(), { code: "source-unreadable", message: "the folder cannot be listed: EIO" });
  await mount.fail();
  t.same(problemsOf(await finder.look()), []);
  await rm(join(mount.behind, "a"), { recursive: true });
  t.notOk(pathsOf(await finder.look()).some((path) => path.startsWith("a")));
});

t.test("a folder that hangs takes one call, and holds up no other", { skip }, async (t) => {
  const mount = await mountFaults(t, true);
  await writeFiles(mount.behind, { "a/1.nc": "", "a/deep/1.nc": "", "b/1.nc": "" });
  const finder = createFileFinder({ root: mount.directory });
  t.same(pathsOf(await finder.look()), ["a/1.nc", "a/deep/1.nc", "b/1.nc"]);
  await mount.fail("hang getattr /a", "hang readdir /a");
  for (const name of ["2", "3", "4", "5", "6", "7"]) {
    await writeFiles(mount.behind, { [`b/${name}.nc`]: "" });
    const found = await finder.look();
    t.ok(pathsOf(found).includes(`b/${name}.nc`));
    t.ok(pathsOf(found).includes("a/deep/1.nc"));
    t.same(problemsOf(found), ["a: the folder cannot be read (no answer within 1 s)"]);
  }
  await writeFiles(mount.behind, { "a/2.nc": "" });
  await mount.fail();
  while (!pathsOf(await finder.look()).includes("a/2.nc")) await sleep(10);
  t.same((await finder.look()).problems, []);
});

t.test("a root that hangs fails looks until it answers, and lets the server start", { skip }, async (t) => {
  const mount = await mountFaults(t, true);
  await writeFiles(mount.behind, { "a.nc": "" });
  const root = mount.directory;
  await mount.fail("hang * *");
  await assertRoot({ root }, false);
  const finder = createFileFinder({ root });
  await t.rejects(finder.look(), { code: "source-unreadable", message: /no answer within 1 s/ });
  await mount.fail();
  let found: Findings | undefined;
  while (found === undefined) {
    // The calls before are answered in other iterations of the event loop.
    await sleep(10);
    found = await finder.look().catch(() => undefined);
  }
  t.same(pathsOf(found), ["a.nc"]);
});

t.test("changes are found in folders that have been old at the look before", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, { "a/1.nc": "", "b/c/1.nc": "", "d/s.zarr/.zgroup": zgroup, "plain/zarr.json": {} });
  // A directory's time of change cannot be set.
  await sleep(2_100);
  for (const withVersions of [false, true]) {
    const finder = createFileFinder({ root, withVersions });
    const look = async () => (await finder.look()).files.map(({ path }) => path);
    const all = ["a/1.nc", "b/c/1.nc", "d/s.zarr", "plain"];
    t.same(await look(), all);
    const found = await finder.look();
    t.equal(await finder.look(), found);
    await writeFiles(root, { "b/c/2.nc": "" });
    await rename(join(root, "d/s.zarr"), join(root, "s.zarr"));
    t.ok((await look()).join().endsWith("b/c/1.nc,b/c/2.nc,plain,s.zarr"));
    await rename(join(root, "s.zarr"), join(root, "d/s.zarr"));
    await rm(join(root, "b/c/2.nc"));
    if (!withVersions) await sleep(2_100);
  }
});
