import { once } from "node:events";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { effort } from "../effort.js";
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

t.test("two processes in a row that are killed soon after they opened the cache cost it", async (t) => {
  const directory = t.testdir();
  await reportOf(startCacheProcess(directory, 12 * MIB, "write", 0, 100));
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
  const directory = t.testdir();
  await reportOf(startCacheProcess(directory, 12 * MIB, "write", 0, 100));
  const together = await Promise.all([1, 2, 3].map(() => startEndless(directory)));
  await Promise.all(together.map(({ kill }) => kill()));
  t.match(await readAll(directory), { signal: null, stderr: "", report: { hits: 100, wrong: 0 } });
});

t.test("processes that are killed beside a living one cost nothing", async (t) => {
  const directory = t.testdir();
  await reportOf(startCacheProcess(directory, 12 * MIB, "write", 0, 100));
  const live = await startEndless(directory);
  let said = "";
  live.stderr.on("data", (text: Buffer) => {
    said += text;
  });
  for (let i = 0; i < 3; i++) await (await startEndless(directory)).kill();
  t.match(await readAll(directory), { signal: null, stderr: "", report: { hits: 100, wrong: 0 } });
  await (await startEndless(directory)).kill();
  t.match(await live.kill(), { signal: "SIGKILL" });
  t.equal(said, "");
  t.match(await readAll(directory), { signal: null, stderr: "", report: { hits: 100, wrong: 0 } });
});
