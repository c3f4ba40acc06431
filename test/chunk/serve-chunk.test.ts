import { mkdir, rm, truncate, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate as nextIteration } from "node:timers/promises";
import { crc32, deflateSync, gzipSync } from "node:zlib";
import t, { type Test } from "tap";
import { createChunkService } from "../../src/chunk/serve-chunk.js";
import { CHUNK_HEADROOM_BYTES, type ChunkOutcome } from "../../src/codec/make-chunk.js";
import type { DatasetConfig } from "../../src/config/config.js";
import type { DatasetSnapshot, ServedArray } from "../../src/dataset/dataset.js";
import { createSnapshot } from "../../src/dataset/snapshot.js";
import { ZpublishError } from "../../src/errors.js";
import type { ChunkTask } from "../../src/pool/chunk-task.js";
import { combineVersions } from "../../src/zarr/plan/create-encoding-plan.js";
import type { StoredArray } from "../../src/zarr/stored-array.js";
import { storedArray, storedTree } from "../support/datasets/fake-source.js";
import { mapCache } from "../support/map-cache.js";
import { startServer } from "../support/servers/start-server.js";
import { makeDirectory, makeOld, writeFiles, zarray, zgroup } from "../support/write-store.js";

t.setTimeout(120_000);

interface Setup {
  readonly config?: Partial<DatasetConfig>;
  readonly stored?: Partial<StoredArray>;
  readonly makeChunk?: (task: ChunkTask) => Promise<ChunkOutcome>;
  readonly recycle?: (bytes: Uint8Array<ArrayBuffer>) => void;
  readonly keeps?: boolean;
}

/** One int16 array of 4 × 6 in chunks of 2 × 2, stored in files: chunk 0.0 holds "stored bytes". */
async function setup(t: Test, { config, stored, makeChunk, recycle, keeps = true }: Setup = {}) {
  const directory = join(t.testdir({ array: { "0.0": "stored bytes" } }), "array");
  const array = storedArray("a", {
    chunks: { kind: "files", directory, keyEncoding: { name: "v2", separator: "." } },
    ...stored,
  });
  const snapshot: DatasetSnapshot = createSnapshot(
    { id: "d", location: "here", immutable: false, encoding: {}, variables: {}, ...config },
    storedTree([{ path: "/", attrs: {}, arrays: [array] }]),
    "no-cache",
  );
  const cache = mapCache();
  const tasks: ChunkTask[] = [];
  const service = createChunkService({
    cache: {
      current: {
        ...cache,
        admits: () => keeps,
        putAndWait: (key, chunk) => cache.putAndWait(key, chunk),
      },
    },
    ...(recycle === undefined ? {} : { recycle }),
    makeChunk: async (task) => {
      tasks.push(task);
      if (makeChunk === undefined) throw new Error("expected no task");
      return makeChunk(task);
    },
  });
  const served = snapshot.arrays.get("a") as ServedArray;
  return {
    cache,
    tasks,
    file: join(directory, "0.0"),
    directory,
    async serve(key: string) {
      const reply = await service.serve(snapshot, served, { key });
      const open = async (signal = new AbortController().signal) =>
        reply.open({ signal, reserve: () => undefined, started: false }, (byteLength) => ({
          start: 0,
          byteLength,
        }));
      return { etag: reply.etag, open };
    },
    read: async (coords: readonly number[], signal?: AbortSignal) =>
      (await service.openReader(snapshot, served, "always").read(coords, { signal }))?.bytes,
    warm: (key: string, isStored = false, signal = new AbortController().signal) =>
      service.warm(snapshot, served, key, { signal, stored: isStored }),
  };
}

const header = (headers: readonly (readonly [string, string])[], name: string) =>
  headers.find(([key]) => key === name)?.[1];

const encoded = (text: string, version: string): ChunkOutcome => ({
  status: "encoded",
  bytes: new Uint8Array(Buffer.from(text)),
  checksum: crc32(text),
  version,
  timings: { read: 1, decode: 2, encode: 3 },
});

