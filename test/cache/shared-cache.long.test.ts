import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import t, { type Test } from "tap";
import { createRandom } from "../../bench/random.js";
import { openLmdbStore } from "../../src/cache/lmdb-store.js";
import { cacheStamp, openChunkCache, openMaintainedChunkCache } from "../../src/cache/open-cache.js";
import { packStoredValue } from "../../src/cache/stored-value.js";
import {
  chunkOf,
  createTestLog,
  fileBytesIn,
  keyOf,
  reportOf,
  startCacheProcess,
  storeIn,
  VERSION,
} from "./cache-process.js";

const MIB = 1024 ** 2;

t.test(
  "processes that share a directory read each other's chunks, every byte right, within one bound",
  async (t) => {
    const directory = t.testdir();
    const maxBytes = 12 * MIB;
    // The ranges overlap, and together exceed the bound.
    const all = await Promise.all(
      [0, 200, 400].map((first) => reportOf(startCacheProcess(directory, maxBytes, "mix", first, 600))),
    );
    for (const { report, signal, stderr } of all) {
      t.match({ report, signal }, { signal: null, report: { wrong: 0, stats: { errors: 0 } } }, stderr);
      t.notMatch(stderr, /starts over/, "they open one file side by side");
      t.ok(report!.stats.byteLength <= maxBytes * 1.05, `${report!.stats.byteLength} bytes`);
    }
    t.ok(fileBytesIn(directory) <= maxBytes * 1.6, `the file has ${fileBytesIn(directory)} bytes`);
    const reader = await reportOf(startCacheProcess(directory, maxBytes, "read", 0, 1_000));
    t.match(reader, { signal: null, report: { wrong: 0, stats: { errors: 0 } } }, reader.stderr);
    t.ok(reader.report!.hits > 200, `${reader.report!.hits} hits`);
  },
);

/** Starts a process that reads from the cache until it is killed. */
async function startEndless(directory: string) {
  const child = startCacheProcess(directory, 12 * MIB, "read", 0, 1e9);
  const ended = reportOf(child);
  await once(child.stdout!, "data");
  return {
    stderr: child.stderr!,
    async kill() {
      child.kill("SIGKILL");
      return ended;
    },
  };
}

async function filledCache(t: Test): Promise<string> {
  const directory = t.testdir();
  await reportOf(startCacheProcess(directory, 12 * MIB, "write", 0, 100));
  return directory;
}

const SOUND = { signal: null, stderr: "", report: { hits: 100, wrong: 0 } };
const readAll = (directory: string) => reportOf(startCacheProcess(directory, 12 * MIB, "read", 0, 200));

t.test("two processes in a row that are killed soon after they opened the cache cost it", async (t) => {
  const directory = await filledCache(t);
  const killed = async () => (await startEndless(directory)).kill();
  await killed();
  t.match(await readAll(directory), { stderr: "", report: { hits: 100, wrong: 0 } }, "one death is none");
  await killed();
  t.match(await readAll(directory), { stderr: "", report: { hits: 100 } }, "an orderly end was in between");
  const together = await Promise.all([startEndless(directory), startEndless(directory)]);
  await Promise.all(together.map(({ kill }) => kill()));
  await killed();
  const next = await readAll(directory);
  t.match(next, { signal: null, report: { hits: 0, wrong: 0, stats: { errors: 0 } } }, next.stderr);
  t.match(next.stderr, /two processes in a row died soon after they had opened it; it starts over/);
  t.equal((await readAll(directory)).stderr, "", "logged once");
});

t.test("processes that are killed together soon after they opened the cache cost nothing", async (t) => {
  const directory = await filledCache(t);
  const together = await Promise.all([1, 2, 3].map(() => startEndless(directory)));
  await Promise.all(together.map(({ kill }) => kill()));
  t.match(await readAll(directory), SOUND);
});

