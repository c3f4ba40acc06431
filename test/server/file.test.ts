import { createHash, randomBytes } from "node:crypto";
import { rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import type { DatasetConfig } from "../../src/config/config.js";
import { gridFile } from "../support/grid-file.js";
import { startFaultyOrigin } from "../support/origins/faulty-origin.js";
import { ALL_PLUGINS, startServer } from "../support/servers/start-server.js";
import { makeDirectory, makeOld, writeFiles, zarray, zgroup } from "../support/write-store.js";
import { writeZip } from "../support/write-zip.js";

const SMALL = Buffer.from(gridFile({ days: [1, 2], title: "Small" }));
/** Longer than what sockets take at once, and than several pieces. */
const LARGE = Buffer.concat([SMALL, randomBytes(48 * 2 ** 20)]);
const STORE = { ".zgroup": zgroup, "v/.zarray": zarray, "v/0": "ab" };
const ZIP = writeZip(
  Object.entries(STORE).map(([name, content]) => ({
    name,
    content: typeof content === "string" ? content : JSON.stringify(content),
  })),
);

const offered = (id: string, location: string, more: Partial<DatasetConfig> = {}): DatasetConfig => ({
  ...{ id, location, file: true, immutable: false, encoding: {}, variables: {} },
  ...more,
});

const bytesOf = async (answer: Response) => Buffer.from(await answer.arrayBuffer());

t.test("the file of a dataset is served as it is, whole and in parts", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, { "small.nc": SMALL, "lärge ('1\") *.nc": LARGE, "store.zip": ZIP });
  const location = (name: string) => join(root, name);
  const { url, get, json } = await startServer(t, {
    datasets: [
      offered("small", location("small.nc"), { cacheControl: "max-age=60" }),
      offered("large", location("lärge ('1\") *.nc")),
      offered("zip", location("store.zip"), { immutable: true }),
      offered("not", location("small.nc"), { file: false }),
    ],
  });
  const small = await get("/datasets/small/file");
  t.match(
    [...["content-type", "content-length", "content-disposition", "accept-ranges", "cache-control"]].map(
      (name) => small.headers.get(name),
    ),
    ["application/x-netcdf", `${SMALL.length}`, 'attachment; filename="small.nc"', "bytes", "max-age=60"],
  );
  t.same(await bytesOf(small), SMALL);
  const etag = small.headers.get("etag") ?? "";
  t.match(etag, /^"[0-9a-z.]+"$/);
  for (const [id, bytes, type] of [
    ["large", LARGE, "application/x-netcdf"],
    ["zip", ZIP, "application/zip"],
  ] as const) {
    const answer = await get(`/datasets/${id}/file`);
    t.equal(answer.headers.get("content-type"), type);
    t.ok(bytes.equals(await bytesOf(answer)), id);
  }
  t.equal(
    (await get("/datasets/large/file")).headers.get("content-disposition"),
    `attachment; filename="l_rge ('1_) *.nc"; filename*=UTF-8''l%C3%A4rge%20%28%271%22%29%20%2a.nc`,
  );

  const path = `${url}/datasets/large/file`;
  const tag = (await fetch(path, { method: "HEAD" })).headers.get("etag") ?? "";
  const total = LARGE.length;
  for (const [range, begin, end] of [
    ["bytes=0-3", 0, 4],
    ["bytes=5000000-15000000", 5_000_000, 15_000_001],
    [`bytes=${total - 5}-`, total - 5, total],
    ["bytes=-7", total - 7, total],
    [`bytes=9-${2 ** 53}`, 9, total],
  ] as const) {
    const answer = await fetch(path, { headers: { range } });
    t.equal(answer.status, 206, range);
    t.equal(answer.headers.get("content-range"), `bytes ${begin}-${end - 1}/${total}`);
    t.ok(LARGE.subarray(begin, end).equals(await bytesOf(answer)), range);
  }
  for (const [headers, status, length] of [
    [{ range: `bytes=${total}-` }, 416, undefined],
    [{ range: "bytes=0-1,3-4" }, 200, total],
    [{ range: "bytes=0-1", "if-range": tag }, 206, 2],
    [{ range: "bytes=0-1", "if-range": '"other"' }, 200, total],
    [{ "if-none-match": tag }, 304, undefined],
    [{ "if-match": '"other"' }, 412, undefined],
  ] as const) {
    const answer = await fetch(path, { headers });
    t.equal(answer.status, status, JSON.stringify(headers));
    if (length !== undefined) t.equal((await bytesOf(answer)).length, length);
    else await answer.arrayBuffer();
  }
  const head = await fetch(path, { method: "HEAD", headers: { range: "bytes=0-3" } });
  t.match([head.status, head.headers.get("content-length")], [200, `${total}`]);

  t.match(await (await get("/datasets/not/file")).json(), { detail: /offer/ });
  t.equal((await get("/datasets/not/file")).status, 404);
  t.match(await json("/datasets/small/info"), {
    file: { name: "small.nc", size: SMALL.length, type: "application/x-netcdf" },
  });
  const page = await (await get("/datasets/small/")).text();
  t.match(page, '<a href="./file"><bdi>small.nc</bdi></a>');
  t.notMatch(await (await get("/datasets/not/")).text(), "./file");
  t.match(await json("/openapi.json"), { paths: { "/datasets/{dataset_id}/file": { get: {} } } });
});

