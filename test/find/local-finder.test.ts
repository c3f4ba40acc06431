import { chmod, mkdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { createFileFinder } from "../../src/find/collection-root.js";
import type { FileFinder, Findings } from "../../src/find/file-finder.js";
import { makeDirectory, makeOld, writeFiles, zarray, zgroup } from "../support/write-store.js";

const pathsOf = ({ files }: Findings) => files.map(({ path }) => path);
const problemsOf = ({ problems }: Findings) => problems.map(({ path, reason }) => `${path}: ${reason}`);

async function look(finder: FileFinder): Promise<string[]> {
  return pathsOf(await finder.look());
}

t.test("files and stores are found, hidden and unknown ones are not", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, {
    "b.nc": "",
    "a/b.nc": "",
    "a.tif": "",
    "readme.txt": "",
    ".hidden.nc": "",
    ".git/x.nc": "",
    "v2.zarr/.zgroup": zgroup,
    "v2.zarr/t/.zarray": zarray,
    "v2.zarr/inner.nc": "",
    "v3.zarr/zarr.json": {},
    "plain/store/.zmetadata": {},
    "plain/store/inside.nc": "",
    "archive.zarr.zip": "",
    "repo-2/repo": "",
    "repo-2/snapshots/A": "",
    "repo-2/chunks/inside.nc": "",
    "repo-1/refs/branch.main/ref.json": "{}",
    "repo-1/snapshots/A": "",
    "no-repo/repo": "",
    "no-repo/inside.nc": "",
  });
  await mkdir(join(root, "empty"));
  const finder = createFileFinder({ root });
  const found = await finder.look();
  t.same(found.files, [
    { path: "a.tif", isStore: false },
    { path: "a/b.nc", isStore: false },
    { path: "archive.zarr.zip", isStore: false },
    { path: "b.nc", isStore: false },
    { path: "no-repo/inside.nc", isStore: false },
    { path: "plain/store", isStore: true },
    { path: "repo-1", isStore: true },
    { path: "repo-2", isStore: true },
    { path: "v2.zarr", isStore: true },
    { path: "v3.zarr", isStore: true },
  ]);
  t.same(found.problems, []);
  t.equal(await finder.look(), found, "the same object if nothing is new");
  t.equal(finder.locationOf("a/b.nc"), join(root, "a/b.nc"));
});

t.test("patterns choose files and stores, and prune folders", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, {
    "2023/sst-1.nc": "",
    "2024/sst-1.nc": "",
    "2024/wind-1.nc": "",
    "2024/old/sst-2.nc": "",
    "2024/x.zarr/.zgroup": zgroup,
    "2024/plain/zarr.json": {},
    "2024/.sst-9.nc": "",
  });
  const of = (include: string[], exclude?: string[]) => look(createFileFinder({ root, include, exclude }));
  t.same(await of(["2024/sst-*.nc"]), ["2024/sst-1.nc"]);
  t.same(await of(["**/sst-*.nc"], ["**/old"]), ["2023/sst-1.nc", "2024/sst-1.nc"]);
  t.same(await of(["**/*.zarr"]), ["2024/x.zarr"]);
  t.same(await of(["*/*"], ["**/*.nc"]), ["2024/plain", "2024/x.zarr"]);
  t.same(await of(["**/.sst*"]), ["2024/.sst-9.nc"]);
});

t.test("what comes, goes and moves is found in the next look", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, { "a/1.nc": "", "b/1.nc": "" });
  const finder = createFileFinder({ root });
  t.same(await look(finder), ["a/1.nc", "b/1.nc"]);
  await writeFiles(root, { "a/2.nc": "", "c/d/1.nc": "", "e.zarr/.zgroup": zgroup });
  t.same(await look(finder), ["a/1.nc", "a/2.nc", "b/1.nc", "c/d/1.nc", "e.zarr"]);
  await rename(join(root, "c"), join(root, "f"));
  await rm(join(root, "b"), { recursive: true });
  await rm(join(root, "e.zarr"), { recursive: true });
  t.same(await look(finder), ["a/1.nc", "a/2.nc", "f/d/1.nc"]);
});

