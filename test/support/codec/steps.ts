import type { Test } from "tap";
import { decodeSteps } from "../../../src/codec/run-steps.js";
import { messageOf } from "../../../src/errors.js";
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

/** A broken codec fails in thousands of cases at once. */
const MAX_SHOWN = 20;

/** One assertion about many cases: none failed, and there were some. The first failures are shown. */
export function reportFailures(t: Test, failures: readonly string[], count: number): void {
  for (const failure of failures.slice(0, MAX_SHOWN)) t.comment(failure);
  t.equal(failures.length, 0, `${count} cases, ${failures.length} wrong`);
  t.ok(count > 0, "there were cases");
}
