import type { BigIntStats } from "node:fs";

/**
 * A kernel stamps files with the time of its last tick, 1 to 10 ms long: two writes within one leave the same time.
 * A file younger than this is looked at again later.
 */
const settleMs = 20;

/** Milliseconds until a file is old enough that another write must change its time; 0 for times in the future. */
export function remainingSettleMs(stat: BigIntStats): number {
  const age = Date.now() - Number(stat.mtimeNs / 1_000_000n);
  return age < 0 || age >= settleMs ? 0 : settleMs - age;
}
