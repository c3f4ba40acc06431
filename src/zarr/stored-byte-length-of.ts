import { elementCount } from "../model/chunk-grid.js";
import type { StoredArray } from "../source/source.js";
import { decodeProblem, encodedByteLength } from "./codec-rules.js";
import type { CodecStep } from "./encoding-plan.js";

/**
 * Bytes of every stored chunk; null where a codec's output has no length that is known beforehand.
 * @param steps Of the stored codecs, innermost first.
 * @param chunkShape Of the stored chunks, elements per axis.
 */
export function storedByteLengthOf(
  { dataType }: StoredArray,
  steps: readonly CodecStep[],
  chunkShape: readonly number[],
): number | null {
  const outermost = steps.at(-1);
  if (outermost === undefined) {
    return dataType.kind === "O" ? null : elementCount(chunkShape) * dataType.itemSize;
  }
  const { codec, decodedByteLength } = outermost;
  if (decodedByteLength === null || decodeProblem(codec) !== undefined) return null;
  return encodedByteLength(codec, decodedByteLength);
}
