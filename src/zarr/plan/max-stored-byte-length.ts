import { ZpublishError } from "../../errors.js";
import { elementCount } from "../../model/data-tree.js";
import type { CodecStep } from "../codec-step.js";
import { decodeProblem } from "./codec-rules.js";
import type { EncodingPlan } from "./encoding-plan.js";

/**
 * Growth of bytes that an encoder cannot make shorter. Blosc adds 16 and some per block, deflate 5 for each 16 KiB, lz4
 * one in 255: only small chunks come near twice their length. The slack covers these, and bytes that some writers leave after
 * a compressed chunk: zeros up to a block, or another member that is empty.
 */
const FACTOR = 2;
const SLACK_BYTES = 1024 * 1024;
/** Growth of an item by filters: `delta` may make eight bytes of one. Filters that write text need less. */
const WIDENING = 8;

/** The fields of a plan that say how long its stored chunks may be. */
interface StoredLengths
  extends Pick<EncodingPlan, "kind" | "storedByteLength" | "itemSize" | "decode" | "encode"> {
  readonly stored: Pick<EncodingPlan["stored"], "chunkShape">;
  readonly variants?: Pick<NonNullable<EncodingPlan["variants"]>, "decode">;
}

/**
 * Bounds the byte length of a plan's stored chunks; undefined if there is no bound. A longer chunk is damaged, and may
 * be as long as the largest hole that a file system allows.
 * @param passed All stored codecs, innermost first, if the plan passes chunks through: it has no steps itself.
 */
export function maxStoredByteLength(
  plan: StoredLengths,
  passed: readonly CodecStep[] = [],
): number | undefined {
  const own = maxOfMost(plan, passed);
  if (own === undefined || plan.variants === undefined) return own;
  const raw = plan.itemSize * elementCount(plan.stored.chunkShape);
  return Math.max(own, ...plan.variants.decode.map(([outermost]) => longestOf(plan, outermost, raw) ?? raw));
}

/** Bounds the byte length of chunks with the array's own codecs. */
function maxOfMost(plan: StoredLengths, passed: readonly CodecStep[]): number | undefined {
  const { kind, storedByteLength, decode, encode } = plan;
  if (storedByteLength !== null) return storedByteLength;
  if (kind === "passthrough") {
    // The output of an unknown codec may be of any length. It is not decoded here.
    const isKnown = passed.length > 0 && passed.every(({ codec }) => decodeProblem(codec) === undefined);
    return isKnown ? longestOf(plan, passed.at(-1)) : undefined;
  }
  // If nothing is decoded, stored bytes are encoded as they are.
  const outermost = decode[0] ?? encode[0];
  return longestOf(plan, outermost, outermost && outermost.maxDecodedByteLength + SLACK_BYTES);
}

/** @param limit Bound if the length of what the codec holds is not known. */
function longestOf(
  { itemSize, stored }: StoredLengths,
  outermost: CodecStep | undefined,
  limit?: number,
): number | undefined {
  const held = outermost?.decodedByteLength ?? null;
  if (held !== null) return soundLength(held);
  if (itemSize === 0) return limit;
  const longest = soundLength(WIDENING * itemSize * elementCount(stored.chunkShape));
  return limit === undefined ? longest : Math.min(longest, limit);
}

function soundLength(held: number): number {
  return FACTOR * held + SLACK_BYTES;
}

/**
 * Asserts that a stored chunk is not longer than it may be, before memory is allocated for it.
 * @throws ZpublishError `corrupt-chunk`; details: `expected` at most, `received`.
 */
export function assertStoredLength(
  received: number,
  expected: number | undefined,
  label: () => string,
): void {
  if (expected === undefined || received <= expected) return;
  throw new ZpublishError(
    "corrupt-chunk",
    `${label()}: expected at most ${expected} stored bytes, received ${received}`,
    { details: { expected, received } },
  );
}
