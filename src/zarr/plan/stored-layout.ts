import { elementCount } from "../../model/data-tree.js";
import type { PieceLayout } from "../chunk-reader.js";
import type { CodecSpec } from "../codec-step.js";
import type { StoredArray } from "../stored-array.js";
import { createSteps, storedByteLengthOf } from "./codec-steps.js";
import { maxStoredByteLength } from "./max-stored-byte-length.js";

/** An array as it is stored, as far as its chunks are decoded. */
type DecodedArray = Omit<StoredArray, "chunks" | "v3">;

/** Decoding of an array's stored chunks, which arrays of the same structure share. */
export type StoredLayout = Omit<PieceLayout, "name" | "title" | "conversion" | "hasOwnFill">;

/** Bound of bytes whose length is not known beforehand. */
const MAX_CHUNK_BYTES = 2 ** 30;

/** By the array object: most parts of a dataset have the same one. */
const layouts = new WeakMap<DecodedArray, StoredLayout>();

/**
 * Returns the layout of an array's stored chunks.
 * @throws ZpublishError `unsupported`, naming the array, if a filter's items are not whole.
 */
export function storedLayoutOf(stored: DecodedArray): StoredLayout {
  const known = layouts.get(stored);
  if (known !== undefined) return known;
  const { dataType, axisOrder, codecs, fill } = stored;
  const { itemSize } = dataType;
  const chunkShape = stored.chunkShape.map((length) => Math.max(1, length));
  const stepsOf = (chain: readonly CodecSpec[]) => createSteps(stored, chain, chunkShape, MAX_CHUNK_BYTES);
  const steps = stepsOf(codecs);
  const decode = steps.toReversed();
  const variants = (stored.variants ?? []).map((chain) => stepsOf(chain).reverse());
  const longest = maxStoredByteLength({
    kind: "rechunk",
    storedByteLength: storedByteLengthOf(stored, steps, chunkShape),
    ...{ itemSize, decode, encode: [], stored: { chunkShape } },
    ...(variants.length > 0 && { variants: { decode: variants } }),
  });
  const layout: StoredLayout = Object.freeze({
    ...{ chunkShape, axisOrder, itemSize, decode, variants },
    // Raw chunks have no step that bounds them.
    maxStoredByteLength: longest ?? (decode.length === 0 ? elementCount(chunkShape) * itemSize : undefined),
    fillItem: fill.item,
  });
  layouts.set(stored, layout);
  return layout;
}