t.test("a folder whose time is put back is listed again", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, { "a/1.nc": "" });
  const finder = createFileFinder({ root });
  await makeOld(join(root, "a"));
  for (const name of ["2", "3", "4", "5"]) {
    await writeFiles(root, { [`a/${name}.nc`]: "" });
    await makeOld(join(root, "a"));
    t.ok((await look(finder)).includes(`a/${name}.nc`));
  }
});

t.test(
  "a directory with the name of a store counts, and has a version when its root document is there",
  async (t) => {
    const root = await makeDirectory(t);
    await mkdir(join(root, "a.zarr"));
    const finder = createFileFinder({ root });
    const found = await finder.look();
    t.same(found, { files: [{ path: "a.zarr", isStore: true }], problems: [] });
    const withVersions = createFileFinder({ root, withVersions: true });
    const waiting = await withVersions.look();
    t.same(pathsOf(waiting), []);
    t.same(problemsOf(waiting), [
      "a.zarr: it is named like a Zarr store: expected zarr.json, .zgroup, .zarray or .zmetadata in it",
    ]);
    t.equal(await withVersions.look(), waiting);
    await writeFile(join(root, "a.zarr/zarr.json"), "{");
    t.same(await look(withVersions), ["a.zarr"]);
    t.equal(await finder.look(), found);
  },
);

t.test("versions change with content", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, { "a.nc": "a", "b.nc": "b", "c.zarr/.zgroup": zgroup, "d/zarr.json": {} });
  const finder = createFileFinder({ root, withVersions: true });
  const first = await finder.look();
  t.same(pathsOf(first), ["a.nc", "b.nc", "c.zarr", "d"]);
  t.equal(await finder.look(), first);
  await writeFile(join(root, "a.nc"), "other");
  const second = await finder.look();
  t.not(second.files[0]?.version, first.files[0]?.version);
  t.same(second.files[1], first.files[1]);
  await writeFiles(root, { "c.zarr/.zattrs": {}, "d/zarr.json": { more: true } });
  const third = await finder.look();
  t.not(third.files[2]?.version, first.files[2]?.version);
  t.not(third.files[3]?.version, first.files[3]?.version);
  await rm(join(root, "d/zarr.json"));
  t.same(await look(finder), ["a.nc", "b.nc", "c.zarr"]);
});

t.test("links are followed, each folder by one way", async (t) => {
  const elsewhere = await makeDirectory(t);
  await writeFiles(elsewhere, {
    "data/1.nc": "",
    "data/deep/2.nc": "",
    "s.zarr/.zgroup": zgroup,
    "f.nc": "",
  });
  const root = await makeDirectory(t);
  await writeFiles(root, { "a/real.nc": "" });
  const links = {
    "a/up": root,
    "b-link": join(elsewhere, "data"),
    "c-link": join(elsewhere, "data"),
    "d-deep": join(elsewhere, "data/deep"),
    "0-real": join(root, "a"),
    "latest.zarr": join(elsewhere, "s.zarr"),
    "newest.zarr": join(elsewhere, "s.zarr"),
    "plain-store": join(elsewhere, "s.zarr"),
    "f.nc": join(elsewhere, "f.nc"),
    "g.nc": join(elsewhere, "g.nc"),
    "round.nc": join(root, "round.nc"),
  };
  for (const [name, target] of Object.entries(links)) await symlink(target, join(root, name));
  const finder = createFileFinder({ root });
  for (let i = 0; i < 3; i++) {
    const found = await finder.look();
    t.same(pathsOf(found), [
      "a/real.nc",
      "b-link/1.nc",
      "d-deep/2.nc",
      "f.nc",
      "latest.zarr",
      "newest.zarr",
      "plain-store",
    ]);
    t.same(problemsOf(found), [
      "0-real: it leads to a folder that is listed already",
      "a/up: it leads to a folder that is listed already",
      "b-link/deep: it leads to a folder that is listed already",
      "c-link: it leads to a folder that is listed already",
      "g.nc: it is a link that leads nowhere",
      "round.nc: it is a link that cannot be followed (ELOOP)",
    ]);
  }
  await rm(join(root, "b-link"));
  const found = await finder.look();
  t.ok(pathsOf(found).includes("c-link/1.nc"), "the second way is the only one now");
  await rm(join(elsewhere, "data"), { recursive: true });
  t.match(problemsOf(await finder.look()), [
    "0-real",
    "a/up",
    /^c-link: .* leads nowhere/,
    /^d-deep: .* nowhere/,
    /^g.nc: .* nowhere/,
    /^round.nc: /,
  ]);
});

