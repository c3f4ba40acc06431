import { addAccesses, clockStep, createAccessSketch } from "./access-sketch.js";
import { type CacheKey, keyOfId } from "./cache-key.js";
import { type CacheEntry, createVictimPool, type EntryIndex } from "./victim-pool.js";

/** Admission and eviction. The policy knows no disk: it sees entries through an {@link EntryIndex}. */
export interface CachePolicy {
  /** Records a hit. */
  recordHit(key: CacheKey): void;
  /** Records a miss, and tells if the chunk is worth caching: see `ChunkCache.admits`. @param isFull True if another must go. */
  admits(key: CacheKey, cost: "read" | "encode", isFull: boolean): boolean;
  /** Returns the score of a new entry. */
  scoreOf(key: CacheKey): number;
  /** See {@link VictimPool.take}. */
  takeVictim(): CacheEntry | undefined;
  /** See {@link VictimPool.forgetTaken}. */
  forgetTaken(): void;
  /**
   * Ends a period: advances the clock, and returns the entries whose scores should be written. Hits that change a score too
   * little count for the next period.
   * @param clock The clock that all processes share, as last written.
   */
  endPeriod(clock: number, entries: number): PolicyPeriod;
}

/** Changes of a period, to be written for all processes. */
export interface PolicyPeriod {
  readonly clock: number;
  /** Entries with new scores. */
  readonly changed: readonly CacheEntry[];
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
