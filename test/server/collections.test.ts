import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import type { CollectionConfig } from "../../src/config/config.js";
import { startS3Origin } from "../support/origins/s3-origin.js";
import { startServer } from "../support/servers/start-server.js";
import { makeDirectory, writeFiles, zarray, zgroup } from "../support/write-store.js";

function collection(root: string, more: Partial<CollectionConfig> = {}): CollectionConfig {
  return { name: "", root, immutable: false, encoding: {}, variables: {}, ...more };
}

const STORE = { ".zgroup": zgroup, "v/.zarray": zarray, "v/0": "ab" };

/** Writes a store below a folder. */
function writeStore(root: string, name: string): Promise<void> {
  return writeFiles(join(root, name), STORE);
}

t.test("datasets of a folder come and go while the server runs", async (t) => {
  const root = await makeDirectory(t);
  await writeStore(root, "2024/a.zarr");
  await writeFiles(root, { "broken.nc": "no NetCDF" });
  const other = await makeDirectory(t);
  await writeStore(other, "b.zarr");
  const { server, get, json } = await startServer(t, {
    collections: [collection(root), collection(other, { name: "archive" })],
    refreshSeconds: 3_600,
  });
  t.same(await json("/datasets"), ["2024~a.zarr", "archive~b.zarr", "broken.nc"]);
  t.equal(await (await get("/datasets/2024~a.zarr/zarr/v/0")).text(), "ab");
  t.equal(await (await get("/datasets/archive~b.zarr/zarr/v/0")).text(), "ab");
  t.equal((await get("/datasets/broken.nc/zarr/.zmetadata")).status, 500);
  t.equal((await get("/datasets/none/zarr/.zmetadata")).status, 404);

  await writeStore(root, "c.zarr");
  t.equal((await get("/datasets/c.zarr/zarr/v/0")).status, 200, "before a refresh");
  await rm(join(root, "2024"), { recursive: true });
  await server.refresh();
  t.same(await json("/datasets"), ["archive~b.zarr", "broken.nc", "c.zarr"]);
  t.equal((await get("/datasets/2024~a.zarr/zarr/v/0")).status, 404);
});

t.test(
  "files that were just written are listed at the start, and the log follows their number",
  async (t) => {
    const root = await makeDirectory(t);
    await writeStore(root, "s.zarr");
    for (const name of ["a.nc", "b.nc"]) await writeFile(join(root, name), "not yet a dataset");
    const { server, get, json, lines } = await startServer(t, {
      collections: [collection(root)],
      refreshSeconds: 0,
    });
    const counts = () =>
      lines.flatMap((line) => (line.msg === "datasets listed" && "datasets" in line ? [line.datasets] : []));
    t.same(await json("/datasets"), ["a.nc", "b.nc", "s.zarr"]);
    t.equal((await get("/datasets/a.nc/keys")).status, 500, "it is there, and cannot be opened");
    t.same(counts(), [3]);
    await writeFile(join(root, "c.nc"), "");
    await server.refresh();
    await server.refresh();
    t.same(await json("/datasets"), ["a.nc", "b.nc", "c.nc", "s.zarr"]);
    t.same(counts(), [3, 4]);
  },
);

t.test("a root that cannot be listed keeps the server from starting, unless it may be skipped", async (t) => {
  const root = await makeDirectory(t);
  await writeStore(root, "a.zarr");
  const at = (name: string, more = {}) => ({ collections: [collection(join(root, name))], ...more });
  await t.rejects(startServer(t, at("none")), {
    code: "source-unreadable",
    message: /none: .*does not exist/,
  });
  await t.rejects(startServer(t, at("a.zarr")), { code: "invalid-config", message: /found a Zarr store/ });
  const { lines, json } = await startServer(t, at("none", { skipInvalid: true }));
  t.same(await json("/datasets"), []);
  t.match(
    lines.find(({ msg }) => msg === "collection cannot be listed yet"),
    { provider: "none" },
  );
});

t.test("groups of a hierarchy, and prefixes of a bucket, are collections", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, { ".zgroup": zgroup });
  await writeStore(root, "g/h");
  await writeFiles(root, { "g/.zgroup": zgroup });
  const { endpoint, put } = await startS3Origin(t);
  for (const [key, value] of Object.entries(STORE))
    await put("data", `in/deep/s.zarr/${key}`, typeof value === "string" ? value : JSON.stringify(value));
  const stores = [{ name: "s", url: "s3://data/", endpoint, anonymous: true }];
  const { json, get } = await startServer(t, {
    collections: [
      collection(root, { name: "tree", groups: true }),
      collection("s3://data/in/", { name: "bucket", stores }),
    ],
  });
  t.same(await json("/datasets"), ["bucket~deep~s.zarr", "tree~g~h"]);
  t.equal(await (await get("/datasets/tree~g~h/zarr/v/0")).text(), "ab");
  t.equal(await (await get("/datasets/bucket~deep~s.zarr/zarr/v/0")).text(), "ab");
});