t.test("names that cannot be served are named, and their number is bounded", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, { "good.nc": "", "a\nb.nc": "", "a\tb.txt": "", "d\n/1.nc": "" });
  await writeFile(
    Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0x61, 0xff]), Buffer.from(".nc")]),
    "",
  );
  const finder = createFileFinder({ root });
  const found = await finder.look();
  t.same(pathsOf(found), ["good.nc"]);
  t.same(problemsOf(found), [
    "a\\u000ab.nc: the name has control characters, which no request can have",
    "a\ufffd.nc: the name is no valid UTF-8",
    "d\\u000a: the name has control characters, which no request can have",
  ]);
  t.equal(await finder.look(), found);
  const many = Array.from({ length: 10_000 }, (_, index) => symlink("nowhere", join(root, `x${index}.nc`)));
  await Promise.all(many);
  const { files, problems } = await finder.look();
  t.equal(files.length, 1);
  t.equal(problems.length, 1_001);
  t.same(problems.at(-1), { path: "", reason: "9003 more problems of this kind are not named" });
});

t.test("a root that cannot be listed is an error, and what was found stays", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, { "data/a.nc": "" });
  const finder = createFileFinder({ root: join(root, "data") });
  const found = await finder.look();
  await rename(join(root, "data"), join(root, "away"));
  const gone = { code: "source-unreadable", message: "the folder cannot be listed: it does not exist" };
  await t.rejects(finder.look(), gone);
  await writeFile(join(root, "data"), "");
  await t.rejects(finder.look(), { code: "source-unreadable", message: /expected a directory/ });
  await rm(join(root, "data"));
  await rename(join(root, "away"), join(root, "data"));
  t.same(await finder.look(), found);
  await writeFiles(root, { "data/.zgroup": zgroup });
  await t.rejects(finder.look(), {
    code: "invalid-config",
    message: "expected a folder of datasets, found a Zarr store",
  });
});

t.test("a folder without permission keeps what it had, and is named", async (t) => {
  const root = await makeDirectory(t);
  await chmod(root, 0o755);
  await writeFiles(root, { "a/1.nc": "", "a/deep/1.nc": "", "b/1.nc": "" });
  const finder = createFileFinder({ root });
  const all = await finder.look();
  await writeFiles(root, { "a/2.nc": "" });
  await chmod(join(root, "a"), 0);
  // Nothing is forbidden to root.
  const isRoot = process.geteuid?.() === 0;
  if (isRoot) process.seteuid?.(65_534);
  try {
    for (let i = 0; i < 2; i++) {
      const found = await finder.look();
      t.same(found.files, all.files);
      t.same(problemsOf(found), ["a: the folder cannot be read (EACCES)"]);
    }
  } finally {
    if (isRoot) process.seteuid?.(0);
  }
  await chmod(join(root, "a"), 0o755);
  const found = await finder.look();
  t.same(pathsOf(found), ["a/1.nc", "a/2.nc", "a/deep/1.nc", "b/1.nc"]);
  t.same(found.problems, []);
});

t.test("a look can be aborted, and the next one finds everything", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, { "a.nc": "", "b/c.nc": "" });
  const finder = createFileFinder({ root });
  await t.rejects(finder.look(AbortSignal.abort()), { name: "AbortError" });
  t.same(await look(finder), ["a.nc", "b/c.nc"]);
});
