import { ZpublishError } from "../../errors.js";
import { elementCount, gridShapeOf } from "../../model/chunk-grid.js";
import type { CodecStep } from "../codec-step.js";
import type { StoredArray } from "../stored-array.js";
import type { ComputeStep } from "./compute-step.js";
import { createEncodingPlan, type EncodingOptions } from "./create-encoding-plan.js";
import type { EncodingPlan } from "./encoding-plan.js";
import { growthOf } from "./growth-of.js";
import { planId } from "./plan-id.js";

/** Largest box that is gathered, in bytes: one array buffer, of which a worker has two. */
const MAX_BOX_BYTES = 2 ** 30;

/** Chunks that are computed from boxes of another array. */
export interface ComputeRequest {
  /** Path in messages. */
  readonly path: string;
  /** Elements per axis of a box. */
  readonly box: readonly number[];
  readonly compute: ComputeStep;
  /** Steps that encode what was computed. */
  readonly encode: readonly CodecStep[];
  /** Whether a box of absent chunks makes an absent chunk. Otherwise it is computed from fill values. */
  readonly absentIsAbsent: boolean;
}

/**
 * Plans chunks that are computed from boxes of an array, in C order.
 * @throws ZpublishError `unsupported`, naming the array, if it cannot be decoded, or a box is too large.
 */
export function createComputePlan(
  array: StoredArray,
  { path, box, compute, encode, absentIsAbsent }: ComputeRequest,
  options: EncodingOptions = {},
): EncodingPlan {
  const boxBytes = elementCount(box) * array.dataType.itemSize;
  const maxBytes = Math.min(options.maxChunkBytes ?? MAX_BOX_BYTES, MAX_BOX_BYTES);
  if (boxBytes > maxBytes) {
    throw new ZpublishError(
      "unsupported",
      `array '${path}': expected boxes of at most ${maxBytes} bytes, received (${box.join(", ")}), which is ${boxBytes}`,
    );
  }
  const asked = { chunkShape: box, compressor: null, filters: null };
  const { id: _id, source, ...read } = createEncodingPlan(array, asked, options).plan;
  const fields: Omit<EncodingPlan, "id" | "source"> = {
    ...read,
    // Also if the stored chunks are the boxes: their items are worked on.
    kind: "rechunk",
    path,
    absentIsAbsent,
    served: Object.freeze({
      chunkShape: box,
      gridShape: gridShapeOf(array.shape, box),
      axisOrder: array.shape.map((_, axis) => axis),
    }),
    encode,
    encodeAll: [],
    compute,
  };
  const id = planId(fields, options.encoderRevision, growthOf(source, fields)?.axis);
  return Object.freeze({ ...fields, id, source });
}
