import { decodeSteps } from "../../../src/codec/run-steps.js";
import { messageOf } from "../../../src/errors.js";
import type { CodecStep } from "../../../src/zarr/codec-step.js";

/** What is wrong with how a chunk decodes, refusals included; undefined where it gives the original. */
export async function decodingProblem(
  encoded: Uint8Array,
  step: CodecStep,
  original: Uint8Array,
  label: string,
): Promise<string | undefined> {
  try {
    const decoded = await decodeSteps(encoded, [step], label);
    if (Buffer.compare(decoded, original) === 0) return undefined;
    const place = decoded.findIndex((byte, index) => byte !== original[index]);
    return `${label}: another byte at ${place} of ${original.length}`;
  } catch (error) {
    return `refused: ${messageOf(error)}`;
  }
}
