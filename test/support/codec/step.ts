import type { CodecSpec, CodecStep } from "../../../src/zarr/codec-step.js";
import { completeCodec } from "../../../src/zarr/plan/codec-rules.js";

/** A step as a plan would have it. */
export function stepOf(codec: CodecSpec, decodedByteLength: number | null, itemSize = 1): CodecStep {
  return {
    codec: completeCodec(codec),
    decodedByteLength,
    maxDecodedByteLength: decodedByteLength ?? 2 ** 30,
    itemSize,
  };
}
