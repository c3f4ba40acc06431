import type { Test } from "tap";
import { createRandom } from "../../bench/random.js";

/** Effort of this run: 0.25 in the long ring, a tenth elsewhere, unless `ZPUBLISH_TEST_EFFORT` says otherwise. */
const EFFORT = Number(process.env.ZPUBLISH_TEST_EFFORT ?? 0.1);

/** Seed of what a run chooses at random: another one each time, unless `ZPUBLISH_TEST_SEED` names it. */
const SEED = Number(process.env.ZPUBLISH_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));
const random = createRandom(SEED);

/** Scales how often something is tried. @param count With effort 1. @returns At least 1. */
export function effort(count: number): number {
  return Math.max(1, Math.round(count * EFFORT));
}

/**
 * Chooses cases at random, all with an effort of 1, and prints the seed that chooses them again.
 * @param factor By how much more are chosen than the effort says: with 2, half of them in the long ring.
 * @returns Those chosen, in their order.
 */
export function choose<T>(t: Test, all: readonly T[], factor = 1): T[] {
  const count = Math.min(all.length, effort(factor * all.length));
  if (count === all.length) return [...all];
  const places = all.map((_, place) => ({ place, turn: random() }));
  const chosen = new Set(
    places
      .sort((a, b) => a.turn - b.turn)
      .slice(0, count)
      .map(({ place }) => place),
  );
  t.comment(`${t.name}: ${count} of ${all.length} cases, ZPUBLISH_TEST_SEED=${SEED}`);
  return all.filter((_, place) => chosen.has(place));
}
