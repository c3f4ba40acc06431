import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
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
    // Overlapping: together more than fits.
    const all = await Promise.all(
      [0, 200, 400].map((first) => reportOf(startCacheProcess(directory, maxBytes, "mix", first, 600))),
    );
    for (const { report, signal, stderr } of all) {
      t.match({ report, signal }, { signal: null, report: { wrong: 0, stats: { errors: 0 } } }, stderr);
      t.ok(report!.stats.byteLength <= maxBytes * 1.05, `${report!.stats.byteLength} bytes`);
    }
    t.ok(fileBytesIn(directory) <= maxBytes * 1.6, `the file has ${fileBytesIn(directory)} bytes`);
    const reader = await reportOf(startCacheProcess(directory, maxBytes, "read", 0, 1_000));
    t.match(reader, { signal: null, report: { wrong: 0, stats: { errors: 0 } } }, reader.stderr);
    t.ok(reader.report!.hits > 200, `${reader.report!.hits} hits`);
  },
);

t.test("a process that dies in the middle of writing leaves a cache that reads right", async (t) => {
  const directory = t.testdir();
  const maxBytes = 6 * MIB;
  const rounds = 24;
  let hits = 0;
  for (let round = 0; round < rounds; round++) {
    const child = startCacheProcess(directory, maxBytes, "mix", (round % 4) * 150, 100_000);
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
    t.notMatch(stderr, /damaged/);
    hits += report!.hits;
  }
  t.ok(hits > 0, "what was committed is still there");
});
