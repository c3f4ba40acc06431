import type { ComputeStep, EncodingPlan } from "../zarr/plan/encoding-plan.js";
import { coarsen } from "./coarsen.js";
import type { KernelMemory } from "./kernel/kernel-memory.js";
import { drawLine } from "./line-picture.js";
import { drawPicture } from "./picture.js";

/**
 * Runs the compute step of a plan on a gathered box.
 * @param items The whole box in C order, padded with the fill item outside of the array.
 * @param chunkCoords Position of the box in the grid of `plan.served`.
 * @param memory For the result.
 * @returns Bytes that `plan.encode` begins with.
 * @throws ZpublishError `codec-failed`
 */
export function computeItems(
  items: Uint8Array,
  plan: EncodingPlan,
  step: ComputeStep,
  chunkCoords: readonly number[],
  memory: KernelMemory,
): Uint8Array {
  switch (step.kind) {
    case "coarsen":
      return coarsen(items, plan, step, chunkCoords, memory);
    case "picture":
      return drawPicture(items, plan, step, chunkCoords);
    case "line":
      return drawLine(items, plan, step, chunkCoords);
  }
}
