import { idOf } from "./cache-key.js";

/** An entry of the cache as eviction sees it. */
export interface CacheEntry {
  /** 20 bytes, owned by the holder of the entry. */
  readonly key: Uint8Array;
  /** Access score: see `access-sketch`. */
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

/** Candidates for eviction: entries with low scores, found without an order over all entries. */
export interface VictimPool {
  /** Returns the score of the entry that would be evicted next, Infinity if there is none. */
  lowestScore(): number;
  /** Takes the next entry to evict, undefined if there is none. It is not returned again before {@link forgetTaken}. */
  take(): CacheEntry | undefined;
  /** Called when the removal of the taken entries is visible, or failed. */
  forgetTaken(): void;
}

const SAMPLE_SIZE = 8;
const POOL_SIZE = 64;
/** Calls of {@link VictimPool.lowestScore} for which one sample is used. */
const CALLS_PER_SAMPLE = 16;

/**
 * Creates an empty pool. As in Redis, samples of 8 approach the true minimum, because the lowest entries of earlier samples
 * stay in the pool.
 */
export function createVictimPool(index: EntryIndex): VictimPool {
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
    lowestScore() {
      if (pool.length === 0 || calls++ % CALLS_PER_SAMPLE === 0) refill();
      return settleFront()?.score ?? Number.POSITIVE_INFINITY;
    },
    take() {
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
    forgetTaken() {
      taken.clear();
    },
  };
}
