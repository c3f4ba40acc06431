import { type CacheKey, idOf, keyOfId } from "./chunk-cache.js";

/** Admission and eviction. The policy knows no disk: it sees entries through an {@link EntryIndex}. */
export interface CachePolicy {
  /** Records a hit. */
  recordHit(key: CacheKey): void;
  /** Records a miss, and tells if the chunk is worth caching: see `ChunkCache.admits`. @param isFull True if another must go. */
  admits(key: CacheKey, cost: "read" | "encode", isFull: boolean): boolean;
  /** Returns the score of a new entry. */
  scoreOf(key: CacheKey): number;
  /** Takes the next entry to evict, undefined if there is none. It is not returned again before `forgetTaken`. */
  takeVictim(): CacheEntry | undefined;
  /** Called when the removal of the taken entries is visible, or failed. */
  forgetTaken(): void;
  /**
   * Ends a period: advances the clock, and returns the entries whose scores should be written. Hits that change a score too
   * little count for the next period.
   * @param clock The clock that all processes share, as last written.
   */
  endPeriod(
    clock: number,
    entries: number,
  ): { readonly clock: number; readonly changed: readonly CacheEntry[] };
}

/** Keys with hits in memory. */
const MAX_HIT_KEYS = 16_384;
const MAX_CHANGES_PER_PERIOD = 2_048;
/** Keys with hits whose scores are checked in a period. A check occupies the event loop for about a microsecond. */
const MAX_CHECKS_PER_PERIOD = 4_096;
/** Error of a stored score (log2 of accesses) from which it is rewritten: an often read entry is not written each time. */
const SCORE_TOLERANCE = 0.25;
/** Score by which a chunk must exceed the lowest entry, so that a chunk requested once does not displace another. */
const ADMISSION_MARGIN = 0.5;
/** Units of the clock after which a first request is forgotten, so that the next one is a first request again. */
const REMEMBERED_HALF_LIVES = 4;

/** Hits of one entry since its score was last written. */
interface EntryHits {
  /** Hits that are in the sketch: those of former periods. */
  inSketch: number;
  /** Hits of this period. */
  fresh: number;
}

/** Creates a policy over the entries of `index`. @param sketchWidth Power of two, about twice the entries of a full cache. */
export function createCachePolicy(index: EntryIndex, sketchWidth: number): CachePolicy {
  const sketch = createAccessSketch(sketchWidth);
  const victims = createVictimPool(index);
  const hitsById = new Map<string, EntryHits>();
  let clock = 0;
  let accesses = 0;

  return {
    recordHit({ id }) {
      accesses++;
      const hits = hitsById.get(id);
      if (hits !== undefined) hits.fresh++;
      else if (hitsById.size < MAX_HIT_KEYS) hitsById.set(id, { inSketch: 0, fresh: 1 });
    },
    admits({ bytes }, cost, isFull) {
      accesses++;
      const before = sketch.estimate(bytes);
      const score = sketch.add(bytes, clock, 1);
      if (cost === "read" && before < clock - REMEMBERED_HALF_LIVES) return false;
      return !isFull || score > victims.lowestScore() + ADMISSION_MARGIN;
    },
    scoreOf: ({ bytes }) => Math.max(sketch.estimate(bytes), clock),
    takeVictim: () => victims.take(),
    forgetTaken: () => victims.forgetTaken(),
    endPeriod(sharedClock, entries) {
      clock = Math.max(clock, sharedClock) + clockStep(accesses, entries);
      accesses = 0;
      const changed: CacheEntry[] = [];
      let checks = Math.min(hitsById.size, MAX_CHECKS_PER_PERIOD);
      for (const [id, hits] of hitsById) {
        if (checks-- === 0 || changed.length === MAX_CHANGES_PER_PERIOD) break;
        const key = keyOfId(id);
        if (hits.fresh > 0) sketch.add(key, clock, hits.fresh);
        hits.inSketch += hits.fresh;
        hits.fresh = 0;
        const entry = index.entry(key);
        if (entry === undefined) {
          hitsById.delete(id);
          continue;
        }
        const score = addAccesses(entry.score, clock, hits.inSketch);
        hitsById.delete(id);
        if (score - entry.score < SCORE_TOLERANCE) {
          // Moved to the end of the map, so that the next period checks others first.
          hitsById.set(id, hits);
          continue;
        }
        changed.push({ key, score, byteLength: entry.byteLength });
      }
      // The map is full of entries with few hits: forgetting them is better than missing hits of others.
      if (hitsById.size >= MAX_HIT_KEYS) hitsById.clear();
      return { clock, changed };
    },
  };
}

