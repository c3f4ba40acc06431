import type { ComputeStep } from "../zarr/plan/compute-step.js";
import type { EncodingPlan } from "../zarr/plan/encoding-plan.js";
import { coarsen } from "./coarsen.js";
import { drawPicture } from "./picture.js";

/**
 * Runs the compute step of a plan on a gathered box.
 * @param items The whole box in C order, padded with the fill item outside of the array.
 * @param chunkCoords Position of the box in the grid of `plan.served`.
 * @returns Bytes that `plan.encode` begins with.
 * @throws ZpublishError `codec-failed`
 */
export function computeItems(
  items: Uint8Array,
  plan: EncodingPlan,
  step: ComputeStep,
  chunkCoords: readonly number[],
): Uint8Array {
  switch (step.kind) {
    case "coarsen":
      return coarsen(items, plan, step, chunkCoords);
    case "picture":
      return drawPicture(items, plan, step, chunkCoords);
  }
}
