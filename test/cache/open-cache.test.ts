import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import { createDiskChunkCache } from "../../src/cache/disk-chunk-cache.js";
import { openLmdbStore } from "../../src/cache/lmdb-store.js";
import {
  type MaintainedChunkCache,
  type openChunkCache,
  openMaintainedChunkCache,
} from "../../src/cache/open-cache.js";
import { createLog } from "../../src/observe/log.js";
import { chunkOf, createTestLog, fileBytesIn, keyOf } from "./cache-process.js";

const log = createLog("silent");
const MIB = 1024 ** 2;

async function open(t: Test, directory: string, options: Partial<Parameters<typeof openChunkCache>[0]> = {}) {
  const cache = await openMaintainedChunkCache({
    directory,
    maxBytes: 4 * MIB,
    log,
    version: "1.0.0",
    flushIntervalMs: 0,
    ...options,
  });
  if (cache === undefined) throw new Error("no cache");
  t.teardown(() => cache.close());
  return cache;
}

async function fill(cache: MaintainedChunkCache, first: number, count: number): Promise<void> {
  for (let n = first; n < first + count; n++) {
    cache.put(keyOf(n), chunkOf(n));
    if (n % 16 === 15) await cache.settle();
  }
  await cache.settle();
}

t.test("a chunk is found at once, after it is written, and after a restart", async (t) => {
  const directory = t.testdir();
  const cache = await open(t, directory);
  t.equal(cache.get(keyOf(1)), undefined);
  cache.put(keyOf(1), chunkOf(1));
  t.same(cache.get(keyOf(1)), chunkOf(1), "not yet written");
  await cache.settle();
  t.same(cache.get(keyOf(1)), chunkOf(1), "written");
  t.match(cache.stats, { hits: 2, misses: 1, puts: 1, drops: 0, errors: 0, maxBytes: 4 * MIB });
  t.same(cache.get(keyOf(1), true), chunkOf(1), "read again by the same request");
  t.equal(cache.get(keyOf(2), true), undefined);
  t.match(cache.stats, { hits: 2, misses: 1 }, "that is no access");
  t.ok(cache.stats.byteLength > chunkOf(1).length);
  await cache.close();
  const again = await open(t, directory);
  t.same(again.get(keyOf(1)), chunkOf(1));
});

t.test("a chunk is copied when it is put, and comes back with its exact length", async (t) => {
  const cache = await open(t, t.testdir());
  const bytes = chunkOf(2);
  cache.put(keyOf(2), bytes);
  bytes.fill(0);
  await cache.settle();
  const found = cache.get(keyOf(2))!;
  t.equal(found.byteLength, chunkOf(2).length);
  t.same(found, chunkOf(2));
  cache.put(keyOf(3), new Uint8Array(0));
  await cache.settle();
  t.equal(cache.get(keyOf(3))?.byteLength, 0);
});

t.test("a view holds until the next get, over commits of this process in between", async (t) => {
  const cache = await open(t, t.testdir(), { maxBytes: 256 * MIB });
  const large = new Uint8Array(20 * MIB).fill(7);
  cache.put(keyOf(0), large);
  await fill(cache, 1, 20);
  for (const [n, bytes] of [
    [0, large],
    [1, chunkOf(1)],
  ] as const) {
    const view = cache.get(keyOf(n))!;
    t.equal(Buffer.compare(view, bytes), 0);
    fill(cache, 100 + n * 100, 10);
    t.equal(Buffer.compare(view, bytes), 0);
    await cache.settle();
  }
});

t.test("the bound holds, often requested chunks stay, and the file stays near the bound", async (t) => {
  const directory = t.testdir();
  const cache = await open(t, directory, { maxBytes: 8 * MIB });
  await fill(cache, 0, 20);
  for (let round = 0; round < 60; round++) {
    for (let n = 0; n < 20; n++) cache.get(keyOf(n));
    if (round % 4 === 0) await cache.maintain();
    await fill(cache, 1_000 + round * 40, 40);
    t.ok(cache.stats.byteLength <= 8 * MIB, `round ${round}: ${cache.stats.byteLength} bytes`);
  }
  t.ok(cache.stats.evictions > 1_500);
  t.ok(cache.stats.byteLength > 5 * MIB, "not emptied");
  const kept = Array.from({ length: 20 }, (_, n) => cache.get(keyOf(n))).filter(
    (found) => found !== undefined,
  );
  t.ok(kept.length >= 19, `${kept.length} of 20 are still there`);
  t.ok(fileBytesIn(directory) <= 8 * MIB * 1.3 + MIB, `the file has ${fileBytesIn(directory)} bytes`);
  t.equal(cache.stats.errors, 0);
});

t.test("a chunk larger than an eighth of the bound is not cached", async (t) => {
  const cache = await open(t, t.testdir());
  const large = new Uint8Array(MIB / 2);
  t.equal(cache.admits(keyOf(1), large.length, "encode"), false);
  cache.put(keyOf(1), large);
  t.equal(cache.get(keyOf(1)), undefined);
  t.equal(cache.admits(keyOf(2), 1_000, "encode"), true);
});