t.test("stored bytes pass through, then come from the cache", async (t) => {
  const { serve, cache } = await setup(t);
  const reply = await serve("0.0");
  t.match(reply.etag, /^"[0-9a-f]{20}-0\.0-[0-9a-z.]+"$/);
  const first = await reply.open();
  t.equal(Buffer.from(first.read(0) ?? []).toString(), "stored bytes");
  t.equal(Buffer.from(first.read(7) ?? []).toString(), "bytes");
  t.equal(header(first.headers, "X-Cache"), "PASS");
  t.match(header(first.headers, "Server-Timing"), /read;dur=/);
  t.equal(cache.kept.size, 1);
  const second = await (await serve("0.0")).open();
  t.equal(header(second.headers, "X-Cache"), "HIT");
  t.equal(Buffer.from(second.read(0) ?? []).toString(), "stored bytes");
  t.equal(second.byteLength, 12);
  cache.kept.clear();
  t.equal(second.read(0), undefined, "evicted meanwhile");
});

t.test(
  "other chunks are made of served ones: from the cache, as stored, or made; absent ones are undefined",
  async (t) => {
    const stored = await setup(t);
    const bytes = (await stored.read([0, 0])) ?? new Uint8Array();
    t.equal(Buffer.from(bytes).toString(), "stored bytes");
    bytes.fill(0);
    t.equal(
      Buffer.from((await stored.read([0, 0])) ?? []).toString(),
      "stored bytes",
      "its bytes were its own",
    );
    t.equal(await stored.read([0, 1]), undefined);
    const made = await setup(t, {
      config: { encoding: { compressor: null } },
      makeChunk: async ({ version }) => encoded("decoded", version ?? ""),
    });
    t.equal(Buffer.from((await made.read([0, 0])) ?? []).toString(), "decoded");
    t.equal(Buffer.from((await made.read([0, 0])) ?? []).toString(), "decoded");
    t.equal(made.tasks.length, 1);
  },
);

t.test("a chunk is warmed once, and the next request for it is a hit", async (t) => {
  const { serve, warm, tasks, cache } = await setup(t, {
    config: { encoding: { compressor: null } },
    makeChunk: async ({ version }) => encoded("decoded", version ?? ""),
    keeps: false,
  });
  t.strictSame(await warm("0.0"), { outcome: "made", byteLength: 7 });
  t.strictSame(await warm("0.0"), { outcome: "cached", byteLength: 7 });
  t.equal(tasks.length, 1);
  const body = await (await serve("0.0")).open();
  t.equal(header(body.headers, "X-Cache"), "HIT");
  t.equal(Buffer.from(body.read(0) ?? []).toString(), "decoded");
  t.strictSame(await warm("0.1"), { outcome: "absent", byteLength: 0 });
  await t.rejects(warm("9.9"), { code: "not-found" });
  t.equal(cache.kept.size, 1);
});

t.test("a chunk that is served as stored is warmed only if that is asked for", async (t) => {
  const { serve, warm, cache } = await setup(t, { keeps: false });
  t.strictSame(await warm("0.0"), { outcome: "stored", byteLength: 0 });
  t.equal(cache.kept.size, 0);
  t.strictSame(await warm("0.0", true), { outcome: "made", byteLength: 12 });
  t.equal(header((await (await serve("0.0")).open()).headers, "X-Cache"), "HIT");
});

t.test("absent chunks that are served filled are warmed as the one entry that they share", async (t) => {
  const { warm, tasks, cache } = await setup(t, {
    stored: { fill: { served: 0, item: new Uint8Array(2), absentIsServed: false } },
    makeChunk: async () => encoded("filled", ""),
  });
  t.strictSame(await warm("0.1"), { outcome: "made", byteLength: 6 });
  t.strictSame(await warm("0.2"), { outcome: "cached", byteLength: 0 });
  t.equal(tasks.length, 1);
  t.equal(cache.kept.size, 1);
});

