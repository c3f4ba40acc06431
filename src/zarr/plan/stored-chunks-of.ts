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
 * Combines the stamps of the stored chunks that a served chunk is made of: a hash, or the stamp of a single chunk.
 * @param stamps In the order of the chunks; undefined for an absent one.
 * @returns Text of `[0-9a-z.]`, at most 32 characters unless a single stamp is longer.
 */
export function combineStamps(stamps: readonly (string | undefined)[]): string {
  if (stamps.length === 1) return stamps[0] ?? "absent";
  const hash = createHash("sha256");
  for (const stamp of stamps) hash.update(stamp === undefined ? "-," : `${stamp},`);
  return hash.digest("hex").slice(0, 20);
}
