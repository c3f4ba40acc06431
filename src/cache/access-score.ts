/**
 * How wanted a chunk is, as one number that needs no upkeep: log2 of its accesses, each weighted with
 * 2^(clock when it happened). An access thus counts half as much as one a clock unit later, frequency and recency in
 * one, and two scores compare without knowing what time it is.
 *
 * The clock counts accesses, not seconds ({@link clockStep}), so a cache behaves alike on a busy and an idle server.
 */

/** Score of what was never asked for. */
export const NEVER = Number.NEGATIVE_INFINITY;

/** The score after `count` (≥ 1) more accesses at `clock`. */
export function addAccesses(score: number, clock: number, count: number): number {
  const added = count === 1 ? clock : clock + Math.log2(count);
  const high = Math.max(score, added);
  return high + Math.log2(1 + 2 ** (Math.min(score, added) - high));
}

/** Accesses per entry of the cache after which an access counts half. */
const HALF_LIFE_IN_ACCESSES_PER_ENTRY = 6;

/** How far `accesses` accesses move the clock of a cache of `entries` entries. */
export function clockStep(accesses: number, entries: number): number {
  return accesses / (HALF_LIFE_IN_ACCESSES_PER_ENTRY * Math.max(entries, 64));
}
