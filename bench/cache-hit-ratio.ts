/**
 * Hit ratios of the chunk cache beside first-in first-out, least recently used, and the best possible in hindsight.
 * Prints a Markdown table: `node dist/bench/cache-hit-ratio.js`. The cache is the real one, LMDB included.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { cacheKeyOf } from "../src/cache/chunk-cache.js";
import { openMaintainedChunkCache } from "../src/cache/open-cache.js";
import { createLog } from "../src/observe/log.js";
import { createRandom } from "./random.js";

/** Bytes of one chunk: with header and page header, one page of 4 KiB. */
const CHUNK_BYTES = 3_500;
const PAGE_BYTES = 4_096;
const CACHE_BYTES = 4 * 1024 ** 2;
/** Requests between two periods of the cache, which a server has once a second. */
const PERIOD = 512;
/** Requests between two looks at the event loop. */
const TURN = 16;

/** A sequence of chunk numbers asked for. */
export type Load = Uint32Array;

/** Chunk k of `universe` is asked for in proportion to 1 / (k + 1)^exponent. */
export function zipfLoad(requests: number, universe: number, exponent: number, seed: number): Load {
  const random = createRandom(seed);
  const sums = new Float64Array(universe);
  let sum = 0;
  for (let k = 0; k < universe; k++) {
    sum += (k + 1) ** -exponent;
    sums[k] = sum;
  }
  return Uint32Array.from({ length: requests }, () => {
    const wanted = random() * sum;
    let low = 0;
    let high = universe - 1;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (sums[middle]! < wanted) low = middle + 1;
      else high = middle;
    }
    return low;
  });
}

/** Every `every` requests a client reads `length` chunks that are not asked for again. */
export function withScans(load: Load, every: number, length: number): Load {
  const mixed: number[] = [];
  let scanned = 2 ** 24;
  for (const [i, chunk] of load.entries()) {
    if (i % every === every - 1) for (let s = 0; s < length; s++) mixed.push(scanned++);
    mixed.push(chunk);
  }
  return Uint32Array.from(mixed);
}

/** What is popular moves on by `step` chunks after each of `phases` phases. */
export function withShifts(load: Load, phases: number, step: number): Load {
  return load.map((chunk, i) => chunk + step * Math.floor((i * phases) / load.length));
}

/** First in, first out, of `capacity` chunks. */
export function fifoHitRatio(load: Load, capacity: number): number {
  const kept = new Set<number>();
  let hits = 0;
  for (const chunk of load) {
    if (kept.has(chunk)) {
      hits++;
      continue;
    }
    if (kept.size >= capacity) kept.delete(kept.values().next().value!);
    kept.add(chunk);
  }
  return hits / load.length;
}

/** Least recently used goes first. */
export function lruHitRatio(load: Load, capacity: number): number {
  const kept = new Set<number>();
  let hits = 0;
  for (const chunk of load) {
    if (kept.delete(chunk)) hits++;
    else if (kept.size >= capacity) kept.delete(kept.values().next().value!);
    kept.add(chunk);
  }
  return hits / load.length;
}

/** Belady: what is needed again last goes first, or is not kept at all. */
export function bestHitRatio(load: Load, capacity: number): number {
  const nextUse = new Float64Array(load.length);
  const seen = new Map<number, number>();
  for (let i = load.length - 1; i >= 0; i--) {
    nextUse[i] = seen.get(load[i]!) ?? Number.POSITIVE_INFINITY;
    seen.set(load[i]!, i);
  }
  const kept = new Map<number, number>();
  let hits = 0;
  for (const [i, chunk] of load.entries()) {
    if (kept.has(chunk)) hits++;
    kept.set(chunk, nextUse[i]!);
    if (kept.size <= capacity + capacity / 16) continue;
    // In small lots: exact enough, and one sort serves many requests.
    const ordered = [...kept].sort((a, b) => b[1] - a[1]);
    for (const [unwanted] of ordered.slice(0, kept.size - capacity)) kept.delete(unwanted);
  }
  return hits / load.length;
}

/** The real cache in a new directory below the system's temporary one. */
export async function cacheHitRatio(load: Load, maxBytes: number, cost: "read" | "encode"): Promise<number> {
  const directory = await mkdtemp(join(tmpdir(), "zpublish-bench-"));
  const cache = await openMaintainedChunkCache({
    directory,
    maxBytes,
    log: createLog("warn"),
    version: "bench",
    flushIntervalMs: 0,
  });
  if (cache === undefined) throw new Error(`no cache can be opened in ${directory}`);
  const chunkBytes = new Uint8Array(CHUNK_BYTES);
  try {
    let hits = 0;
    for (const [i, chunk] of load.entries()) {
      const key = cacheKeyOf(`bench\0${chunk}`);
      if (cache.get(key) !== undefined) hits++;
      else if (cache.admits(key, CHUNK_BYTES, cost)) cache.put(key, chunkBytes);
      if (i % TURN === TURN - 1) await cache.settle();
      if (i % PERIOD === PERIOD - 1) await cache.maintain();
    }
    return hits / load.length;
  } finally {
    await cache.close();
    await rm(directory, { recursive: true, force: true });
  }
}

const UNIVERSE = 20_000;
const REQUESTS = 60_000;

/** The loads of the table, by name. */
export const LOADS: Readonly<Record<string, () => Load>> = {
  "zipf 0.7": () => zipfLoad(REQUESTS, UNIVERSE, 0.7, 1),
  "zipf 0.9": () => zipfLoad(REQUESTS, UNIVERSE, 0.9, 2),
  "zipf 1.1": () => zipfLoad(REQUESTS, UNIVERSE, 1.1, 3),
  "zipf 0.9 with scans": () => withScans(zipfLoad(REQUESTS, UNIVERSE, 0.9, 4), 6_000, 2_000),
  "zipf 0.9, shifting": () => withShifts(zipfLoad(REQUESTS, UNIVERSE, 0.9, 5), 5, 2_000),
};

async function main(): Promise<void> {
  const capacity = Math.floor(CACHE_BYTES / PAGE_BYTES);
  const percent = (ratio: number) => `${(ratio * 100).toFixed(1)} %`;
  console.log(`Hit ratios; ${capacity} chunks fit, of ${UNIVERSE}; ${REQUESTS} requests.\n`);
  console.log(
    "| load | first-in first-out | least recently used | zpublish, encoded | zpublish, read | best possible |",
  );
  console.log("|---|---|---|---|---|---|");
  for (const [name, make] of Object.entries(LOADS)) {
    const load = make();
    const row = [
      fifoHitRatio(load, capacity),
      lruHitRatio(load, capacity),
      await cacheHitRatio(load, CACHE_BYTES, "encode"),
      await cacheHitRatio(load, CACHE_BYTES, "read"),
      bestHitRatio(load, capacity),
    ];
    console.log(`| ${name} | ${row.map(percent).join(" | ")} |`);
  }
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) await main();
