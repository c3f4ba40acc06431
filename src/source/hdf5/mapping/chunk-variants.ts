import { ZpublishError } from "../../../errors.js";
import { type CooperativeTask, runCooperatively } from "../../../event-loop/cooperative-task.js";

/** Chunks between two looks at the clock. */
const CHUNKS_PER_STEP = 16_384;
/** Maximum number of filter masks besides the most frequent one: a variant is a byte. */
const MAX_VARIANTS = 255;

/** The filter masks of an array's chunks. */
export interface ChunkVariants {
  /** The mask of most chunks first. */
  readonly masks: readonly number[];
  /** Index in `masks` of each chunk; undefined if all have the first. */
  readonly variants: Uint8Array | undefined;
}

/**
 * Sorts chunks by the filters that they skipped.
 * @param offsets -1 for absent chunks, whose masks mean nothing.
 * @param masks Undefined if no filter of any chunk was skipped.
 * @throws ZpublishError `unsupported` if more than 256 masks occur
 */
export async function chunkVariants(
  offsets: Float64Array,
  masks: Uint32Array | undefined,
): Promise<ChunkVariants> {
  if (masks === undefined) return { masks: [0], variants: undefined };
  return await runCooperatively(variantSteps(offsets, masks));
}

function* variantSteps(offsets: Float64Array, masks: Uint32Array): CooperativeTask<ChunkVariants> {
  const counts = new Map<number, number>();
  for (let index = 0; index < masks.length; index++) {
    if (index % CHUNKS_PER_STEP === 0) yield;
    if (offsets[index] === -1) continue;
    const mask = masks[index] as number;
    counts.set(mask, (counts.get(mask) ?? 0) + 1);
    if (counts.size > MAX_VARIANTS + 1) {
      throw new ZpublishError(
        "unsupported",
        `expected at most ${MAX_VARIANTS + 1} filter masks, received more`,
      );
    }
  }
  const byCount = [...counts].sort((a, b) => b[1] - a[1]).map(([mask]) => mask);
  if (byCount.length <= 1) return { masks: [byCount[0] ?? 0], variants: undefined };
  const numberOf = new Map(byCount.map((mask, number) => [mask, number]));
  const variants = new Uint8Array(masks.length);
  for (let index = 0; index < masks.length; index++) {
    if (index % CHUNKS_PER_STEP === 0) yield;
    variants[index] = numberOf.get(masks[index] as number) ?? 0;
  }
  return { masks: byCount, variants };
}
