import { ZpublishError } from "../errors.js";
import { elementCount } from "../model/chunk-grid.js";
import { decodeProblem } from "../zarr/codec-rules.js";
import type { CodecStep, EncodingPlan } from "../zarr/encoding-plan.js";
import type { Label } from "./unreadable-file.js";

/**
 * What an encoder adds to bytes that it cannot make shorter: Blosc 16 and what it has per block, deflate 5 for each 16 KiB,
 * lz4 one in 255. Nothing comes near twice the length, but where chunks are small, by which the slack is as well for what
 * some writers leave behind a compressed chunk: zeros up to a block, another member that is empty.
 */
const FACTOR = 2;
const SLACK_BYTES = 1024 * 1024;
/** What filters may make of an item: `delta` eight bytes of one. One that writes text does with less. */
const WIDENING = 8;

/**
 * The longest that a stored chunk of a plan can be, of bytes: what is longer is damaged, and may be as long as a file
 * system lets a hole in a file be. Undefined: nothing tells.
 * @param passed All stored codecs, innermost first, for a plan that passes chunks through: it has none itself.
 */
export function maxStoredByteLength(
  plan: EncodingPlan,
  passed: readonly CodecStep[] = [],
): number | undefined {
  const { kind, storedByteLength, decode, encode } = plan;
  if (storedByteLength !== null) return storedByteLength;
  if (kind === "passthrough") {
    // What a codec that is not known here makes of bytes, nobody decodes here: it may be of any length.
    const isKnown = passed.length > 0 && passed.every(({ codec }) => decodeProblem(codec) === undefined);
    return isKnown ? longestOf(plan, passed.at(-1)) : undefined;
  }
  // Where nothing is to be decoded, stored bytes are encoded as they are.
  const outermost = decode[0] ?? encode[0];
  return longestOf(plan, outermost, outermost && outermost.maxDecodedByteLength + SLACK_BYTES);
}

/** @param limit Where what the codec holds has no length that is known. */
function longestOf(
  { itemSize, stored }: EncodingPlan,
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
 * Refuses a stored chunk that is longer than it may be: to be asked before there is memory for it.
 * @param stamp What it has now, for whoever took one before.
 * @throws ZpublishError `corrupt-chunk`; details: `expected` at most, `received`, and `stamp`.
 */
export function refuseLonger(
  received: number,
  expected: number | undefined,
  stamp: string,
  label: Label,
): void {
  if (expected === undefined || received <= expected) return;
  throw new ZpublishError(
    "corrupt-chunk",
    `${label()}: expected at most ${expected} stored bytes, received ${received}`,
    { details: { expected, received, stamp } },
  );
}
