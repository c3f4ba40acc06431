import { elementCount } from "../model/chunk-grid.js";
import type { StoredArray } from "../source/source.js";
import {
  codecRule,
  completeCodec,
  decodeProblem,
  encodedByteLength,
  encodedItemSize,
  encodeProblem,
} from "./codec-rules.js";
import type { CodecSpec } from "./codec-spec.js";
import type { CodecStep } from "./encoding-plan.js";
import { plainValue } from "./plain-value.js";
import { refuse } from "./refuse.js";

/** Filters that write a chunk as its number of items, and each item with its length before it. */
const VARIABLE_LENGTH_FILTERS = ["vlen-utf8", "vlen-bytes"];

/**
 * The steps of a chain, innermost first, with the lengths between them.
 * @param chunkShape Elements per axis, each at least 1.
 * @param maxChunkBytes Bound of what has no known length.
 * @throws ZpublishError `unsupported`, naming the array, where a filter's items are not whole.
 */
export function createSteps(
  stored: StoredArray,
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
      refuseBrokenItems(stored, codec, step.decodedByteLength, byteLength);
    } else {
      byteLength = null;
      itemSize = 1;
    }
    return step;
  });
}

/** Chunks must be whole numbers of the items that a filter works on. */
function refuseBrokenItems(
  stored: StoredArray,
  codec: CodecSpec,
  decodedByteLength: number | null,
  byteLength: number | null,
): void {
  const isWhole = byteLength === null || Number.isInteger(byteLength);
  const { elementsize } = codec;
  const fits = codec.id !== "shuffle" || (decodedByteLength ?? 0) % Number(elementsize) === 0;
  if (isWhole && fits) return;
  refuse(
    stored,
    `${codec.id}: expected chunks of whole items, received ${decodedByteLength} bytes per chunk`,
  );
}

/**
 * The whole chain for a chunk that is nothing but fill. It need not have the stored options, only decode with them: any
 * inner codec of Blosc will do, and any level.
 * @throws ZpublishError `unsupported`, naming the array, where it cannot be encoded.
 */
export function fillSteps(
  stored: StoredArray,
  chain: readonly CodecSpec[],
  chunkShape: readonly number[],
  maxChunkBytes: number,
): CodecStep[] {
  const writable = chain.map(writableCodec);
  // A chunk of variable-length items is filled in the form that their filter gives them.
  const isVariable = VARIABLE_LENGTH_FILTERS.includes(chain[0]?.id ?? "") && stored.fill.item !== null;
  const done = stored.dataType.kind === "O" && isVariable ? 1 : 0;
  const problem = writable
    .slice(done)
    .map((codec) => encodeProblem(completeCodec(codec)))
    .find(Boolean);
  if (problem !== undefined || (stored.dataType.kind === "O" && !isVariable)) {
    const reason = problem ?? `items of ${stored.dataType.numpyName} have no fixed size`;
    refuse(stored, `absent chunks would have to be served filled, but ${reason}`);
  }
  return createSteps(stored, writable, chunkShape, maxChunkBytes).slice(done);
}

/** The codec without the options that nothing can be encoded with: the defaults stand for them. */
function writableCodec(codec: CodecSpec): CodecSpec {
  if (encodeProblem(completeCodec(codec)) === undefined) return codec;
  const rules = codecRule(codec.id)?.options ?? {};
  const known = Object.entries(codec).filter(
    ([key, value]) => rules[key]?.accepts(plainValue(value)) ?? true,
  );
  return Object.fromEntries(known) as CodecSpec;
}
