import type { CodecSpec } from "../codec-spec.js";
import type { StoredArray } from "../stored-array.js";
import { completeCodec, decodeProblem, encodeProblem } from "./codec-rules.js";
import { createSteps, writableChain } from "./codec-steps.js";
import type { VariantSteps } from "./encoding-plan.js";
import { unservable } from "./unservable.js";

/**
 * Creates the steps of stored chunks whose codecs differ. What is encoded of them has to decode with the served options, not to be
 * encoded with them, as for chunks of fill values.
 * @param variants As in `StoredArray`.
 * @param servedChain Served codecs; undefined if chunks are put together again, and encoded anyway.
 * @throws ZpublishError `unsupported`, naming the array, if such a chunk cannot be decoded or encoded.
 */
export function createVariantSteps(
  stored: StoredArray,
  variants: readonly (readonly CodecSpec[])[],
  storedShape: readonly number[],
  servedChain: readonly CodecSpec[] | undefined,
  maxChunkBytes: number,
): VariantSteps {
  const { dataType } = stored;
  if (dataType.kind === "O") throw differing(stored, `items of ${dataType.numpyName} have no fixed size`);
  const encoded = writableChain(servedChain ?? []);
  const problems = [
    ...variants.flat().map((codec) => decodeProblem(completeCodec(codec))),
    ...encoded.map((codec) => encodeProblem(completeCodec(codec))),
  ];
  const problem = problems.find((each) => each !== undefined);
  if (problem !== undefined) throw differing(stored, problem);
  return Object.freeze({
    decode: variants.map((codecs) => createSteps(stored, codecs, storedShape, maxChunkBytes).reverse()),
    encode: createSteps(stored, encoded, storedShape, maxChunkBytes),
  });
}

function differing(stored: StoredArray, problem: string): Error {
  const reason =
    stored.chunks.kind === "parts"
      ? "some of its chunks would have to be put together from those of several parts"
      : "some of its chunks have other codecs and would have to be decoded";
  return unservable(stored, `${reason}, but ${problem}`);
}