/**
 * The access score of a chunk is one number for frequency and recency: log2 of its accesses, each weighted with
 * 2^(clock at the access). An access counts half as much as one that is a clock unit later. Two scores compare without
 * knowing the clock, so they need no updates.
 *
 * The clock counts accesses, not seconds ({@link clockStep}), so that a cache behaves alike on a busy and an idle server.
 */

/** Score of a chunk without accesses. */
const NEVER = Number.NEGATIVE_INFINITY;

/** Returns the score after `count` (≥ 1) more accesses at `clock`. */
function addAccesses(score: number, clock: number, count: number): number {
  const added = count === 1 ? clock : clock + Math.log2(count);
  const high = Math.max(score, added);
  return high + Math.log2(1 + 2 ** (Math.min(score, added) - high));
}

/** Accesses per entry of the cache after which an access counts half. */
const HALF_LIFE_IN_ACCESSES_PER_ENTRY = 6;

/** Returns by how much `accesses` accesses advance the clock of a cache of `entries` entries. */
function clockStep(accesses: number, entries: number): number {
  return accesses / (HALF_LIFE_IN_ACCESSES_PER_ENTRY * Math.max(entries, 64));
}

const ROWS = 4;

/**
 * Creates a sketch, which holds in constant memory the scores of keys that are not cached. Its cells are access scores, so
 * ageing needs no pass over them.
 * @param width Cells per row, a power of two; a column takes 32 bytes.
 */
function createAccessSketch(width: number) {
  const cells = new Float64Array(ROWS * width).fill(NEVER);
  const mask = width - 1;
  const at = new Uint32Array(ROWS);

  /** Finds a key's cell in each row, and returns their lowest score. Keys are hashes, so their own bytes are the row hashes. */
  function locate(key: Uint8Array): number {
    let lowest = Number.POSITIVE_INFINITY;
    for (let row = 0; row < ROWS; row++) {
      const o = row * 4;
      const word = key[o]! | (key[o + 1]! << 8) | (key[o + 2]! << 16) | (key[o + 3]! << 24);
      const cell = row * width + (word & mask);
      at[row] = cell;
      if (cells[cell]! < lowest) lowest = cells[cell]!;
    }
    return lowest;
  }

  return {
    /** Adds `count` (≥ 1) accesses, and returns the new estimate. */
    add(key: Uint8Array, clock: number, count: number): number {
      const score = addAccesses(locate(key), clock, count);
      for (let row = 0; row < ROWS; row++) {
        if (cells[at[row]!]! < score) cells[at[row]!] = score;
      }
      return score;
    },
    /** Estimates the score of a key: too high if keys collide, never too low. */
    estimate: locate,
  };
}

/** An entry of the cache as eviction sees it. */
export interface CacheEntry {
  /** 20 bytes, owned by the holder of the entry. */
  readonly key: Uint8Array;
  /** Access score: see {@link addAccesses}. */
  readonly score: number;
  /** Length of the stored value. */
  readonly byteLength: number;
}

/** The entries of a cache, as eviction sees them. */
export interface EntryIndex {
  /** Returns up to `limit` entries that follow a random key: a random sample, since keys are hashes. */
  sample(limit: number): CacheEntry[];
  /** Returns the current state of an entry, undefined if it is gone. */
  entry(key: Uint8Array): CacheEntry | undefined;
}

const SAMPLE_SIZE = 8;
const POOL_SIZE = 64;
/** Calls of {@link VictimPool.lowestScore} for which one sample is used. */
const CALLS_PER_SAMPLE = 16;

/**
 * Creates a pool of candidates for eviction, found without an order over all entries. As in Redis, samples of 8 approach the lowest score,
 * because the lowest entries of earlier samples stay in the pool.
 */
