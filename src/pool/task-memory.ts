import { totalmem } from "node:os";
import { elementCount } from "../model/chunk-grid.js";
import type { CodecStep, EncodingPlan } from "../zarr/encoding-plan.js";

/** Of an item without a fixed size. */
const GUESSED_ITEM_BYTES = 64;
/** Codecs that copy what they work on into a heap of their own, and out of it. */
const WITH_HEAP: ReadonlySet<string> = new Set(["zstd"]);

const estimates = new WeakMap<EncodingPlan, number>();

/**
 * What making one chunk may take in memory, besides what a worker has anyway: stored bytes that do not compress, what each
 * codec makes of the one before (none of it is given back before the end), and the copy that goes out. Of items without
 * a fixed size a guess.
 */
export function memoryOfTask(plan: EncodingPlan): number {
  const known = estimates.get(plan);
  if (known !== undefined) return known;
  const itemBytes = plan.itemSize || GUESSED_ITEM_BYTES;
  const storedBytes = elementCount(plan.stored.chunkShape) * itemBytes;
  const servedBytes = elementCount(plan.served.chunkShape) * itemBytes;
  const isViewed = plan.source.kind === "memory";
  const isRechunk = plan.kind === "rechunk";
  // What is decoded to be taken apart is kept for the neighbours.
  const ofStored = (isViewed ? 0 : 1) + copiesOf(plan.decode) + (isRechunk && plan.decode.length > 0 ? 1 : 0);
  const ofServed = (isRechunk ? 1 : 0) + copiesOf(plan.encode) + 1;
  const estimate = storedBytes * ofStored + servedBytes * ofServed;
  estimates.set(plan, estimate);
  return estimate;
}

function copiesOf(steps: readonly CodecStep[]): number {
  return steps.reduce((copies, { codec }) => copies + (WITH_HEAP.has(codec.id) ? 3 : 1), 0);
}

/**
 * Memory for all chunks that are made at a time: half of what the machine has, or this process's control group.
 * @param processes That share it.
 */
export function defaultMemoryBudget(processes = 1): number {
  // 0: no such limit is known; without one it is a number beyond all memory.
  const constrained = process.constrainedMemory?.() ?? 0;
  const total = constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
  return Math.floor(total / 2 / processes);
}