t.test(
  "warming says if the cache refuses a chunk, and throws what a request would be answered with",
  async (t) => {
    const config = { encoding: { compressor: null } };
    const makeChunk = async ({ version }: ChunkTask) => encoded("decoded", version ?? "");
    const refusing = await setup(t, { config, makeChunk });
    refusing.cache.putAndWait = async () => false;
    t.strictSame(await refusing.warm("0.0"), { outcome: "refused", byteLength: 7 });
    const failing = await setup(t, {
      config,
      makeChunk: async () => ({
        status: "failed",
        error: { code: "corrupt-chunk", message: "it is broken", details: {} },
      }),
    });
    await t.rejects(failing.warm("0.0"), { code: "corrupt-chunk", message: "it is broken" });
  },
);

t.test("a chunk whose clients have all gone is made again for the next client", async (t) => {
  let version = "";
  const pending: ((outcome: ChunkOutcome) => void)[] = [];
  const { serve } = await setup(t, {
    config: { encoding: { compressor: null } },
    makeChunk: () => new Promise((resolve) => pending.push(resolve)),
  });
  const reply = await serve("0.0");
  version = reply.etag.split("-").at(-1)?.slice(0, -1) as string;
  const client = new AbortController();
  const cancelled = reply.open(client.signal);
  while (pending.length < 1) await nextIteration();
  client.abort();
  const next = reply.open();
  while (pending.length < 2) await nextIteration();
  const error = { code: "overloaded", message: "cancelled", details: {} } as const;
  pending[0]?.({ status: "failed", error });
  pending[1]?.(encoded("made", version));
  await t.rejects(cancelled, { code: "overloaded" });
  t.equal(Buffer.from((await next).read(0) ?? []).toString(), "made");
});

t.test("keys that are not canonical, outside the grid, or without a chunk are not found", async (t) => {
  const { serve } = await setup(t);
  for (const key of ["0", "0.0.0", "00.0", "+0.0", "0.3", "2.0", "0.1", "x", ""]) {
    await t.rejects(serve(key), {
      code: "not-found",
      message: `Chunk '${key}' not found in variable 'a' of dataset 'd'`,
    });
  }
});

t.test("a chunk rewritten in place has another ETag and is not served from the cache", async (t) => {
  const { serve, file } = await setup(t);
  const before = await serve("0.0");
  await before.open();
  await writeFile(file, "other bytes!");
  const after = await serve("0.0");
  t.not(after.etag, before.etag);
  const body = await after.open();
  t.equal(Buffer.from(body.read(0) ?? []).toString(), "other bytes!");
});

t.test("a chunk that changed before it was read is not sent under the old ETag", async (t) => {
  const { serve, file, cache } = await setup(t);
  const reply = await serve("0.0");
  await writeFile(file, "other bytes!");
  await t.rejects(reply.open(), { code: "source-changed" });
  const gone = await setup(t, {
    config: { encoding: { compressor: { id: "zstd", level: 1 } } },
    makeChunk: async () => ({ status: "absent" }),
  });
  await t.rejects((await gone.serve("0.0")).open(), { code: "source-changed" }, "not absent yet");
  t.equal(cache.kept.size, 0);
});

