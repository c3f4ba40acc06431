import { utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import t from "tap";
import { FetchStore, open, get as readArray } from "zarrita";
import { defaultValues, optionConfig } from "../../src/config/options.js";
import { createEncodingPlan } from "../../src/zarr/plan/create-encoding-plan.js";
import { datasetOf, flatSource, nestedSource } from "../support/datasets/sample-tree.js";
import { storedArray } from "../support/datasets/stored-array.js";
import { startServer } from "../support/servers/start-server.js";
import { makeDirectory, v3Array, v3Group, writeFiles, zarray, zgroup } from "../support/write-store.js";

const DATASETS = [datasetOf("flat", flatSource()), datasetOf("nested", nestedSource())];

/** One server for all tests that change nothing. */
const published = await startServer(t, { datasets: DATASETS });
const FLAT = "/datasets/flat/zarr";
const NESTED = "/datasets/nested/zarr";

t.test("documents describe the whole store, and every group as a store of its own", async (t) => {
  const { get, json } = published;
  const { metadata } = (await json(`${NESTED}/.zmetadata`)) as { metadata: Record<string, unknown> };
  t.same(
    Object.keys(metadata).sort(),
    [".zattrs", ".zgroup", "a/.zattrs", "a/.zgroup", "a/b/.zattrs", "a/b/.zgroup", "a/b/v/.zarray"]
      .concat(["a/b/v/.zattrs", "a/v/.zarray", "a/v/.zattrs", "c/.zattrs", "c/.zgroup"])
      .concat(["c/v/.zarray", "c/v/.zattrs"]),
  );
  const ofGroup = (await json(`${NESTED}/a/.zmetadata`)) as { metadata: Record<string, unknown> };
  t.same(Object.keys(ofGroup.metadata).sort(), [
    ".zattrs",
    ".zgroup",
    "b/.zattrs",
    "b/.zgroup",
    "b/v/.zarray",
    "b/v/.zattrs",
    "v/.zarray",
    "v/.zattrs",
  ]);
  for (const [key, document] of Object.entries(metadata))
    t.same(await json(`${NESTED}/${key}`), document, key);
  t.equal((await get(`${NESTED}//.zmetadata`)).status, 200, "as Zarr.jl asks");
  t.equal((await get(`${NESTED}//a///b/.zgroup`)).status, 200, "doubled slashes collapse");
  t.same(await json(`${FLAT}/t/.zarray`), {
    zarr_format: 2,
    shape: [3, 5],
    chunks: [2, 2],
    dtype: "<i2",
    fill_value: -1,
    order: "C",
    filters: null,
    compressor: null,
    dimension_separator: ".",
  });
  t.same(await json(`${FLAT}/t/.zattrs`), { units: "K", scale_factor: 0.5, _ARRAY_DIMENSIONS: ["y", "x"] });
  t.same(await json(`${FLAT}/crs/.zattrs`), { _ARRAY_DIMENSIONS: [] });
});

t.test("chunks are whole, and padded with the fill value", async (t) => {
  const { get } = published;
  const items = async (key: string) => [
    ...new Int16Array(await (await get(`${FLAT}/t/${key}`)).arrayBuffer()),
  ];
  t.same(await items("0.0"), [1, 2, 6, 7]);
  t.same(await items("0.2"), [5, -1, 10, -1]);
  t.same(await items("1.2"), [15, -1, -1, -1]);
  const scalar = await get(`${FLAT}/crs/0`);
  t.same([...new Int32Array(await scalar.arrayBuffer())], [7]);
  t.match(scalar.headers.get("x-cache"), /^(MISS|PASS)$/);
  t.match(scalar.headers.get("server-timing"), /dur=/);
  const y = new BigInt64Array(await (await get(`${FLAT}/y/0`)).arrayBuffer());
  t.same([...y], [0n, 2n ** 60n, -1n]);
});

t.test("paths that name no chunk, array or group are 404", async (t) => {
  const { get } = published;
  const forms =
    "00.0 +1.0 -1.0 1_0.0 1e0.0 %D9%A0.0 0 0.0.0 2.0 0.3 0.0. .0 0..0 0,0 0%2e0%2f0 0x0.0 0.0%20 NaN.0";
  const keys = [...forms.split(" "), "9007199254740993.0", "18446744073709551616.0", `${"9".repeat(900)}.0`];
  for (const key of keys) {
    const answer = await get(`${FLAT}/t/${key}`);
    t.equal(answer.status, 404, key);
    t.type(((await answer.json()) as { detail: unknown }).detail, "string");
    t.equal(answer.headers.get("access-control-allow-origin"), "*");
  }
  for (const path of [
    "nope/0",
    "t/x/0",
    "../flat/t/0.0",
    "%2e%2e/t",
    "t/.zgroup",
    ".zarray",
    "a/.zmetadata",
  ]) {
    t.equal((await get(`${FLAT}/${path}`)).status, 404, path);
  }
  const unknown = await get("/datasets/x/zarr/.zmetadata");
  t.same(await unknown.json(), { detail: "Dataset 'x' not found" });
});

t.test("directories list their content, and redirect to their slash", async (t) => {
  const { get } = await startServer(t, { datasets: DATASETS, rootPath: "/pre" });
  for (const path of ["/datasets/flat", FLAT, `${NESTED}/a`, `${NESTED}/a/b`, `${FLAT}/t`]) {
    const answer = await get(path);
    t.equal(answer.status, 301, path);
    t.equal(answer.headers.get("location"), `/pre${path}/`);
    t.equal((await answer.arrayBuffer()).byteLength, 0);
  }
  const links = async (path: string) =>
    [...(await (await get(path)).text()).matchAll(/href="([^"]*)"/g)]
      .map(([, href]) => href)
      .filter((href) => href !== "../");
  t.same(await links(`${NESTED}/`), [".zattrs", ".zgroup", ".zmetadata", "a/", "c/"]);
  t.same(await links(`${NESTED}/a/`), [".zattrs", ".zgroup", ".zmetadata", "b/", "v/"]);
  t.same(await links(`${FLAT}/t/`), [".zarray", ".zattrs", "0.0", "0.1", "0.2", "1.0", "1.1", "1.2"]);
});

t.test("conditions and ranges hold for chunks and documents", async (t) => {
  const { get } = published;
  for (const path of [`${FLAT}/t/0.0`, `${FLAT}/.zmetadata`, "/datasets/flat/info"]) {
    const whole = await get(path);
    const etag = whole.headers.get("etag") as string;
    t.match(etag, /^"[^"]+"$/);
    const bytes = Buffer.from(await whole.arrayBuffer());
    t.equal((await get(path, { "If-None-Match": `"x", ${etag}` })).status, 304, path);
    t.equal((await get(path, { "If-Match": '"x"' })).status, 412);
    const part = await get(path, { Range: "bytes=2-4" });
    t.equal(part.status, 206);
    t.equal(part.headers.get("content-range"), `bytes 2-4/${bytes.length}`);
    t.same(Buffer.from(await part.arrayBuffer()), bytes.subarray(2, 5));
    t.equal((await get(path, { Range: `bytes=${bytes.length}-` })).status, 416);
    const head = await fetch(whole.url, { method: "HEAD" });
    t.equal(head.headers.get("content-length"), String(bytes.length));
    t.equal(head.headers.get("etag"), etag);
  }
});

t.test("the same request has the same bytes and ETag on another instance", async (t) => {
  const [one, two] = await Promise.all([
    startServer(t, { datasets: DATASETS }),
    startServer(t, { datasets: [datasetOf("flat", flatSource())] }),
  ]);
  for (const path of [`${FLAT}/t/1.1`, `${FLAT}/.zmetadata`, "/datasets/flat/dict"]) {
    const [a, b] = [await one.get(path), await two.get(path)];
    t.equal(a.headers.get("etag"), b.headers.get("etag"), path);
    t.same(Buffer.from(await a.arrayBuffer()), Buffer.from(await b.arrayBuffer()));
  }
});

t.test("a cache is warm after a restart, and not used for other data", async (t) => {
  const cache = { directory: t.testdir(), maxBytes: 2 ** 26 };
  const first = await startServer(t, { datasets: DATASETS, cache });
  const before = await first.get(`${FLAT}/t/0.0`);
  t.equal(before.headers.get("x-cache"), "MISS");
  await before.arrayBuffer();
  await first.server.close();
  const second = await startServer(t, { datasets: DATASETS, cache });
  const after = await second.get(`${FLAT}/t/0.0`);
  t.equal(after.headers.get("x-cache"), "HIT");
  t.equal(after.headers.get("etag"), before.headers.get("etag"));
  t.same([...new Int16Array(await after.arrayBuffer())], [1, 2, 6, 7]);
  await second.server.close();
  const other = await startServer(t, {
    datasets: [datasetOf("flat", flatSource(), { variables: { t: { chunks: [3, 2] } } })],
    cache,
  });
  const changed = await other.get(`${FLAT}/t/0.0`);
  t.equal(changed.headers.get("x-cache"), "MISS");
  t.same([...new Int16Array(await changed.arrayBuffer())], [1, 2, 6, 7, 11, 12]);
});

const V3_FLAT = "/datasets/flat/zarr3";
const V3_NESTED = "/datasets/nested/zarr3";

interface GroupDocument {
  readonly consolidated_metadata: {
    readonly metadata: Readonly<Record<string, { readonly node_type: string; readonly attributes: unknown }>>;
  };
}

/** Elements per axis and bytes of an inner chunk; a shard of three is longer than what is read at a time. */
const INNER = 2 ** 22;
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
  const { json } = published;
  const root = (await json(`${V3_NESTED}/zarr.json`)) as GroupDocument;
  t.match(root, {
    zarr_format: 3,
    node_type: "group",
    attributes: {},
    consolidated_metadata: { kind: "inline", must_understand: false },
  });
  const { metadata } = root.consolidated_metadata;
  t.same(Object.keys(metadata).sort(), ["a", "a/b", "a/b/v", "a/v", "c", "c/v"]);
  for (const [path, document] of Object.entries(metadata)) {
    const own = (await json(`${V3_NESTED}/${path}/zarr.json`)) as Record<string, unknown>;
    if (document.node_type === "array") t.same(own, document, path);
    else t.same(own.attributes, document.attributes, path);
  }
  const group = (await json(`${V3_NESTED}/a/zarr.json`)) as GroupDocument;
  t.same(Object.keys(group.consolidated_metadata.metadata).sort(), ["b", "b/v", "v"]);
  t.same(await json(`${V3_FLAT}/t/zarr.json`), {
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
  const { get } = published;
  for (const [v3, v2] of [
    ["t/c/0/0", "t/0.0"],
    ["t/c/1/2", "t/1.2"],
    ["crs/c", "crs/0"],
    ["y/c/0", "y/0"],
  ] as const) {
    const [one, other] = [await get(`${V3_FLAT}/${v3}`), await get(`/datasets/flat/zarr/${v2}`)];
    t.equal(one.status, 200);
    t.equal(one.headers.get("etag"), other.headers.get("etag"));
    t.same(await one.arrayBuffer(), await other.arrayBuffer(), v3);
  }
});

t.test("other paths are 404, and nodes without their slash redirects", async (t) => {
  const { get } = published;
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
    t.equal((await get(`${V3_FLAT}/${path}`)).status, 404, path);
  t.equal((await get("/datasets/flat/zarr/zarr.json")).status, 404);
  t.equal((await get("/datasets/flat/zarr/t/zarr.json")).status, 404);
  for (const path of [V3_FLAT, `${V3_FLAT}/t`, `${V3_NESTED}/a`, `${V3_NESTED}/c`, `${V3_NESTED}/a/b`])
    t.equal((await get(path)).status, 301, path);
  t.equal((await get(`${V3_NESTED}/c/v/c/0`)).status, 200, "a group may be called as chunks are");
});

t.test("listings lead to every document and chunk", async (t) => {
  const { get } = published;
  const entries = async (path: string) =>
    [...(await (await get(path)).text()).matchAll(/href="([^"]+)"/g)].map(([, href]) => href).slice(1);
  t.same(await entries(`${V3_FLAT}/`), ["zarr.json", "crs/", "t/", "x/", "y/"]);
  t.same(await entries(`${V3_FLAT}/crs/`), ["zarr.json", "c"]);
  t.same(await entries(`${V3_FLAT}/t/`), ["zarr.json", "c/"]);
  t.same(await entries(`${V3_FLAT}/t/c/`), ["0/", "1/"]);
  t.same(await entries(`${V3_FLAT}/t/c/1/`), ["0", "1", "2"]);
  t.same(await entries(`${V3_NESTED}/a/`), ["zarr.json", "b/", "v/"]);
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
  const { get } = await startServer(t, { datasets: DATASETS, plugins: [{ name: "zarr" }] });
  t.equal((await get(`${V3_FLAT}/zarr.json`)).status, 404);
  t.equal((await get("/datasets/flat/zarr/.zgroup")).status, 200);
});

const MAX_CHUNK_BYTES = 4_096;
const { limits } = optionConfig(defaultValues({}));
const gzip = { id: "gzip", level: 1 };

t.test(
  "chunks that would decode to more than the limit are refused, and those that need no decoding are served",
  async (t) => {
    const location = join(await makeDirectory(t), "store");
    const large = { ...zarray, shape: [8_192], chunks: [8_192] };
    const texts = {
      ...zarray,
      dtype: "|O",
      filters: [{ id: "vlen-utf8" }],
      compressor: gzip,
      fill_value: "",
    };
    await writeFiles(location, {
      ".zgroup": zgroup,
      "small/.zarray": { ...zarray, compressor: gzip },
      "small/0": gzipSync("ab"),
      "large/.zarray": { ...large, compressor: gzip },
      "large/0": gzipSync(Buffer.alloc(8_192)),
      "stored/.zarray": large,
      "stored/0": Buffer.alloc(8_192, 3),
      "bomb/.zarray": { ...texts, shape: [2], chunks: [2] },
      "bomb/0": gzipSync(Buffer.alloc(2 ** 20)),
    });
    const none = { compressor: null };
    const { get, lines } = await startServer(t, {
      limits: { ...limits, maxChunkBytes: MAX_CHUNK_BYTES },
      datasets: [
        {
          id: "d",
          location,
          immutable: false,
          encoding: {},
          variables: { small: none, large: none, bomb: { compressor: { id: "zlib", level: 1 } } },
        },
      ],
    });
    const bytes = async (key: string) => {
      const answer = await get(`/datasets/d/zarr/${key}`);
      return [answer.status, Buffer.from(await answer.arrayBuffer())] as const;
    };
    t.same(await bytes("small/0"), [200, Buffer.from("ab")]);
    t.same(await bytes("stored/0"), [200, Buffer.alloc(8_192, 3)]);
    t.equal((await bytes("large/.zarray"))[0], 404);
    t.ok(
      lines.some((line) => /"path":"large".*at most 4096 bytes/.test(JSON.stringify(line))),
      "named in the log, with the reason",
    );
    t.equal(
      (await bytes("bomb/0"))[0],
      500,
      "a size that only the bytes show is found when they are decoded",
    );
  },
);

t.test("the limit changes neither bytes nor ETags", async (t) => {
  const asked = { compressor: null };
  const plans = [2 ** 20, 2 ** 30].map((maxChunkBytes) =>
    createEncodingPlan(storedArray(), asked, { maxChunkBytes }),
  );
  t.equal(plans[0]?.plan.id, plans[1]?.plan.id);
});
