import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate as nextIteration } from "node:timers/promises";
import { deflateSync, inflateSync } from "node:zlib";
import t, { type Test } from "tap";
import { ZpublishError } from "../../src/errors.js";
import { createServer } from "../../src/index.js";
import { createMemorySource } from "../../src/open/memory-source.js";
import { openSource } from "../../src/open/open-source.js";
import { createTaskRunner } from "../../src/pool/run-chunk-task.js";
import type { ServedChunks } from "../../src/zarr/chunk-reader.js";
import { type FetchedChunk, openPyramid, type PyramidOptions } from "../support/datasets/pyramid.js";
import { faultMountMissing, mountFaults } from "../support/fault-mount.js";
import { parseMetrics } from "../support/servers/parse-metrics.js";
import { makeDirectory, writeFiles, zarray, zgroup } from "../support/write-store.js";

t.setTimeout(120_000);

/** Length of the sides of the array, and of its chunks. */
const SIDE = 64;
const CHUNK = 4;

const chunkOf = (values: readonly number[]) => deflateSync(new Uint8Array(Float32Array.from(values).buffer));
const constant = (value: number) => chunkOf(new Array<number>(CHUNK * CHUNK).fill(value));

function floatsOf(bytes: Uint8Array | undefined): number[] | undefined {
  return bytes && [...new Float32Array(new Uint8Array(inflateSync(bytes)).buffer)];
}

/** A square of floats; all values of a chunk are its row. Some chunks are left out. */
async function writeSquare(
  t: Test,
  {
    side = SIDE,
    isThere = () => true,
  }: { side?: number; isThere?: (row: number, column: number) => boolean } = {},
) {
  const directory = await makeDirectory(t);
  const files: Record<string, Uint8Array | object> = {
    ".zgroup": zgroup,
    "a/.zarray": {
      ...zarray,
      ...{ shape: [side, side], chunks: [CHUNK, CHUNK], dtype: "<f4", fill_value: "NaN" },
      compressor: { id: "zlib", level: 1 },
    },
    "a/.zattrs": { _ARRAY_DIMENSIONS: ["y", "x"] },
  };
  for (let row = 0; row * CHUNK < side; row++)
    for (let column = 0; column * CHUNK < side; column++)
      if (isThere(row, column)) files[`a/${row}.${column}`] = constant(row);
  await writeFiles(directory, files);
  return directory;
}

async function openSquare(directory: string, options: PyramidOptions) {
  return openPyramid(await openSource(directory), "a", options);
}

t.test("the top of a deep pyramid is made of all below it, once", async (t) => {
  const pyramid = await openSquare(await writeSquare(t), { levels: 4 });
  t.same(
    pyramid.levels.map(({ document }) => [document.shape, document.chunks]),
    [32, 16, 8, 4].map((length) => [
      [length, length],
      [CHUNK, CHUNK],
    ]),
  );
  const top = await pyramid.fetch(4, "0.0");
  // Sixteen rows of chunks are four rows of values.
  t.same(
    floatsOf(top.bytes),
    [0, 1, 2, 3].flatMap((row) => new Array(4).fill(4 * row + 1.5)),
  );
  t.equal(pyramid.made.length, 64 + 16 + 4 + 1);
  t.equal(new Set(pyramid.made).size, pyramid.made.length);
  t.same(await pyramid.fetch(4, "0.0"), top);
  await pyramid.fetch(2, "3.3");
  t.equal(pyramid.made.length, 85, "from the cache");
});

t.test("absent chunks make absent ones, and count as missing beside others", async (t) => {
  // A quarter is there, and one more chunk.
  const directory = await writeSquare(t, {
    isThere: (row, column) => (row < 8 && column < 8) || (row === 15 && column === 14),
  });
  const pyramid = await openSquare(directory, { levels: 4 });
  t.equal((await pyramid.fetch(1, "0.4")).bytes, undefined);
  t.equal((await pyramid.fetch(3, "0.1")).bytes, undefined);
  t.same(pyramid.made, []);
  const NaNs = (count: number) => new Array(count).fill(Number.NaN);
  t.same(floatsOf((await pyramid.fetch(4, "0.0")).bytes), [
    ...[1.5, 1.5, ...NaNs(2), 5.5, 5.5, ...NaNs(2)],
    ...[...NaNs(4), ...NaNs(3), 15],
  ]);
});

