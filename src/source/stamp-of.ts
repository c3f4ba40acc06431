import { createHash } from "node:crypto";
import type { BigIntStats } from "node:fs";

/** The stamp of a file: modification time in nanoseconds and byte length, both in base 36. */
export function stampOf(stat: BigIntStats): string {
  return `${stat.mtimeNs.toString(36)}.${stat.size.toString(36)}`;
}

/**
 * One stamp for all stored chunks that a served chunk is made of: the stamp itself of a single one, a hash of several.
 * @param stamps In the order of the chunks; undefined where one is absent.
 * @returns Text of `[0-9a-z.]`, at most 32 characters for stamps that {@link stampOf} made.
 */
export function combineStamps(stamps: readonly (string | undefined)[]): string {
  if (stamps.length === 1) return stamps[0] ?? "absent";
  const hash = createHash("sha256");
  for (const stamp of stamps) hash.update(stamp === undefined ? "-," : `${stamp},`);
  return hash.digest("hex").slice(0, 20);
}
