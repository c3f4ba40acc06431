import { addAccesses, NEVER } from "./access-score.js";

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
