import { idOf } from "../cache-key.js";

/** An entry of the cache as eviction sees it. */
export interface CacheEntry {
  /** 20 bytes, owned by the holder. */
  readonly key: Uint8Array;
  /** Access score: see `access-sketch`. */
  readonly score: number;
  /** Length of the stored value. */
  readonly byteLength: number;
}

/** What eviction needs to know of the entries kept. */
export interface EntryIndex {
  /** Up to `limit` entries that follow a random key. Keys are hashes, so this is a random sample. */
  sample(limit: number): CacheEntry[];
  /** The entry now, undefined where it is gone. */
  entry(key: Uint8Array): CacheEntry | undefined;
}

/** Finds the least wanted entries without an order kept over all of them. */
export interface VictimPool {
  /** Score of the entry that would go next; Infinity where there is none to compare with. */
  lowestScore(): number;
  /** The next entry to remove, undefined where there is none. It is not named again before {@link forgetTaken}. */
  take(): CacheEntry | undefined;
  /** Called once the removal of what was taken is visible (or failed). */
  forgetTaken(): void;
}

const SAMPLE_SIZE = 8;
const POOL_SIZE = 64;
/** Takes that {@link VictimPool.lowestScore} may be old. */
const LOOKS_PER_SAMPLE = 16;

/**
 * Sampled eviction with a pool of the best candidates so far (as Redis does): samples of 8 approach the true minimum,
 * because the low ones of earlier samples stay in the pool.
 */
export function createVictimPool(index: EntryIndex): VictimPool {
  /** Ascending by score. */
  const pool: CacheEntry[] = [];
  const pooled = new Set<string>();
  const taken = new Set<string>();
  let looks = 0;

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

  /** Removes from the front what is gone, and reorders what was used since it was sampled. */
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
      if (pool.length === 0 || looks++ % LOOKS_PER_SAMPLE === 0) refill();
      return settleFront()?.score ?? Number.POSITIVE_INFINITY;
    },
    take() {
      refill();
      // A first sample alone is no minimum to speak of.
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