t.test("a file that changes has another ETag, and breaks an answer off", async (t) => {
  const root = await makeDirectory(t);
  const path = join(root, "x.nc");
  const write = async (bytes: Uint8Array, name = "x.nc") => {
    await writeFile(join(root, name), bytes);
    await makeOld(join(root, name));
  };
  await write(LARGE);
  const { url, get } = await startServer(t, { datasets: [offered("x", path)], refreshSeconds: 3_600 });
  const answer = await get("/datasets/x/file");
  const etag = answer.headers.get("etag") ?? "";
  const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
  await reader.read();
  const other = Buffer.concat([SMALL, Buffer.alloc(48 * 2 ** 20, 1)]);
  await write(other, "new");
  await rename(join(root, "new"), path);
  await t.rejects(
    (async () => {
      while (!(await reader.read()).done);
    })(),
    "an answer that began does not end",
  );
  const again = await get("/datasets/x/file", { range: "bytes=0-9", "if-range": etag });
  t.equal(again.status, 200, "the whole, since a part would not fit the part before");
  t.not(again.headers.get("etag"), etag);
  const hash = createHash("sha256")
    .update(await bytesOf(again))
    .digest("hex");
  t.equal(hash, createHash("sha256").update(other).digest("hex"));
  await rm(path);
  t.equal((await fetch(`${url}/datasets/x/file`)).status, 500, "one that is gone is not absent");
});

t.test("what is no single file is refused when it is opened", async (t) => {
  const root = await makeDirectory(t);
  const dated = (day: number) => gridFile({ days: [day] });
  await writeFiles(root, { "a-1.nc": dated(1), "a-2.nc": dated(2) });
  await writeFiles(join(root, "s.zarr"), STORE);
  const join_ = { kind: "concat", dimension: "time" } as const;
  for (const [dataset, received] of [
    [offered("s", join(root, "s.zarr")), "a store of many objects"],
    [offered("j", join(root, "a-*.nc"), { join: join_ }), "several files"],
  ] as const)
    await t.rejects(startServer(t, { datasets: [dataset] }), {
      message: new RegExp(
        `dataset '${dataset.id}': file: expected a dataset that is one file, received ${received}`,
      ),
    });
  const collection = { name: "", root, file: true, immutable: false, encoding: {}, variables: {} };
  const { get } = await startServer(t, { collections: [collection] });
  t.equal(
    (await get("/datasets/a-1.nc/file")).status,
    200,
    "of a collection, those that are files are offered",
  );
  t.equal((await get("/datasets/s.zarr/zarr/v/0")).status, 200);
  t.equal((await get("/datasets/s.zarr/file")).status, 404);
  const plugins = ALL_PLUGINS.filter(({ name }) => name !== "file");
  const without = await startServer(t, { collections: [collection], plugins });
  t.equal((await without.get("/datasets/a-1.nc/file")).status, 404);
  t.notMatch(await (await without.get("/datasets/a-1.nc/")).text(), "./file");
});

t.test("a file elsewhere is read there, or its client is sent there", async (t) => {
  const origin = await startFaultyOrigin(t, { objects: { "x.nc": LARGE } });
  const settings = (redirect: boolean) => [{ name: "web", url: `${origin.url}/`, redirect }];
  const { get } = await startServer(t, {
    datasets: [
      offered("read", `${origin.url}/x.nc`, { stores: settings(false) }),
      offered("sent", `${origin.url}/x.nc`, { stores: settings(true) }),
    ],
  });
  t.ok(LARGE.equals(await bytesOf(await get("/datasets/read/file"))));
  const sent = await get("/datasets/sent/file");
  t.match([sent.status, sent.headers.get("location")], [302, `${origin.url}/x.nc`]);
  const part = await get("/datasets/sent/file", { range: "bytes=1-3" });
  t.equal(part.status, 206);
  t.ok(LARGE.subarray(1, 4).equals(await bytesOf(part)));
  t.equal((await get("/datasets/sent/file", { prefer: "respond-direct" })).status, 200);
});
