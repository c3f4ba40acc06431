import type { BigIntStats } from "node:fs";

/**
 * Kernels take the time of their last tick, 1 to 10 ms long, so two writes within one tick leave the same time. A file younger
 * than this is checked again later.
 */
const SETTLE_MS = 20;

/** Settle time if the clock has whole seconds (ext4 with small inodes, many network file systems) or every other one (FAT). */
const COARSE_SETTLE_MS = 2_000;

const NS_PER_MS = 1_000_000n;
const NS_PER_S = 1_000_000_000n;

/** Returns the version of a file: modification time in nanoseconds and byte length, both in base 36. */
export function versionOf(stat: BigIntStats): string {
  return `${stat.mtimeNs.toString(36)}.${stat.size.toString(36)}`;
}

/** Tells whether a file was not written between two calls of `stat`. */
export function isSameVersion(a: BigIntStats, b: BigIntStats): boolean {
  return a.mtimeNs === b.mtimeNs && a.size === b.size;
}

/** Returns the milliseconds until a file is so old that another write must change its time; 0 for times in the future. */
export function remainingSettleMs({ mtimeNs }: Pick<BigIntStats, "mtimeNs">): number {
  const age = Date.now() - Number(mtimeNs / NS_PER_MS);
  // On a finer clock, one time in a billion is a whole second.
  const settleMs = mtimeNs % NS_PER_S === 0n ? COARSE_SETTLE_MS : SETTLE_MS;
  return age < 0 || age >= settleMs ? 0 : settleMs - age;
}