t.test("processes that are killed beside a living one cost nothing", async (t) => {
  const directory = await filledCache(t);
  const live = await startEndless(directory);
  let said = "";
  live.stderr.on("data", (text: Buffer) => {
    said += text;
  });
  for (let i = 0; i < 3; i++) await (await startEndless(directory)).kill();
  t.match(await readAll(directory), SOUND);
  await (await startEndless(directory)).kill();
  t.match(await live.kill(), { signal: "SIGKILL" });
  t.equal(said, "");
  t.match(await readAll(directory), SOUND);
});

const MAX_BYTES = 16 * 1024 ** 2;
const CHUNKS = 120;

function optionsFor(directory: string) {
  const { log, lines } = createTestLog();
  return { directory, maxBytes: MAX_BYTES, log, lines, version: VERSION, flushIntervalMs: 0 };
}

async function makeCache(t: Test, directory = t.testdir()): Promise<string> {
  const { report } = await reportOf(startCacheProcess(directory, MAX_BYTES, "write", 0, CHUNKS));
  t.equal(report?.stats.puts, CHUNKS);
  return directory;
}

t.test(
  "damage of every kind costs chunks and at most two processes, and never gives a wrong byte",
  async (t) => {
    const directory = await makeCache(t);
    const path = join(storeIn(directory), "data.mdb");
    const sound = readFileSync(path);
    const random = createRandom(99);
    const scribble = (bytes: Buffer, from: number, to: number) => {
      for (let i = from; i < to; i++) bytes[i] = random() * 256;
      return bytes;
    };
    const kinds: Record<string, (bytes: Buffer) => Buffer> = {
      "garbage all over": (bytes) => scribble(bytes, 0, bytes.length),
      "a garbled beginning": (bytes) => scribble(bytes, 0, 200),
      "an empty file": () => Buffer.alloc(0),
      "100 bytes": (bytes) => bytes.subarray(0, 100),
      "half of the file": (bytes) => bytes.subarray(0, bytes.length >> 1),
      "a few bytes missing": (bytes) => bytes.subarray(0, -1_000),
      zeros: (bytes) => bytes.fill(0),
      "another kind of file": () => Buffer.from("nothing to see here\n".repeat(1_000)),
      "garbage in one value": (bytes) => scribble(bytes, 300_000, 300_100),
      "garbage in many places": (bytes) => {
        for (let i = 0; i < 60; i++) {
          const from = 8_192 + Math.floor(random() * (bytes.length - 9_000));
          scribble(bytes, from, from + 64);
        }
        return bytes;
      },
      "garbage in pages of the tree": (bytes) => {
        for (let page = 8_192; page < bytes.length; page += 4_096) {
          const kind = bytes.readUInt16LE(page + 18);
          if ((kind !== 1 && kind !== 2) || bytes.readUInt32LE(page) * 4_096 !== page) continue;
          for (let i = 0; i < 4; i++) bytes[page + Math.floor(random() * 4_096)] = random() * 256;
        }
        return bytes;
      },
    };
    for (const [name, damage] of Object.entries(kinds)) {
      writeFileSync(path, damage(Buffer.from(sound)));
      const run = () => reportOf(startCacheProcess(directory, MAX_BYTES, "mix", 0, CHUNKS));
      let [deaths, ended] = [0, await run()];
      for (; ended.signal !== null && deaths < 2; ended = await run()) {
        t.ok(["SIGSEGV", "SIGBUS", "SIGABRT"].includes(ended.signal), `${name}: ${ended.signal}`);
        deaths++;
      }
      t.match(
        ended,
        { signal: null, report: { wrong: 0 } },
        `${name}, after ${deaths} deaths: ${ended.stderr}`,
      );
      if (deaths === 2) t.match(ended.stderr, /two processes in a row died soon after/);
      const next = await reportOf(startCacheProcess(directory, MAX_BYTES, "read", 0, CHUNKS));
      t.match(next, { signal: null, stderr: "", report: { wrong: 0 } });
      t.ok((next.report?.hits ?? 0) > 0, `${name}: the cache works again`);
    }
  },
);

