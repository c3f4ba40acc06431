import { truncate } from "node:fs/promises";
import { join } from "node:path";
import { deflateSync, gzipSync } from "node:zlib";
import t from "tap";
import { startServer } from "../support/servers/start-server.js";
import { makeDirectory, makeOld, writeFiles, zarray, zgroup } from "../support/write-store.js";

t.setTimeout(120_000);
const MIB = 2 ** 20;
const SPARSE_BYTES = 600 * MIB;
const ITEMS = 64 * 1024;
/** Random values, which no codec makes shorter. */
const noise = Buffer.from(Array.from({ length: ITEMS }, (_, n) => Math.floor(Math.sin(n * n) * 1e9) & 0xff));
const zeros = Buffer.alloc(100_000);

const CODECS = [
  ["bare", null, noise],
  ["zlib", { id: "zlib", level: 1 }, deflateSync(noise)],
  ["gzip", { id: "gzip", level: 1 }, Buffer.concat([gzipSync(noise), zeros])],
  ["unknown", { id: "somebody-elses" }, Buffer.concat([noise, noise, Buffer.alloc(2 * MIB, 1)])],
] as const;

async function openStore(t: Parameters<typeof makeDirectory>[0]) {
  const location = await makeDirectory(t);
  const files: Record<string, object> = { ".zgroup": zgroup };
  for (const [id, compressor, bytes] of CODECS) {
    files[`${id}/.zarray`] = { ...zarray, shape: [2 * ITEMS], chunks: [ITEMS], compressor };
    files[`${id}/0`] = bytes;
    files[`${id}/1`] = bytes;
  }
  await writeFiles(location, files);
  const dataset = { location, immutable: false, encoding: {}, variables: {} };
  const other = { compressor: { id: "zstd", level: 1 } };
  const server = await startServer(t, {
    datasets: [
      { ...dataset, id: "passed" },
      { ...dataset, id: "made", variables: { bare: other, zlib: other, gzip: other } },
      {
        ...dataset,
        id: "cut",
        variables: Object.fromEntries(
          CODECS.map(([id]) => [id, id === "unknown" ? {} : { chunks: [1000], compressor: null }]),
        ),
      },
    ],
  });
  const get = async (path: string, method = "GET") => {
    const answer = await fetch(`${server.url}/datasets/${path}`, { method });
    return { status: answer.status, bytes: Buffer.from(await answer.arrayBuffer()) };
  };
  return { ...server, get, location };
}

t.test("a chunk that is somewhat longer than its items is served", async (t) => {
  const { get } = await openStore(t);
  for (const [id, , bytes] of CODECS) {
    const passed = await get(`passed/zarr/${id}/0`);
    t.equal(passed.status, 200, id);
    t.ok(passed.bytes.equals(bytes), id);
    if (id === "unknown") continue;
    t.equal((await get(`made/zarr/${id}/0`)).status, 200, id);
    const cut = await get(`cut/zarr/${id}/0`);
    t.equal(cut.status, 200, id);
    t.ok(cut.bytes.equals(noise.subarray(0, 1000)), id);
  }
});

t.test("a chunk that became a very long hole is refused without memory for it", async (t) => {
  const { get, location, lines } = await openStore(t);
  const known = CODECS.map(([id]) => id).filter((id) => id !== "unknown");
  const ask = async (key: 0 | 1) => {
    const paths = ["passed", "made", "cut"].flatMap((dataset) =>
      known.map((id) => `${dataset}/zarr/${id}/${dataset === "cut" ? 66 * key : key}`),
    );
    return Promise.all(paths.map(async (path) => (await get(path)).status));
  };
  t.same(new Set(await ask(0)), new Set([200]), "warmed up");
  for (const id of known) {
    const path = join(location, id, "1");
    await truncate(path, SPARSE_BYTES);
    await makeOld(path);
  }
  const before = process.resourceUsage().maxRSS;
  t.same(new Set(await ask(1)), new Set([500]));
  const grown = (process.resourceUsage().maxRSS - before) / 1024;
  t.ok(grown < 100, `${grown} MiB`);

  const messages = lines.map((line) => JSON.stringify(line)).filter((line) => line.includes("corrupt-chunk"));
  t.equal(messages.length, 9);
  const said = (text: string) => messages.filter((message) => message.includes(text)).length;
  t.equal(said(`expected ${ITEMS} stored bytes, received ${SPARSE_BYTES}`), 1, "bare, passed through");
  t.equal(said(`expected at most ${ITEMS} stored bytes, received ${SPARSE_BYTES}`), 2);
  t.equal(said(`expected at most ${2 * ITEMS + MIB} stored bytes, received ${SPARSE_BYTES}`), 6);
  t.equal(said("'zlib'"), 3, "with the array's name");
  for (const id of known) t.equal((await get(`passed/zarr/${id}/1`, "HEAD")).status, 500, `HEAD of ${id}`);
});
