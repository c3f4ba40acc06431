import type { BigIntStats } from "node:fs";

/**
 * A kernel stamps files with the time of its last tick, 1 to 10 ms long: two writes within one leave the same time.
 * A file younger than this is looked at again later.
 */
const SETTLE_MS = 20;

/** The same of file systems whose clock knows whole seconds (ext4 with small inodes, many over a network) or every other (FAT). */
const COARSE_SETTLE_MS = 2_000;

const NS_PER_MS = 1_000_000n;
const NS_PER_S = 1_000_000_000n;

/** Milliseconds until a file is old enough that another write must change its time; 0 for times in the future. */
export function remainingSettleMs({ mtimeNs }: Pick<BigIntStats, "mtimeNs">): number {
  const age = Date.now() - Number(mtimeNs / NS_PER_MS);
  // Of a finer clock, one time in a billion is a whole second.
  const settleMs = mtimeNs % NS_PER_S === 0n ? COARSE_SETTLE_MS : SETTLE_MS;
  return age < 0 || age >= settleMs ? 0 : settleMs - age;
}
