import { addAccesses, clockStep } from "./access-score.js";
import { createAccessSketch } from "./access-sketch.js";
import { type CacheKey, keyOfId } from "./cache-key.js";
import type { CacheEntry } from "./entry-record.js";
import { createVictimPool, type EntryIndex } from "./victim-pool.js";

/** What to keep and what to drop. Knows no disk: entries are seen through an {@link EntryIndex}. */
export interface CachePolicy {
  /** Notes that `key` was found. */
  noteHit(key: CacheKey): void;
  /** Notes that `key` was not found; see `ChunkCache.admits`. @param isFull Something must go for it. */
  admits(key: CacheKey, cost: "read" | "encode", isFull: boolean): boolean;
  /** Score of a new entry. */
  scoreOf(key: CacheKey): number;
  takeVictim(): CacheEntry | undefined;
  forgetTaken(): void;
  /**
   * Ends a period: moves the clock and says which entries' scores should be rewritten. Hits too few to matter are kept
   * for the next period.
   * @param clock The clock that all processes share, as last written.
   */
  endPeriod(clock: number, entries: number): PolicyPeriod;
}

export interface PolicyPeriod {
  /** To be written for the other processes. */
  readonly clock: number;
  readonly changed: readonly CacheEntry[];
}

/** Bounds of what the policy keeps in memory, and of what one period writes. */
const NOTED_KEYS_MAX = 16_384;
const CHANGES_PER_PERIOD_MAX = 2_048;
/** A score is rewritten when it is off by this much (log2 of accesses): an often used entry is not written each time. */
const SCORE_TOLERANCE = 0.25;
/** How much more wanted than the least wanted entry a chunk must be: a chunk asked for once does not displace another. */
const ADMISSION_MARGIN = 0.5;

/** How long a first request is remembered, in units of the clock: then the next one is a first one again. */
const REMEMBERED_HALF_LIVES = 4;

/** A policy over the entries of `index`. @param sketchWidth Power of two, about twice the entries the cache can hold. */
export function createCachePolicy(index: EntryIndex, sketchWidth: number): CachePolicy {
  const sketch = createAccessSketch(sketchWidth);
  const victims = createVictimPool(index);
  /** Hits since the entry's score was last written. */
  const noted = new Map<string, number>();
  let clock = 0;
  let accesses = 0;

  return {
    noteHit({ bytes, id }) {
      accesses++;
      sketch.add(bytes, clock);
      const count = noted.get(id);
      if (count !== undefined) noted.set(id, count + 1);
      else if (noted.size < NOTED_KEYS_MAX) noted.set(id, 1);
    },
    admits({ bytes }, cost, isFull) {
      accesses++;
      const before = sketch.estimate(bytes);
      const score = sketch.add(bytes, clock);
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
      for (const [id, count] of noted) {
        if (changed.length === CHANGES_PER_PERIOD_MAX) break;
        const key = keyOfId(id);
        const entry = index.entry(key);
        if (entry === undefined) {
          noted.delete(id);
          continue;
        }
        const score = addAccesses(entry.score, clock, count);
        if (score - entry.score < SCORE_TOLERANCE) continue;
        noted.delete(id);
        changed.push({ key, score, byteLength: entry.byteLength });
      }
      // Full of hits that do not matter yet: better to forget them than not to see new ones.
      if (noted.size >= NOTED_KEYS_MAX) noted.clear();
      return { clock, changed };
    },
  };
}
