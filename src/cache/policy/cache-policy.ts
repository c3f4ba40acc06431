import { type CacheKey, keyOfId } from "../cache-key.js";
import { addAccesses, clockStep, createAccessSketch } from "./access-sketch.js";
import { type CacheEntry, createVictimPool, type EntryIndex } from "./victim-pool.js";

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
/** Each takes about a microsecond of the event loop. */
const LOOKS_PER_PERIOD_MAX = 4_096;
/** A score is rewritten when it is off by this much (log2 of accesses): an often used entry is not written each time. */
const SCORE_TOLERANCE = 0.25;
/** How much more wanted than the least wanted entry a chunk must be: a chunk asked for once does not displace another. */
const ADMISSION_MARGIN = 0.5;

/** How long a first request is remembered, in units of the clock: then the next one is a first one again. */
const REMEMBERED_HALF_LIVES = 4;

/** Hits of one entry. */
interface HitNote {
  /** Those that the sketch has seen: all until the last period. */
  seen: number;
  unseen: number;
}

/** A policy over the entries of `index`. @param sketchWidth Power of two, about twice the entries the cache can hold. */
export function createCachePolicy(index: EntryIndex, sketchWidth: number): CachePolicy {
  const sketch = createAccessSketch(sketchWidth);
  const victims = createVictimPool(index);
  /** Hits since the entry's score was last written. */
  const noted = new Map<string, HitNote>();
  let clock = 0;
  let accesses = 0;

  return {
    noteHit({ id }) {
      accesses++;
      const note = noted.get(id);
      if (note !== undefined) note.unseen++;
      else if (noted.size < NOTED_KEYS_MAX) noted.set(id, { seen: 0, unseen: 1 });
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
      let looks = Math.min(noted.size, LOOKS_PER_PERIOD_MAX);
      for (const [id, note] of noted) {
        if (looks-- === 0 || changed.length === CHANGES_PER_PERIOD_MAX) break;
        const key = keyOfId(id);
        if (note.unseen > 0) sketch.add(key, clock, note.unseen);
        note.seen += note.unseen;
        note.unseen = 0;
        const entry = index.entry(key);
        if (entry === undefined) {
          noted.delete(id);
          continue;
        }
        const score = addAccesses(entry.score, clock, note.seen);
        noted.delete(id);
        if (score - entry.score < SCORE_TOLERANCE) {
          // To the end, so that every note is looked at in its turn.
          noted.set(id, note);
          continue;
        }
        changed.push({ key, score, byteLength: entry.byteLength });
      }
      // Full of hits that do not matter yet: better to forget them than not to see new ones.
      if (noted.size >= NOTED_KEYS_MAX) noted.clear();
      return { clock, changed };
    },
  };
}
