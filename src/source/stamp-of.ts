import type { BigIntStats } from "node:fs";

/** The stamp of a file: modification time in nanoseconds and byte length, both in base 36. */
export function stampOf(stat: BigIntStats): string {
  return `${stat.mtimeNs.toString(36)}.${stat.size.toString(36)}`;
}