t.test("a chunk that appears meanwhile is not cached as the fill values of absent ones", async (t) => {
  const stored = { fill: { served: null, item: new Uint8Array(2), absentIsServed: false } };
  const { serve, cache, directory } = await setup(t, {
    stored,
    makeChunk: async ({ chunkCoords }) =>
      chunkCoords[1] === 2 ? encoded("another", "a version") : encoded("filled", ""),
  });
  const textOf = async (key: string) =>
    Buffer.from((await (await serve(key)).open()).read(0) ?? []).toString();
  const early = await serve("0.1");
  await writeFile(join(directory, "0.1"), "just written");
  await t.rejects(early.open(), { code: "source-changed" });
  await t.rejects(textOf("0.2"), { code: "source-changed" }, "one that a worker has found");
  t.equal(cache.kept.size, 0);
  t.same([await textOf("1.1"), await textOf("0.1")], ["filled", "just written"]);

  const rechunked = await setup(t, {
    stored,
    keeps: false,
    config: { encoding: { chunks: [4, 2], compressor: null } },
    makeChunk: async ({ chunkCoords }) =>
      encoded("made", chunkCoords[1] === 1 ? combineVersions([undefined, undefined]) : "a version"),
  });
  await (await rechunked.serve("0.1")).open();
  await t.rejects((await rechunked.serve("0.2")).open(), { code: "source-changed" });
});

t.test(
  "the version of an immutable dataset is not checked, so its ETag does not depend on files",
  async (t) => {
    const { serve, file } = await setup(t, { config: { immutable: true } });
    const before = await serve("0.0");
    await utimes(file, 1, 1);
    t.equal((await serve("0.0")).etag, before.etag);
    await t.rejects((await serve("0.1")).open(), { code: "not-found" });
  },
);

t.test("128 concurrent requests for a chunk make it once", async (t) => {
  let version = "";
  const { serve, tasks } = await setup(t, {
    config: { encoding: { compressor: null } },
    makeChunk: async () => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      return encoded("made", version);
    },
  });
  const replies = await Promise.all(Array.from({ length: 128 }, () => serve("0.0")));
  version = replies[0]?.etag.split("-").at(-1)?.slice(0, -1) as string;
  const bodies = await Promise.all(replies.map((reply) => reply.open()));
  t.equal(tasks.length, 1);
  t.ok(bodies.every((body) => Buffer.from(body.read(0) ?? []).toString() === "made"));
  t.match(
    header(bodies[0]?.headers ?? [], "Server-Timing"),
    /read;dur=1.000, decode;dur=2.000, encode;dur=3.000/,
  );
});

t.test("a chunk that failed throws the error of the worker, is not cached, and is tried again", async (t) => {
  const { serve, tasks, cache } = await setup(t, {
    config: { encoding: { compressor: null } },
    makeChunk: async () => ({
      status: "failed",
      error: { code: "corrupt-chunk", message: "too short", details: {} },
    }),
  });
  await t.rejects((await serve("0.0")).open(), new ZpublishError("corrupt-chunk", "too short"));
  await t.rejects((await serve("0.0")).open(), { code: "corrupt-chunk" });
  t.equal(tasks.length, 2);
  t.equal(cache.kept.size, 0);
});

t.test(
  "absent chunks that the document does not explain are served filled, from one cache entry",
  async (t) => {
    const { serve, tasks, cache, directory } = await setup(t, {
      stored: { fill: { served: null, item: new Uint8Array(2), absentIsServed: false } },
      makeChunk: async () => encoded("filled", ""),
    });
    await mkdir(directory, { recursive: true });
    for (const key of ["0.1", "1.1"]) {
      const body = await (await serve(key)).open();
      t.equal(Buffer.from(body.read(0) ?? []).toString(), "filled");
    }
    t.equal(tasks.length, 1);
    t.equal(cache.kept.size, 1);
  },
);

t.test("a file that cannot be read is a failure, not an absence", async (t) => {
  const { serve, file } = await setup(t);
  await rm(file);
  await mkdir(file);
  await t.rejects(
    serve("0.0").then((reply) => reply.open()),
    { code: "source-unreadable" },
  );
});

