import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { isCollectionRoot } from "../../src/find/is-collection-root.js";
import { makeDirectory, writeFiles, zarray, zgroup } from "../open/write-store.js";
import { startFaultyOrigin } from "../origins/faulty-origin.js";

t.test("a folder without the documents of a store is a collection", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, {
    "files/a.nc": "",
    "v2/.zgroup": zgroup,
    "array/.zarray": zarray,
    "v3/zarr.json": {},
    "references/.zmetadata": {},
    "new.zarr/t/.zarray": zarray,
  });
  await mkdir(join(root, "empty"));
  const found = [];
  for (const name of [
    "files",
    "files/",
    "empty",
    "v2",
    "array",
    "v3",
    "references",
    "new.zarr",
    "files/a.nc",
    "no",
  ]) {
    if (await isCollectionRoot(join(root, name))) found.push(name);
  }
  t.same(found, ["files", "files/", "empty"]);
  t.notOk(await isCollectionRoot("https://host/data/"));
});

t.test("a prefix with objects and without those documents is a collection", async (t) => {
  const objects = { "in/a.nc": "", "in/s.zarr/.zgroup": "{}", "in/v3/zarr.json": "{}" };
  const origin = await startFaultyOrigin(t, { objects, s3: { bucket: "data" } });
  const stores = [{ name: "s", url: "s3://data/", endpoint: origin.url, anonymous: true }];
  const is = (location: string) => isCollectionRoot(location, stores);
  t.ok(await is("s3://data/in"));
  t.ok(await is("s3://data/in/"));
  t.ok(await is("s3://data/"));
  t.notOk(await is("s3://data/none"));
  t.notOk(await is("s3://data/in/v3"));
  origin.resetCounts();
  t.notOk(await is("s3://data/in/s.zarr"));
  t.notOk(await is("s3://data/in/a.nc"));
  t.same(origin.requests, []);
  origin.setFault(() => ({ code: "AccessDenied" }));
  await t.rejects(is("s3://data/in"), { code: "source-unreadable" });
});