t.test("a damaged lock file is no obstacle", async (t) => {
  const directory = await makeCache(t);
  writeFileSync(join(storeIn(directory), "lock.mdb"), "garbage".repeat(5_000));
  const { report, signal, stderr } = await reportOf(
    startCacheProcess(directory, MAX_BYTES, "mix", 0, CHUNKS),
  );
  t.match({ report, signal }, { signal: null, report: { wrong: 0 } }, stderr);
});

t.test("if no cache can be opened, every get is a miss and one line is logged", async (t) => {
  const directory = join(t.testdir({ file: "" }), "file");
  for (const path of [directory, "/proc/none/such"]) {
    const options = optionsFor(path);
    const cache = await openChunkCache(options);
    t.equal(options.lines.length, 1);
    t.match(options.lines[0], /cannot be used, every chunk will be made again/);
    cache.put(keyOf(1), chunkOf(1));
    t.equal(cache.get(keyOf(1)), undefined);
    await cache.close();
  }
});

t.test("a chunk damaged on the disk is a miss at its first read, and the cache starts over", async (t) => {
  const directory = t.testdir();
  const before = (await openMaintainedChunkCache(optionsFor(directory)))!;
  for (let n = 0; n < 20; n++) before.put(keyOf(n), chunkOf(n));
  await before.settle();
  await before.close();
  const path = join(storeIn(directory), "data.mdb");
  const bytes = readFileSync(path);
  bytes[bytes.indexOf(Buffer.from(chunkOf(5).subarray(100, 200)))]! ^= 1;
  writeFileSync(path, bytes);
  const options = optionsFor(directory);
  const cache = (await openMaintainedChunkCache(options))!;
  t.teardown(() => cache.close());
  t.same(cache.get(keyOf(4)), chunkOf(4));
  t.equal(cache.get(keyOf(5)), undefined);
  await cache.settle();
  t.match(options.lines, [/not what was written; it starts over/]);
  cache.put(keyOf(5), chunkOf(5));
  await cache.settle();
  t.same(cache.get(keyOf(5)), chunkOf(5));
});

t.test("the checksum of a verified chunk is verified again when the chunk is replaced", async (t) => {
  const directory = t.testdir();
  const options = optionsFor(directory);
  const cache = (await openMaintainedChunkCache(options))!;
  t.teardown(() => cache.close());
  cache.put(keyOf(5), chunkOf(5));
  await cache.settle();
  t.same(cache.get(keyOf(5)), chunkOf(5));
  const key = keyOf(5).bytes;
  const stored = packStoredValue(key, chunkOf(5));
  stored[stored.length - 1]! ^= 1;
  const other = openLmdbStore(storeIn(directory), { maxBytes: MAX_BYTES, stamp: cacheStamp(VERSION) });
  await other.write({ puts: [{ key, stored, score: 0 }], removes: [], scores: [], clock: undefined });
  await other.close();
  t.equal(cache.get(keyOf(5)), undefined);
  await cache.settle();
  t.match(options.lines, [/not what was written; it starts over/]);
});

t.test("while another process holds the write lock, reads go on, and writes wait", async (t) => {
  const directory = t.testdir();
  const options = optionsFor(directory);
  const cache = (await openMaintainedChunkCache(options))!;
  cache.put(keyOf(1), chunkOf(1));
  await cache.settle();
  const holder = spawn(
    process.execPath,
    [fileURLToPath(new URL("lock-holder.js", import.meta.url)), storeIn(directory)],
    {
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  await new Promise((resolve) => holder.stdout.once("data", resolve));
  cache.put(keyOf(2), chunkOf(2));
  await new Promise((resolve) => setTimeout(resolve, 50));
  t.same(cache.get(keyOf(1)), chunkOf(1));
  t.same(cache.get(keyOf(2)), chunkOf(2), "waits in memory");
  holder.kill("SIGKILL");
  await cache.settle();
  t.same(cache.get(keyOf(2)), chunkOf(2), "written after the lock's holder died");
  await cache.close();
});