t.test("a stored chunk of the wrong length is a failure, not passed through", async (t) => {
  const raw = await setup(t, { stored: { codecs: [], compressorCount: 0 } });
  const message = "'a': chunk '0.0': expected at most 8 stored bytes, received 12";
  await t.rejects((await raw.serve("0.0")).open(), { code: "corrupt-chunk", message });
  t.equal(raw.cache.kept.size, 0);
  await writeFile(raw.file, "8 bytes!");
  t.equal((await (await raw.serve("0.0")).open()).byteLength, 8);

  const empty = await setup(t);
  await writeFile(empty.file, "");
  await t.rejects((await empty.serve("0.0")).open(), { code: "corrupt-chunk", message: /received 0/ });

  const blosc = await setup(t, {
    stored: { codecs: [{ id: "blosc", cname: "lz4", clevel: 5, shuffle: 1, blocksize: 0 }] },
  });
  for (const [length, code] of [
    [24, undefined],
    [23, "corrupt-chunk"],
    [9, "corrupt-chunk"],
  ] as const) {
    const chunk = Buffer.alloc(24);
    chunk.writeUInt32LE(24, 12);
    await writeFile(blosc.file, chunk.subarray(0, length));
    const opening = (await blosc.serve("0.0")).open();
    if (code === undefined) t.equal((await opening).byteLength, length);
    else await t.rejects(opening, { code });
  }

  const zstd = await setup(t, { stored: { codecs: [{ id: "zstd", level: 1 }] } });
  // One frame that says it holds five bytes, in one block, the last one, as they are (RFC 8878, section 3.1.1).
  const frame = Buffer.from("28b52ffd2005290000" + "0102030405", "hex");
  for (const stored of [frame, Buffer.concat([frame, frame])]) {
    await writeFile(zstd.file, stored);
    t.equal((await (await zstd.serve("0.0")).open()).byteLength, stored.length);
    await writeFile(zstd.file, stored.subarray(0, -1));
    const problem = { code: "corrupt-chunk", message: /zstd: expected whole frames, received \d+ bytes/ };
    await t.rejects((await zstd.serve("0.0")).open(), problem);
  }
});

t.test("memory that several readers share is released once, after the last", async (t) => {
  for (const keeps of [true, false]) {
    let recycled = 0;
    const bytes = new Uint8Array(new ArrayBuffer(128), CHUNK_HEADROOM_BYTES, 4);
    const { serve } = await setup(t, {
      config: { immutable: true, encoding: { compressor: null } },
      makeChunk: async () => ({ ...encoded("made", "version"), bytes }) as ChunkOutcome,
      recycle() {
        recycled++;
      },
      keeps,
    });
    const reply = await serve("0.0");
    // Each is done before the next one reads: in between there is no reader.
    await Promise.all([1, 2, 3].map(async () => (await reply.open()).release?.()));
    await new Promise((resolve) => setTimeout(resolve, 20));
    t.equal(recycled, 1, keeps ? "cached" : "not cached");
  }
});

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
  t.equal(said(`expected at most ${ITEMS} stored bytes, received ${SPARSE_BYTES}`), 3);
  t.equal(said(`expected at most ${2 * ITEMS + MIB} stored bytes, received ${SPARSE_BYTES}`), 6);
  t.equal(said("'zlib'"), 3, "with the array's name");
  for (const id of known) t.equal((await get(`passed/zarr/${id}/1`, "HEAD")).status, 500, `HEAD of ${id}`);
});

t.test("a chunk that is warmed and asked for at once is made once, and cached by the warming", async (t) => {
  const config = { encoding: { compressor: null } };
  const makeChunk = async ({ version }: ChunkTask) => encoded("decoded", version ?? "");
  const { serve, read, warm, tasks, cache } = await setup(t, { config, makeChunk, keeps: false });
  const { open } = await serve("0.0");
  const [before, warmed, after, bytes] = await Promise.all([open(), warm("0.0"), open(), read([0, 0])]);
  t.equal(tasks.length, 1);
  t.strictSame(warmed, { outcome: "made", byteLength: 7 });
  t.equal(cache.kept.size, 1);
  for (const body of [before, after]) {
    t.equal(Buffer.from(body.read(0) ?? []).toString(), "decoded");
    body.release?.();
  }
  t.equal(Buffer.from(bytes ?? []).toString(), "decoded");
});