function createVictimPool(index: EntryIndex) {
  /** Ascending by score. */
  const pool: CacheEntry[] = [];
  const pooled = new Set<string>();
  const taken = new Set<string>();
  let calls = 0;

  function insert(entry: CacheEntry, id: string): void {
    let at = pool.length;
    while (at > 0 && pool[at - 1]!.score > entry.score) at--;
    if (at >= POOL_SIZE) return;
    pool.splice(at, 0, entry);
    pooled.add(id);
    if (pool.length > POOL_SIZE) pooled.delete(idOf(pool.pop()!.key));
  }

  function refill(): void {
    for (const entry of index.sample(SAMPLE_SIZE)) {
      const id = idOf(entry.key);
      if (!pooled.has(id) && !taken.has(id)) insert(entry, id);
    }
  }

  /** Removes entries from the front that are gone, and reorders those whose score has changed since they were sampled. */
  function settleFront(): CacheEntry | undefined {
    for (let attempt = 0; attempt < POOL_SIZE; attempt++) {
      const front = pool[0];
      if (front === undefined) return undefined;
      const now = index.entry(front.key);
      if (now !== undefined && now.score === front.score) return front;
      pool.shift();
      const id = idOf(front.key);
      pooled.delete(id);
      if (now !== undefined) insert(now, id);
    }
    return pool[0];
  }

  return {
    /** Returns the score of the entry that would be evicted next, Infinity if there is none. */
    lowestScore(): number {
      if (pool.length === 0 || calls++ % CALLS_PER_SAMPLE === 0) refill();
      return settleFront()?.score ?? Number.POSITIVE_INFINITY;
    },
    /** Takes the next entry to evict, undefined if there is none. It is not returned again before `forgetTaken`. */
    take(): CacheEntry | undefined {
      refill();
      // The minimum of a first sample alone would be far from the true one.
      for (let more = 0; more < 3 && pool.length < POOL_SIZE / 4; more++) refill();
      const victim = settleFront();
      if (victim === undefined) return undefined;
      pool.shift();
      const id = idOf(victim.key);
      pooled.delete(id);
      taken.add(id);
      return victim;
    },
    /** Called when the removal of the taken entries is visible, or failed. */
    forgetTaken(): void {
      taken.clear();
    },
  };
}

/** Limits that follow from the bound of the operator, in bytes. */
export interface CacheLimits {
  readonly maxBytes: number;
  /** Larger values are not cached. */
  readonly valueBytes: number;
  /** Size from which a chunk is only cached if its score is higher than another's. */
  readonly fullBytes: number;
  /** Bound of one transaction: its freed pages are not reused before the next but one, so they must not pile up. */
  readonly batchBytes: number;
  /** If the file is larger, each write waits until it is on the disk, so that freed pages can be reused. */
  readonly fileBytesFlushed: number;
  /** If the file is larger, more is evicted: see {@link usedBytesWhenTight}. */
  readonly fileBytesTight: number;
  readonly usedBytesWhenTight: number;
  /** If the file is larger, the cache starts over. */
  readonly fileBytesMax: number;
  /** Cells per row of the access sketch: about two per entry with chunks of 32 KiB. The sketch takes 32 KiB to 8 MiB. */
  readonly sketchWidth: number;
}

/** Pages that every environment has, which count if the bound is small. */
const FILE_SLACK_BYTES = 1024 ** 2;

/** Computes the limits of a cache of `maxBytes`. */
export function cacheLimitsOf(maxBytes: number): CacheLimits {
  return {
    maxBytes,
    valueBytes: maxBytes / 8,
    fullBytes: maxBytes * 0.95,
    batchBytes: Math.min(8 * 1024 ** 2, maxBytes / 16),
    fileBytesFlushed: maxBytes * 1.1,
    fileBytesTight: maxBytes * 1.25 + FILE_SLACK_BYTES,
    usedBytesWhenTight: maxBytes * 0.8,
    fileBytesMax: maxBytes * 1.5 + FILE_SLACK_BYTES,
    sketchWidth: 2 ** Math.min(18, Math.max(10, Math.ceil(Math.log2(maxBytes / 16_384)))),
  };
}

/** With fewer entries their average size says little. */
const MIN_ENTRIES_FOR_AVERAGE = 64;

/**
 * Estimates the entries of the full cache from their average size so far, and at first from chunks of usual size. The entries of
 * a cache that still fills are few: by them, the clock would advance so fast that a second request counts as a first one.
 */
export function entriesWhenFull(
  { maxBytes, sketchWidth }: CacheLimits,
  { entries, usedBytes }: { readonly entries: number; readonly usedBytes: number },
): number {
  if (entries < MIN_ENTRIES_FOR_AVERAGE) return sketchWidth / 2;
  return Math.max(entries, Math.min(entries * (maxBytes / usedBytes), sketchWidth));
}

/**
 * Returns the size of the pages of a new store. For chunks, 16 KiB was 1.6 times faster than 4 KiB. With a small bound, half empty pages
 * would take too much of it.
 */
export function pageSizeOf(maxBytes: number): number {
  return maxBytes >= 64 * 1024 ** 2 ? 16_384 : 4_096;
}

/** Estimates the bytes on disk of a value. */
export function bytesOnDisk(byteLength: number, pageSize: number): number {
  // Small values share pages, about two thirds full.
  return byteLength < pageSize / 4 ? byteLength * 1.5 : Math.ceil((byteLength + 24) / pageSize) * pageSize;
}
