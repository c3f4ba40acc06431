import { createHash } from "node:crypto";
import type { EncodingPlan } from "./encoding-plan.js";

/**
 * Lists the coordinates of the stored chunks that a served chunk is made of, in C order.
 * @param chunkCoords Coordinates in the served grid.
 */
export function storedChunksOf(plan: EncodingPlan, chunkCoords: readonly number[]): number[][] {
  if (plan.kind !== "rechunk") return [[...chunkCoords]];
  let coordinates: number[][] = [[]];
  plan.shape.forEach((length, axis) => {
    const served = plan.served.chunkShape[axis] as number;
    const stored = plan.stored.chunkShape[axis] as number;
    const begin = (chunkCoords[axis] as number) * served;
    const end = Math.min(begin + served, length);
    const next: number[][] = [];
    for (const prefix of coordinates) {
      for (let index = Math.floor(begin / stored); index * stored < end; index++)
        next.push([...prefix, index]);
    }
    coordinates = next;
  });
  return coordinates;
}

/**
 * Combines the versions of the stored chunks that a served chunk is made of: a hash, or the version of a single chunk.
 * @param versions In the order of the chunks; undefined for an absent one.
 * @returns Text of `[0-9a-z.]`, at most 32 characters unless a single version is longer.
 */
export function combineVersions(versions: readonly (string | undefined)[]): string {
  if (versions.length === 1) return versions[0] ?? "absent";
  const hash = createHash("sha256");
  for (const version of versions) hash.update(version === undefined ? "-," : `${version},`);
  return hash.digest("hex").slice(0, 20);
}
