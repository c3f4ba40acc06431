import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { assertRoot, createFileFinder, isCollectionRoot } from "../../src/find/collection-root.js";
import { startFaultyOrigin } from "../support/origins/faulty-origin.js";
import { makeDirectory, writeFiles, zarray, zgroup } from "../support/write-store.js";

const aStore = { code: "invalid-config", message: /^expected a folder of datasets, found a Zarr store/ };
const noStore = { code: "invalid-config", message: "expected a Zarr group, found none" };

t.test("a root is a folder without documents, or a hierarchy with them", async (t) => {
  const directory = await makeDirectory(t);
  await writeFiles(directory, { "files/a.nc": "", "store/.zgroup": zgroup });
  const at = (name: string) => ({ root: join(directory, name) });
  await assertRoot(at("files"), false);
  await assertRoot(at("store"), true);
  await t.rejects(assertRoot(at("files"), true), noStore);
  await t.rejects(assertRoot(at("store"), false), aStore);
  for (const [name, message] of [
    ["none", "the folder cannot be listed: it does not exist"],
    ["files/a.nc", "the folder cannot be listed: expected a directory"],
  ] as const) {
    await t.rejects(assertRoot(at(name), false), { code: "source-unreadable", message });
  }
});

t.test("the same holds for prefixes, and one that does not answer passes", async (t) => {
  const objects = { "in/a.nc": "", "store/.zgroup": "{}" };
  const origin = await startFaultyOrigin(t, { objects, s3: { bucket: "data" } });
  const stores = [{ name: "s", url: "s3://data/", endpoint: origin.url, anonymous: true }];
  await assertRoot({ root: "s3://data/in/", stores }, false);
  await t.rejects(assertRoot({ root: "s3://data/in/", stores }, true), noStore);
  await t.rejects(assertRoot({ root: "s3://data/store/", stores }, false), aStore);
  origin.setFault(() => ({ code: "NoSuchBucket" }));
  await t.rejects(assertRoot({ root: "s3://data/in/", stores }, false), { code: "source-unreadable" });
  origin.setFault(() => ({ hang: "before-headers" }));
  await assertRoot({ root: "s3://data/in/", stores }, false, 10);
});

t.test("a folder without the documents of a store is a collection", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, {
    "files/a.nc": "",
    "v2/.zgroup": zgroup,
    "array/.zarray": zarray,
    "v3/zarr.json": {},
    "references/.zmetadata": {},
    "new.zarr/t/.zarray": zarray,
    "repository/repo": "",
    "repository/snapshots/A": "",
    "older/refs/branch.main/ref.json": "",
    "older/snapshots/A": "",
    "other/repo": "",
  });
  await mkdir(join(root, "empty"));
  const found = [];
  const stores = ["v2", "array", "v3", "references", "new.zarr", "repository", "older"];
  for (const name of ["files", "files/", "empty", "other", ...stores, "files/a.nc", "no"]) {
    if (await isCollectionRoot(join(root, name))) found.push(name);
  }
  t.same(found, ["files", "files/", "empty", "other"]);
  t.notOk(await isCollectionRoot("https://host/data/"));
});

t.test("a prefix with objects and without those documents is a collection", async (t) => {
  const objects = {
    "in/a.nc": "",
    "in/s.zarr/.zgroup": "{}",
    "in/v3/zarr.json": "{}",
    "repo/repo": "",
    "repo/snapshots/A": "",
  };
  const origin = await startFaultyOrigin(t, { objects, s3: { bucket: "data" } });
  const stores = [{ name: "s", url: "s3://data/", endpoint: origin.url, anonymous: true }];
  const is = (location: string) => isCollectionRoot(location, stores);
  t.ok(await is("s3://data/in"));
  t.ok(await is("s3://data/in/"));
  t.ok(await is("s3://data/"));
  t.notOk(await is("s3://data/none"));
  t.notOk(await is("s3://data/in/v3"));
  t.notOk(await is("s3://data/repo"));
  origin.resetCounts();
  t.notOk(await is("s3://data/in/s.zarr"));
  t.notOk(await is("s3://data/in/a.nc"));
  t.same(origin.requests, []);
  origin.setFault(() => ({ code: "AccessDenied" }));
  await t.rejects(is("s3://data/in"), { code: "source-unreadable" });
});

t.test("web servers list nothing", async (t) => {
  t.throws(() => createFileFinder({ root: "https://host/data/" }), {
    code: "invalid-config",
    message: "expected a directory or an S3 prefix, received https://host/data/",
  });
});
