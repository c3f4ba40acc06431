import t from "tap";
import {
  bestHitRatio,
  fifoHitRatio,
  type Load,
  lruHitRatio,
  withScans,
  withShifts,
  zipfLoad,
} from "../../bench/cache-hit-ratio.js";
import { createRandom } from "../../bench/random.js";
import { cacheKeyOf, idOf } from "../../src/cache/chunk-cache.js";
import { type CacheEntry, createCachePolicy, type EntryIndex } from "../../src/cache/policy.js";

/** Entries in memory, sampled with a seed. */
function createMemoryIndex(seed: number) {
  const random = createRandom(seed);
  const entries = new Map<string, CacheEntry>();
  let ids: string[] = [];
  let idsAreOld = true;
  const index: EntryIndex = {
    sample(limit) {
      if (idsAreOld) ids = [...entries.keys()];
      idsAreOld = false;
      return Array.from({ length: Math.min(limit, ids.length) }, () => {
        return entries.get(ids[Math.floor(random() * ids.length)]!)!;
      });
    },
    entry: (key) => entries.get(idOf(key)),
  };
  return {
    index,
    size: () => entries.size,
    set(entry: CacheEntry) {
      idsAreOld ||= !entries.has(idOf(entry.key));
      entries.set(idOf(entry.key), entry);
    },
    delete(key: Uint8Array) {
      idsAreOld = true;
      entries.delete(idOf(key));
    },
  };
}

function policyHitRatio(load: Load, capacity: number, cost: "read" | "encode"): number {
  const memory = createMemoryIndex(7);
  const policy = createCachePolicy(memory.index, 2048);
  let clock = 0;
  let hits = 0;
  for (const [i, chunk] of load.entries()) {
    const key = cacheKeyOf(`policy\0${chunk}`);
    if (memory.index.entry(key.bytes) !== undefined) {
      hits++;
      policy.recordHit(key);
    } else if (policy.admits(key, cost, memory.size() >= capacity)) {
      while (memory.size() >= capacity) memory.delete(policy.takeVictim()!.key);
      policy.forgetTaken();
      memory.set({ key: key.bytes, score: policy.scoreOf(key), byteLength: 1 });
    }
    if (i % 256 !== 255) continue;
    const period = policy.endPeriod(clock, memory.size());
    clock = period.clock;
    for (const entry of period.changed) memory.set(entry);
  }
  return hits / load.length;
}

t.test("on skewed loads it has more hits than first-in first-out and least recently used", async (t) => {
  for (const exponent of [0.7, 0.9, 1.1]) {
    const load = zipfLoad(20_000, 5_000, exponent, 11);
    const ours = policyHitRatio(load, 250, "encode");
    t.ok(ours > fifoHitRatio(load, 250) + 0.02, `zipf ${exponent}: first-in first-out`);
    t.ok(ours > lruHitRatio(load, 250), `zipf ${exponent}: least recently used`);
    t.ok(ours <= bestHitRatio(load, 250), `zipf ${exponent}: best possible`);
    t.ok(
      policyHitRatio(load, 250, "read") > fifoHitRatio(load, 250),
      `zipf ${exponent}: chunks that are read`,
    );
  }
});

t.test(
  "scans displace no chunks that are requested again and again, and moving loads are followed",
  async (t) => {
    const scans = withScans(zipfLoad(20_000, 5_000, 0.9, 12), 2_000, 1_000);
    const ours = policyHitRatio(scans, 250, "encode");
    t.ok(ours > fifoHitRatio(scans, 250) + 0.02);
    t.ok(ours > lruHitRatio(scans, 250));
    const shifts = withShifts(zipfLoad(20_000, 5_000, 0.9, 13), 4, 1_000);
    t.ok(policyHitRatio(shifts, 250, "encode") > fifoHitRatio(shifts, 250));
  },
);

t.test(
  "while there is room, encoded chunks are cached at once and read ones from the second request on",
  async (t) => {
    const policy = createCachePolicy(createMemoryIndex(1).index, 1024);
    t.equal(policy.admits(cacheKeyOf("a"), "encode", false), true);
    t.equal(policy.admits(cacheKeyOf("b"), "read", false), false);
    t.equal(policy.admits(cacheKeyOf("b"), "read", false), true);
  },
);