t.test("a rewritten chunk changes all levels above it", async (t) => {
  const directory = await writeSquare(t);
  const pyramid = await openSquare(directory, { levels: 4, freshness: "always" });
  const before = [];
  for (const level of [1, 2, 3, 4]) before.push(await pyramid.fetch(level, "0.0"));
  const elsewhere = await pyramid.fetch(1, "1.0");
  await writeFile(join(directory, "a/0.0"), constant(100.25));
  for (const level of [4, 3, 2, 1]) {
    const now = await pyramid.fetch(level, "0.0");
    t.not(now.etag, before[level - 1]?.etag, `level ${level}`);
    t.equal(floatsOf(now.bytes)?.[0], [100.25, 100.25, (100.25 + 2) / 4, 100.25 / 16 + 1.5][level - 1]);
  }
  t.equal((await pyramid.fetch(1, "1.0")).etag, elsewhere.etag);
});

t.test("within its time a version is believed, and replaced by what a read finds", async (t) => {
  const directory = await writeSquare(t);
  const pyramid = await openSquare(directory, { levels: 3, freshness: { seconds: 3_600 } });
  const before = await pyramid.fetch(3, "0.0");
  await writeFile(join(directory, "a/0.0"), constant(100));
  t.same(await pyramid.fetch(3, "0.0"), before, "all of it is cached");
  t.equal(floatsOf((await pyramid.fetch(1, "0.0")).bytes)?.[0], 100, "level 1 looks at stored chunks");
  pyramid.cache.kept.clear();
  const after = await pyramid.fetch(3, "0.0");
  t.not(after.etag, before.etag);
  t.equal(floatsOf(after.bytes)?.[0], (100 + 2) / 4);
  t.same(await pyramid.fetch(3, "0.0"), after);
});

t.test("a chunk that vanishes or appears changes the levels above it", async (t) => {
  const directory = await writeSquare(t, { side: 16, isThere: (row, column) => row + column === 0 });
  const pyramid = await openSquare(directory, { levels: 3, freshness: "always" });
  const seen = new Set<string>();
  const look = async (expected: readonly number[] | undefined) => {
    const { etag, bytes } = await pyramid.fetch(3, "0.0");
    t.same(floatsOf(bytes)?.slice(0, 2), expected);
    if (bytes !== undefined) seen.add(etag);
  };
  await look([0, Number.NaN]);
  await writeFile(join(directory, "a/0.3"), constant(7));
  await look([0, 7]);
  await rm(join(directory, "a/0.0"));
  await look([Number.NaN, 7]);
  await rm(join(directory, "a/0.3"));
  await look(undefined);
  t.equal(seen.size, 3);
});

t.test("a chunk that cannot be read fails the levels above it, and is named", async (t) => {
  const directory = await writeSquare(t);
  const pyramid = await openSquare(directory, { levels: 3 });
  const file = join(directory, "a/1.1");
  const bytes = await readFile(file);
  await writeFile(file, bytes.subarray(0, 5));
  await t.rejects(pyramid.fetch(3, "0.0"), {
    code: "corrupt-chunk",
    message:
      /^array '3\/a': stored chunk 0\.0: array '2\/a': stored chunk 0\.0: array '1\/a': stored chunk 1\.1/,
  });
  t.ok((await pyramid.fetch(3, "1.1")).bytes, "others are served");
  await rm(file);
  await mkdir(file);
  await t.rejects(pyramid.fetch(3, "0.0"), { code: "source-unreadable" });
  await rm(file, { recursive: true });
  await writeFile(file, bytes);
  t.equal(floatsOf((await pyramid.fetch(3, "0.0")).bytes)?.length, 16, "it is served when it is repaired");
});

t.test("after a failure few of the other chunks below are looked at", async (t) => {
  const source = await openSource(await writeSquare(t, { side: 256, isThere: () => false }));
  const tree = await source.readTree();
  const looks: (() => void)[] = [];
  let count = 0;
  const version = async () => {
    count++;
    await new Promise<void>((resolve) => looks.push(resolve));
    throw new ZpublishError("source-unreadable", "expected an answer, received none");
  };
  const reader = { version, read: version, measure: version };
  const chunks: ServedChunks = {
    ...{ kind: "served", store: "elsewhere", path: "a", plan: "p", level: 0 },
    openReader: () => reader,
  };
  const groups = tree.groups.map((group) => ({
    ...group,
    arrays: group.arrays.map((array) => ({ ...array, chunks })),
  }));
  const pyramid = await openPyramid({ ...source, readTree: async () => ({ ...tree, groups }) }, "a", {
    levels: 6,
  });
  const failed = t.rejects(pyramid.fetch(6, "0.0"), { code: "source-unreadable" });
  while (looks.length > 0 || count === 0) {
    looks.shift()?.();
    await nextIteration();
  }
  await failed;
  t.ok(count < 1_024, `${count} of 4,096 chunks`);
});

