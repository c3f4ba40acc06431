import { join } from "node:path";
import t from "tap";
import { assertRoot } from "../../src/find/assert-root.js";
import { makeDirectory, writeFiles, zgroup } from "../open/write-store.js";
import { startFaultyOrigin } from "../origins/faulty-origin.js";

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