t.test("the chunks that wait to be written are bounded, and others are dropped and counted", async (t) => {
  const cache = await open(t, t.testdir(), { pendingMaxBytes: 100_000 });
  for (let n = 0; n < 20; n++) cache.put(keyOf(n), new Uint8Array(30_000).fill(n));
  await cache.settle();
  t.match(cache.stats, { puts: 3, drops: 17, errors: 0 });
  t.ok(cache.get(keyOf(2)));
  t.notOk(cache.get(keyOf(3)));
});

t.test("chunks that are put and waited for are all written, however many wait", async (t) => {
  const cache = await open(t, t.testdir(), { pendingMaxBytes: 100_000 });
  let released = 0;
  const put = (n: number) => {
    const bytes = Buffer.alloc(30_064, n).subarray(64);
    return cache.putAndWait(keyOf(n), { bytes, release: () => void released++ });
  };
  t.equal(cache.byteLengthOf(keyOf(0)), undefined);
  const puts = Array.from({ length: 20 }, (_, n) => put(n));
  t.equal(cache.byteLengthOf(keyOf(0)), 30_000, "known while it waits");
  t.strictSame(await Promise.all(puts), new Array(20).fill(true));
  t.match(cache.stats, { puts: 20, drops: 0, errors: 0, hits: 0, misses: 0 });
  t.equal(released, 20);
  for (let n = 0; n < 20; n++) t.equal(cache.byteLengthOf(keyOf(n)), 30_000);
  t.same(cache.get(keyOf(19)), Buffer.alloc(30_000, 19));
  t.equal(await put(3), true, "one that is there already");
  const large = { bytes: new Uint8Array(MIB), release: () => void released++ };
  t.equal(await cache.putAndWait(keyOf(20), large), false, "too large");
  t.equal(released, 22);
});

t.test("writing that fails is one line and a state, and so is writing that works again", async (t) => {
  let hasRoom = false;
  const { log, lines } = createTestLog();
  const cache = createDiskChunkCache({
    ...{ maxBytes: 4 * MIB, pendingMaxBytes: 100_000, log },
    hasRoomFor: async () => hasRoom,
    onBroken: (reason) => t.fail(reason),
  });
  cache.attach(openLmdbStore(t.testdir(), { maxBytes: 4 * MIB, stamp: "1" }));
  t.teardown(() => cache.close());
  const { now } = Date;
  let later = 0;
  t.intercept(Date, "now", { value: () => now() + later });
  const put = (n: number) => {
    later += 11_000;
    return cache.putAndWait(keyOf(n), chunkOf(n));
  };
  t.equal(cache.stats.isWriteFailing, false);
  t.equal(await put(1), false);
  const puts = Array.from({ length: 10 }, (_, n) => cache.putAndWait(keyOf(20 + n), new Uint8Array(30_000)));
  t.strictSame(await Promise.all(puts), new Array(10).fill(false), "all that wait learn it");
  t.equal(cache.byteLengthOf(keyOf(20)), undefined);
  t.equal(cache.stats.isWriteFailing, true);
  t.same(lines, ["chunk cache: writing failed: no space left on device"]);
  hasRoom = true;
  t.equal(await put(3), true);
  t.equal(await put(4), true);
  t.equal(cache.stats.isWriteFailing, false);
  t.same(lines.slice(1), ["chunk cache: writing works again"]);
  hasRoom = false;
  t.equal(await put(5), false);
  t.equal(lines.length, 2, "a disk that is nearly full is logged once in ten minutes");
  t.equal(cache.stats.isWriteFailing, true);
});

t.test("a cache of another version is not read, and both may run", async (t) => {
  const directory = t.testdir();
  const old = await open(t, directory);
  await fill(old, 0, 5);
  const renewed = await open(t, directory, { version: "1.0.1" });
  t.equal(renewed.get(keyOf(0)), undefined);
  await fill(renewed, 0, 5);
  t.ok(old.get(keyOf(0)));
  t.ok(renewed.get(keyOf(0)));
});

t.test("files of others in the directory stay", async (t) => {
  const directory = t.testdir({ "notes.txt": "mine", data: { "data.mdb": "mine, too" } });
  const cache = await open(t, directory);
  await fill(cache, 0, 5);
  await cache.close();
  t.ok(readdirSync(directory).includes("notes.txt"));
  t.equal(statSync(join(directory, "data", "data.mdb")).size, 9);
});

t.test("closing twice is no failure, and a closed cache is a miss", async (t) => {
  const cache = await open(t, t.testdir());
  await fill(cache, 0, 5);
  await Promise.all([cache.close(), cache.close()]);
  t.equal(cache.get(keyOf(0)), undefined);
  t.equal(cache.admits(keyOf(0), 1, "encode"), false);
  cache.put(keyOf(0), chunkOf(0));
  t.equal(await cache.putAndWait(keyOf(0), chunkOf(0)), false);
  t.equal(cache.byteLengthOf(keyOf(0)), undefined);
});