t.test("what no client waits for any more is not made", async (t) => {
  const pending: (() => void)[] = [];
  const run = createTaskRunner();
  const pyramid = await openSquare(await writeSquare(t), {
    levels: 4,
    // As the pool: waiting tasks leave, running ones are finished.
    async makeChunk(task, signal) {
      await new Promise<void>((resolve) => pending.push(resolve));
      if (signal?.aborted) throw new ZpublishError("cancelled", "the client has gone");
      return run(task);
    },
  });
  const client = new AbortController();
  const patient = pyramid.fetch(1, "0.0");
  const isCancelled = t.rejects(pyramid.fetch(4, "0.0", client.signal), { code: "cancelled" });
  while (pending.length < 2) await nextIteration();
  client.abort();
  const tasks = pyramid.made.length;
  while (pending.length > 0) {
    pending.shift()?.();
    await nextIteration();
  }
  await isCancelled;
  t.equal(pyramid.made.length, tasks, "no further one was begun");
  t.equal(floatsOf((await patient).bytes)?.[0], 0, "another client has its chunk");
});

t.test("requests for all chunks of all levels at once come to an end", async (t) => {
  const side = 256;
  const source = createMemorySource({
    groups: [
      {
        path: "/",
        arrays: [
          {
            name: "a",
            data: new Float32Array(side * side).fill(3),
            ...{ shape: [side, side], chunks: [CHUNK, CHUNK], compressor: { id: "zlib", level: 1 } },
          },
        ],
      },
    ],
  });
  let running = 0;
  let most = 0;
  const run = createTaskRunner();
  const pyramid = await openPyramid(source, "a", {
    levels: 6,
    async makeChunk(task) {
      most = Math.max(most, ++running);
      await nextIteration();
      running--;
      return run(task);
    },
  });
  const fetches: Promise<FetchedChunk>[] = [];
  // The highest first, which wait for the others.
  for (let level = 6; level >= 2; level--) {
    const count = side / 2 ** level / CHUNK;
    for (let row = 0; row < count; row++)
      for (let column = 0; column < count; column++) fetches.push(pyramid.fetch(level, `${row}.${column}`));
  }
  const fetched = await Promise.all(fetches);
  t.ok(fetched.every(({ bytes }) => floatsOf(bytes)?.every((value) => value === 3)));
  t.equal(new Set(pyramid.made).size, pyramid.made.length, "each was made once");
  t.ok(most <= 128, `at most ${most} were made at a time`);
});

const CHUNKS = 100;

function storeFiles(name: string, value: number) {
  const chunks = Array.from(
    { length: CHUNKS },
    (_, n) => [`${name}/v/${n}`, Buffer.alloc(4_000, value)] as const,
  );
  return {
    [`${name}/.zgroup`]: zgroup,
    [`${name}/v/.zarray`]: { ...zarray, shape: [4_000 * CHUNKS], chunks: [4_000] },
    ...Object.fromEntries(chunks),
  };
}

t.test(
  "a store that hangs does not hold up the chunks of another",
  { skip: faultMountMissing() },
  async (t) => {
    const mount = await mountFaults(t);
    const local = await makeDirectory(t);
    await writeFiles(mount.behind, storeFiles("a", 1));
    await writeFiles(local, storeFiles("b", 2));
    const server = await createServer({
      // No version is checked before a read: all requests wait for reads.
      datasets: {
        a: { source: join(mount.directory, "a"), immutable: true },
        b: { source: join(local, "b") },
      },
      log: "silent",
    });
    t.teardown(() => server.close());
    const { url } = await server.listen({ host: "127.0.0.1", port: 0 });
    const get = async (path: string) => {
      const response = await fetch(`${url}${path}`);
      return { status: response.status, bytes: Buffer.from(await response.arrayBuffer()) };
    };
    const metric = async (name: string) =>
      parseMetrics((await get("/metrics")).bytes.toString()).value(name, {});
    t.equal((await get("/datasets/a/zarr/v/0")).status, 200);
    await mount.fail("hang read /a/v/*");
    let answered = 0;
    const hanging = Array.from({ length: CHUNKS - 1 }, async (_, index) => {
      const { status } = await get(`/datasets/a/zarr/v/${index + 1}`);
      answered++;
      return status;
    });
    while (((await metric("zpublish_http_requests_in_flight")) ?? 0) < CHUNKS - 1)
      await new Promise((resolve) => setTimeout(resolve, 20));
    for (const key of [0, 1, 2]) {
      t.match(await get(`/datasets/b/zarr/v/${key}`), { status: 200, bytes: Buffer.alloc(4_000, 2) });
    }
    t.equal(answered, 0, "while all of the other store wait");
    t.ok(((await metric("zpublish_chunk_reads_waiting")) ?? 0) > 0);
    await mount.fail();
    t.same(new Set(await Promise.all(hanging)), new Set([200]), "answered when the store continues");
  },
);
