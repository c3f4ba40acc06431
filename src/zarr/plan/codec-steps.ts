import { elementCount } from "../../model/chunk-grid.js";
import type { CodecSpec } from "../codec-spec.js";
import type { CodecStep } from "../codec-step.js";
import type { StoredArray } from "../stored-array.js";
import {
  codecRule,
  completeCodec,
  decodeProblem,
  encodedByteLength,
  encodedItemSize,
  encodeProblem,
} from "./codec-rules.js";
import { plainValue } from "./plain-value.js";
import { encodedCodec } from "./served-codecs.js";
import { unservable } from "./unservable.js";

/** Filters that write a chunk as its number of items, then each item with its length before it. */
const VARIABLE_LENGTH_FILTERS = ["vlen-utf8", "vlen-bytes"];

/**
 * Creates the steps of a chain, innermost first, with the lengths between them.
 * @param chunkShape Elements per axis, each at least 1.
 * @param maxChunkBytes Limit for bytes whose length is not known beforehand.
 * @throws ZpublishError `unsupported`, naming the array, if a filter's items are not whole.
 */
export function createSteps(
  stored: Pick<StoredArray, "dataType" | "path">,
  chain: readonly CodecSpec[],
  chunkShape: readonly number[],
  maxChunkBytes: number,
): CodecStep[] {
  const { kind } = stored.dataType;
  let { itemSize } = stored.dataType;
  let byteLength: number | null = kind === "O" ? null : elementCount(chunkShape) * itemSize;
  itemSize = Math.max(1, itemSize);
  return chain.map((spec) => {
    const codec = completeCodec(spec);
    const step: CodecStep = Object.freeze({
      codec,
      decodedByteLength: byteLength,
      maxDecodedByteLength: byteLength ?? maxChunkBytes,
      itemSize,
    });
    if (byteLength !== null && decodeProblem(codec) === undefined) {
      byteLength = encodedByteLength(codec, byteLength);
      itemSize = encodedItemSize(codec, itemSize);
      assertWholeItems(stored, codec, step.decodedByteLength, byteLength);
    } else {
      byteLength = null;
      itemSize = 1;
    }
    return step;
  });
}

/** Asserts that a chunk is a whole number of the items that a filter works on. */
function assertWholeItems(
  stored: Pick<StoredArray, "path">,
  codec: CodecSpec,
  decodedByteLength: number | null,
  byteLength: number | null,
): void {
  const isWhole = byteLength === null || Number.isInteger(byteLength);
  const { elementsize } = codec;
  const fits = codec.id !== "shuffle" || (decodedByteLength ?? 0) % Number(elementsize) === 0;
  if (isWhole && fits) return;
  throw unservable(
    stored,
    `${codec.id}: expected chunks of whole items, received ${decodedByteLength} bytes per chunk`,
  );
}

/**
 * Computes the byte length of every stored chunk; null if the outermost codec's output has no length known beforehand.
 * @param steps Those of the stored codecs, innermost first.
 * @param chunkShape Elements per axis of a stored chunk.
 */
export function storedByteLengthOf(
  { dataType }: Pick<StoredArray, "dataType">,
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

/**
 * Creates the steps that encode a chunk of fill values. It has to decode with the stored options, not to be encoded with
 * them: any inner codec of Blosc will do, and any level.
 * @throws ZpublishError `unsupported`, naming the array, if such a chunk cannot be encoded.
 */
export function fillSteps(
  stored: StoredArray,
  chain: readonly CodecSpec[],
  chunkShape: readonly number[],
  maxChunkBytes: number,
): CodecStep[] {
  const writable = writableChain(chain);
  // A chunk of variable-length items is filled with encoded ones, so that their filter is done already.
  const isVariable = VARIABLE_LENGTH_FILTERS.includes(chain[0]?.id ?? "") && stored.fill.item !== null;
  const done = stored.dataType.kind === "O" && isVariable ? 1 : 0;
  const problem = writable
    .slice(done)
    .map((codec) => encodeProblem(completeCodec(codec)))
    .find(Boolean);
  if (problem !== undefined || (stored.dataType.kind === "O" && !isVariable)) {
    const reason = problem ?? `items of ${stored.dataType.numpyName} have no fixed size`;
    throw unservable(stored, `absent chunks would have to be served filled, but ${reason}`);
  }
  return createSteps(stored, writable, chunkShape, maxChunkBytes).slice(done);
}

/** Returns a chain that can be encoded, and decodes with the options of another one. */
export function writableChain(chain: readonly CodecSpec[]): CodecSpec[] {
  return chain.map(writableCodec);
}

/** Returns a codec with defaults in place of the options that cannot be encoded. */
function writableCodec(spec: CodecSpec): CodecSpec {
  const codec = encodedCodec(spec);
  if (encodeProblem(completeCodec(codec)) === undefined) return codec;
  const rules = codecRule(codec.id)?.options ?? {};
  const known = Object.entries(codec).filter(
    ([key, value]) => rules[key]?.accepts(plainValue(value)) ?? true,
  );
  return Object.fromEntries(known) as CodecSpec;
}
