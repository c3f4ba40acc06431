import { utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { FetchStore, open, get as readArray } from "zarrita";
import { datasetOf, flatSource, nestedSource } from "../support/datasets/sample-tree.js";
import { startServer } from "../support/servers/start-server.js";
import { makeDirectory, v3Array, v3Group, writeFiles, zarray, zgroup } from "../support/write-store.js";

const FLAT = "/datasets/flat/zarr3";
const NESTED = "/datasets/nested/zarr3";
const IN_MEMORY = [datasetOf("flat", flatSource()), datasetOf("nested", nestedSource())];

interface GroupDocument {
  readonly consolidated_metadata: {
    readonly metadata: Readonly<Record<string, { readonly node_type: string; readonly attributes: unknown }>>;
  };
}

/** Elements per axis and bytes of an inner chunk; a shard of three is longer than what is read at a time. */
const INNER = 2 ** 21;
const SHARD = 3 * INNER;

/** Writes a sharded v3 array of uint8 without codecs: two shards, one chunk of the second absent, the index at the end. */
async function writeShards(directory: string): Promise<readonly [Buffer, Buffer]> {
  const [one, other] = [shardOf([0, 1, 2]), shardOf([3, undefined, 5])] as const;
  await writeFiles(directory, {
    "zarr.json": v3Group,
    "v/zarr.json": {
      ...v3Array,
      shape: [2 * SHARD],
      chunk_grid: { name: "regular", configuration: { chunk_shape: [SHARD] } },
      codecs: [
        {
          name: "sharding_indexed",
          configuration: {
            chunk_shape: [INNER],
            codecs: [{ name: "bytes" }],
            index_codecs: [{ name: "bytes", configuration: { endian: "little" } }],
          },
        },
      ],
      fill_value: 7,
      dimension_names: ["x"],
    },
    "v/c/0": one,
    "v/c/1": other,
  });
  return [one, other];
}

function shardOf(chunks: readonly (number | undefined)[]): Buffer {
  const index = Buffer.alloc(chunks.length * 16, 0xff);
  const parts: Buffer[] = [];
  chunks.forEach((seed, position) => {
    if (seed === undefined) return;
    index.writeBigUInt64LE(BigInt(parts.length * INNER), position * 16);
    index.writeBigUInt64LE(BigInt(INNER), position * 16 + 8);
    const chunk = Buffer.alloc(INNER);
    for (let i = 0; i < INNER; i++) chunk[i] = (i * 31 + seed * 17 + (i >> 8)) & 0xff;
    parts.push(chunk);
  });
  return Buffer.concat([...parts, index]);
}

function datasetAt(id: string, location: string, encoding = {}) {
  return { id, location, immutable: false, encoding, variables: {} };
}

t.test("documents describe the whole store, and every group as a store of its own", async (t) => {
  const { json } = await startServer(t, { datasets: IN_MEMORY });
  const root = (await json(`${NESTED}/zarr.json`)) as GroupDocument;
  t.match(root, {
    zarr_format: 3,
    node_type: "group",
    attributes: {},
    consolidated_metadata: { kind: "inline", must_understand: false },
  });
  const { metadata } = root.consolidated_metadata;
  t.same(Object.keys(metadata).sort(), ["a", "a/b", "a/b/v", "a/v", "c", "c/v"]);
  for (const [path, document] of Object.entries(metadata)) {
    const own = (await json(`${NESTED}/${path}/zarr.json`)) as Record<string, unknown>;
    if (document.node_type === "array") t.same(own, document, path);
    else t.same(own.attributes, document.attributes, path);
  }
  const group = (await json(`${NESTED}/a/zarr.json`)) as GroupDocument;
  t.same(Object.keys(group.consolidated_metadata.metadata).sort(), ["b", "b/v", "v"]);
  t.same(await json(`${FLAT}/t/zarr.json`), {
    zarr_format: 3,
    node_type: "array",
    shape: [3, 5],
    data_type: "int16",
    chunk_grid: { name: "regular", configuration: { chunk_shape: [2, 2] } },
    chunk_key_encoding: { name: "default", configuration: { separator: "/" } },
    fill_value: -1,
    codecs: [{ name: "bytes", configuration: { endian: "little" } }],
    attributes: { units: "K", scale_factor: 0.5, _FillValue: -1 },
    dimension_names: ["y", "x"],
    storage_transformers: [],
  });
});

t.test("chunks are those of v2, byte by byte, with one ETag", async (t) => {
  const { get } = await startServer(t, { datasets: IN_MEMORY });
  for (const [v3, v2] of [
    ["t/c/0/0", "t/0.0"],
    ["t/c/1/2", "t/1.2"],
    ["crs/c", "crs/0"],
    ["y/c/0", "y/0"],
  ] as const) {
    const [one, other] = [await get(`${FLAT}/${v3}`), await get(`/datasets/flat/zarr/${v2}`)];
    t.equal(one.status, 200);
    t.equal(one.headers.get("etag"), other.headers.get("etag"));
    t.same(await one.arrayBuffer(), await other.arrayBuffer(), v3);
  }
});

t.test("other paths are 404, and nodes without their slash redirects", async (t) => {
  const { get } = await startServer(t, { datasets: IN_MEMORY });
  const absent = [
    "t/c",
    "t/c/0",
    "t/c/0/0/0",
    "t/c/00/0",
    "t/c/2/0",
    "t/0.0",
    "t/c/0.0",
    "crs/c/0",
    "c",
    "c/0",
  ];
  for (const path of [...absent, ".zgroup", ".zmetadata", "t/.zarray", "none/zarr.json", "none/"])
    t.equal((await get(`${FLAT}/${path}`)).status, 404, path);
  t.equal((await get("/datasets/flat/zarr/zarr.json")).status, 404);
  t.equal((await get("/datasets/flat/zarr/t/zarr.json")).status, 404);
  for (const path of [FLAT, `${FLAT}/t`, `${NESTED}/a`, `${NESTED}/c`, `${NESTED}/a/b`])
    t.equal((await get(path)).status, 301, path);
  t.equal((await get(`${NESTED}/c/v/c/0`)).status, 200, "a group may be called as chunks are");
});

t.test("listings lead to every document and chunk", async (t) => {
  const { get } = await startServer(t, { datasets: IN_MEMORY });
  const entries = async (path: string) =>
    [...(await (await get(path)).text()).matchAll(/href="([^"]+)"/g)].map(([, href]) => href).slice(1);
  t.same(await entries(`${FLAT}/`), ["zarr.json", "crs/", "t/", "x/", "y/"]);
  t.same(await entries(`${FLAT}/crs/`), ["zarr.json", "c"]);
  t.same(await entries(`${FLAT}/t/`), ["zarr.json", "c/"]);
  t.same(await entries(`${FLAT}/t/c/`), ["0/", "1/"]);
  t.same(await entries(`${FLAT}/t/c/1/`), ["0", "1", "2"]);
  t.same(await entries(`${NESTED}/a/`), ["zarr.json", "b/", "v/"]);
});

t.test("shards are served as stored, and read by range", async (t) => {
  const directory = await makeDirectory(t);
  const [shard] = await writeShards(directory);
  const { url, get, json } = await startServer(t, { datasets: [datasetAt("s", directory)] });
  const path = "/datasets/s/zarr3/v/c/0";
  t.match(await json("/datasets/s/zarr3/v/zarr.json"), {
    chunk_grid: { configuration: { chunk_shape: [SHARD] } },
    codecs: [{ name: "sharding_indexed", configuration: { chunk_shape: [INNER] } }],
    fill_value: 7,
  });
  const head = await fetch(url + path, { method: "HEAD" });
  t.equal(head.headers.get("content-length"), String(shard.length));
  const whole = await get(path);
  t.equal(whole.headers.get("etag"), head.headers.get("etag"));
  t.ok(Buffer.from(await whole.arrayBuffer()).equals(shard), "in several pieces");
  for (const [range, start, end] of [
    ["bytes=-48", shard.length - 48, shard.length],
    ["bytes=5-1000", 5, 1_001],
    [`bytes=${INNER - 1}-`, INNER - 1, shard.length],
  ] as const) {
    const part = await get(path, { range });
    t.equal(part.status, 206);
    t.equal(part.headers.get("content-range"), `bytes ${start}-${end - 1}/${shard.length}`);
    t.ok(Buffer.from(await part.arrayBuffer()).equals(shard.subarray(start, end)), range);
  }
  const beyond = await get(path, { range: `bytes=${shard.length}-` });
  t.equal(beyond.status, 416);
  t.equal(beyond.headers.get("content-range"), `bytes */${shard.length}`);
  t.equal((await get(path, { "if-none-match": head.headers.get("etag") as string })).status, 304);
  t.equal((await get(path, { "if-none-match": "*" })).status, 304);
  t.equal((await get("/datasets/s/zarr3/v/c/2")).status, 404);

  const ofV2 = await open.v2(new FetchStore(`${url}/datasets/s/zarr/v`), { kind: "array" });
  const ofV3 = await open.v3(new FetchStore(`${url}/datasets/s/zarr3/v`), { kind: "array" });
  const [one, other] = [await readArray(ofV3), await readArray(ofV2)];
  t.ok(Buffer.from(one.data as Uint8Array).equals(Buffer.from(other.data as Uint8Array)));
  t.equal((one.data as Uint8Array)[SHARD + INNER], 7, "an absent chunk has the fill value of v3");
});

t.test("a shard that is rewritten while a client reads it breaks off", async (t) => {
  const directory = await makeDirectory(t);
  const [shard] = await writeShards(directory);
  const { get } = await startServer(t, { datasets: [datasetAt("s", directory)] });
  const answer = await get("/datasets/s/zarr3/v/c/0");
  const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
  await reader.read();
  const file = join(directory, "v/c/0");
  await writeFile(file, Buffer.alloc(shard.length));
  await utimes(file, 1, 1);
  await t.rejects(async () => {
    while (!(await reader.read()).done);
  });
});

t.test("an encoding that is asked for makes plain chunks of shards", async (t) => {
  const directory = await makeDirectory(t);
  await writeShards(directory);
  const encoding = { compressor: { id: "zstd", level: 1 } };
  const { get, json } = await startServer(t, { datasets: [datasetAt("s", directory, encoding)] });
  t.match(await json("/datasets/s/zarr3/v/zarr.json"), {
    chunk_grid: { configuration: { chunk_shape: [INNER] } },
    codecs: [{ name: "bytes" }, { name: "zstd", configuration: { level: 1 } }],
    data_type: "uint8",
    fill_value: 7,
  });
  const [one, other] = await Promise.all([get("/datasets/s/zarr3/v/c/1"), get("/datasets/s/zarr/v/1")]);
  t.same(await one.arrayBuffer(), await other.arrayBuffer());
});

t.test("codecs that v2 cannot say stay as stored", async (t) => {
  const directory = await makeDirectory(t);
  const stored = Buffer.from([1, 2, 0, 0, 0, 0]);
  await writeFiles(directory, {
    "zarr.json": v3Group,
    "v/zarr.json": { ...v3Array, codecs: [{ name: "bytes" }, { name: "crc32c" }] },
    "v/c/0": stored,
  });
  const { get, json } = await startServer(t, { datasets: [datasetAt("s", directory)] });
  t.match(await json("/datasets/s/zarr3/v/zarr.json"), { codecs: [{ name: "bytes" }, { name: "crc32c" }] });
  t.ok(Buffer.from(await (await get("/datasets/s/zarr3/v/c/0")).arrayBuffer()).equals(stored));
});

t.test("what v3 cannot say is left out by name, and stays in v2", async (t) => {
  const directory = await makeDirectory(t);
  await writeFiles(directory, {
    ".zgroup": zgroup,
    "v/.zarray": zarray,
    "odd/.zarray": { ...zarray, dtype: "|O", filters: [{ id: "json2" }] },
  });
  const { get, json, lines } = await startServer(t, { datasets: [datasetAt("s", directory)] });
  const { consolidated_metadata } = (await json("/datasets/s/zarr3/zarr.json")) as GroupDocument;
  t.same(Object.keys(consolidated_metadata.metadata), ["v"]);
  const answer = await get("/datasets/s/zarr3/odd/zarr.json");
  t.equal(answer.status, 404);
  t.match(await answer.json(), { detail: /served as Zarr v2 only: .*objects in json2/ });
  t.equal((await get("/datasets/s/zarr/odd/.zarray")).status, 200);
  t.match(JSON.stringify(lines), /served as Zarr v2 only: array 'odd'/);
});

t.test("a prefix that is switched off is an ordinary 404", async (t) => {
  const { get } = await startServer(t, { datasets: IN_MEMORY, plugins: [{ name: "zarr" }] });
  t.equal((await get(`${FLAT}/zarr.json`)).status, 404);
  t.equal((await get("/datasets/flat/zarr/.zgroup")).status, 200);
});
