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

/** See {@link createAccessSketch}. */
export interface AccessSketch {
  /** Notes `count` (≥ 1) accesses and returns the new estimate. */
  add(key: Uint8Array, clock: number, count: number): number;
  /** The score of a key; too high where keys collide, never too low. */
  estimate(key: Uint8Array): number;
}

const ROWS = 4;

/**
 * Remembers in constant memory how wanted keys are that the cache does not hold: a count-min sketch whose cells are
 * access scores, so that ageing needs no pass over them.
 * @param width Cells per row, a power of two; memory is 32 bytes each.
 */
export function createAccessSketch(width: number): AccessSketch {
  const cells = new Float64Array(ROWS * width).fill(NEVER);
  const mask = width - 1;
  const at = new Uint32Array(ROWS);

  /** Keys are hashes: their own bytes are the row hashes. */
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
    add(key, clock, count) {
      const score = addAccesses(locate(key), clock, count);
      for (let row = 0; row < ROWS; row++) {
        if (cells[at[row]!]! < score) cells[at[row]!] = score;
      }
      return score;
    },
    estimate: locate,
  };
}
