import { gridShapeOf } from "../../model/chunk-grid.js";
import type { StoredArray } from "../stored-array.js";
import type { PictureStep } from "./compute-step.js";
import { createEncodingPlan } from "./create-encoding-plan.js";
import type { EncodingPlan } from "./encoding-plan.js";
import { planId } from "./plan-id.js";

/**
 * Plans pictures of an array: its chunks are PNGs, one for each box of the array.
 * @param boxShape Elements per axis: 1 but for the two axes that the picture shows.
 * @throws ZpublishError `unsupported` if the array cannot be decoded
 */
export function createPicturePlan(
  stored: StoredArray,
  boxShape: readonly number[],
  compute: PictureStep,
): EncodingPlan {
  const asked = { chunkShape: boxShape, compressor: null, filters: null };
  const { id: _id, source, variants, ...plan } = createEncodingPlan(stored, asked).plan;
  const fields: Omit<EncodingPlan, "id" | "source"> = {
    ...plan,
    // Boxes are gathered even if they are the stored chunks.
    kind: "rechunk",
    served: Object.freeze({
      chunkShape: boxShape,
      gridShape: gridShapeOf(stored.shape, boxShape),
      axisOrder: stored.shape.map((_, axis) => axis),
    }),
    // A picture without values is a transparent one.
    absentIsAbsent: false,
    encode: [],
    encodeAll: [],
    ...(variants && { variants: { decode: variants.decode, encode: [] } }),
    compute,
  };
  return Object.freeze({ ...fields, id: planId(fields), source });
}
