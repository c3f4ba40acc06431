/**
 * The access score of a chunk is one number for frequency and recency: log2 of its accesses, each weighted with
 * 2^(clock at the access). An access counts half as much as one that is a clock unit later. Two scores compare without
 * knowing the clock, so they need no updates.
 *
 * The clock counts accesses, not seconds ({@link clockStep}), so that a cache behaves alike on a busy and an idle server.
 */

/** Score of a chunk without accesses. */
export const NEVER = Number.NEGATIVE_INFINITY;

/** Returns the score after `count` (≥ 1) more accesses at `clock`. */
export function addAccesses(score: number, clock: number, count: number): number {
  const added = count === 1 ? clock : clock + Math.log2(count);
  const high = Math.max(score, added);
  return high + Math.log2(1 + 2 ** (Math.min(score, added) - high));
}

/** Accesses per entry of the cache after which an access counts half. */
const HALF_LIFE_IN_ACCESSES_PER_ENTRY = 6;

/** Returns by how much `accesses` accesses advance the clock of a cache of `entries` entries. */
export function clockStep(accesses: number, entries: number): number {
  return accesses / (HALF_LIFE_IN_ACCESSES_PER_ENTRY * Math.max(entries, 64));
}

/** A count-min sketch of access scores. */
export interface AccessSketch {
  /** Adds `count` (≥ 1) accesses, and returns the new estimate. */
  add(key: Uint8Array, clock: number, count: number): number;
  /** Estimates the score of a key: too high if keys collide, never too low. */
  estimate(key: Uint8Array): number;
}

const ROWS = 4;

/**
 * Creates a sketch, which holds in constant memory the scores of keys that are not cached. Its cells are access scores, so
 * ageing needs no pass over them.
 * @param width Cells per row, a power of two; a column takes 32 bytes.
 */
export function createAccessSketch(width: number): AccessSketch {
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
