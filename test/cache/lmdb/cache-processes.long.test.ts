import { once } from "node:events";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { effort } from "../../effort.js";
import { reportOf, startCacheProcess } from "./cache-process.js";

const MIB = 1024 ** 2;

function fileBytesIn(directory: string): number {
  const store = readdirSync(directory).find((name) => /chunks-[0-9a-f]+$/.test(name))!;
  return statSync(join(directory, store, "data.mdb")).size;
}

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

t.test(
  "a process that is killed while it writes into a proven store leaves a cache that reads right",
  async (t) => {
    const directory = t.testdir();
    const maxBytes = 6 * MIB;
    // A reader follows every third round.
    const rounds = 3 * effort(20);
    let hits = 0;
    for (let round = 0; round < rounds; round++) {
      const child = startCacheProcess(directory, maxBytes, "mix", (round % 4) * 150, 100_000, 0);
      const ended = reportOf(child);
      await new Promise((resolve) => child.stdout!.once("data", resolve));
      await new Promise((resolve) => setTimeout(resolve, 10 + ((round * 37) % 120)));
      child.kill("SIGKILL");
      t.equal((await ended).signal, "SIGKILL");
      if (round % 3 !== 2) continue;
      const { report, signal, stderr } = await reportOf(
        startCacheProcess(directory, maxBytes, "read", 0, 2_000),
      );
      t.match({ report, signal }, { signal: null, report: { wrong: 0, stats: { errors: 0 } } }, stderr);
      t.notMatch(stderr, /starts over/);
      hits += report!.hits;
    }
    t.ok(hits > 0, "committed chunks are still there");
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

const readAll = (directory: string) => reportOf(startCacheProcess(directory, 12 * MIB, "read", 0, 200));

t.test("a process that is killed soon after it opened the cache costs it", async (t) => {
  const directory = t.testdir();
  await reportOf(startCacheProcess(directory, 12 * MIB, "write", 0, 100));
  t.equal((await readAll(directory)).report?.hits, 100, "an orderly end leaves no marker");
  await (await startEndless(directory)).kill();
  const next = await readAll(directory);
  t.match(next, { signal: null, report: { hits: 0, wrong: 0, stats: { errors: 0 } } }, next.stderr);
  t.match(next.stderr, /a process died soon after it had opened it; it starts over/);
  t.equal((await readAll(directory)).stderr, "", "logged once");
});

t.test(
  "a live process's marker costs nothing, and the process continues when another one dies",
  async (t) => {
    const directory = t.testdir();
    await reportOf(startCacheProcess(directory, 12 * MIB, "write", 0, 100));
    const live = await startEndless(directory);
    const beside = await readAll(directory);
    t.match(beside, { signal: null, stderr: "", report: { hits: 100, wrong: 0, stats: { errors: 0 } } });
    await (await startEndless(directory)).kill();
    const [[said], next] = await Promise.all([once(live.stderr, "data"), readAll(directory)]);
    t.match(next.stderr, /died soon after/);
    t.match(String(said), /its directory was removed or replaced; it starts over/);
    t.match(await live.kill(), { signal: "SIGKILL" });
  },
);
