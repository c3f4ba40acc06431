import type { EncodingPlan } from "./encoding-plan.js";

/**
 * Coordinates of the stored chunks that a served chunk is made of, in C order: one where the grids are the same.
 * @param chunkCoords In the served grid.
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
