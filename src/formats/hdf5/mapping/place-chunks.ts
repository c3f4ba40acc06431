import { type CooperativeTask, runCooperatively } from "../../../event-loop/cooperative-task.js";
import { elementCount, gridShapeOf } from "../../../model/data-tree.js";
import type { ListedChunks } from "../../file-index.js";

/** Chunks between two looks at the clock. */
const CHUNKS_PER_STEP = 4_096;

/** Places of chunks, with the filters that each of them skipped. */
export interface PlacedChunks {
  readonly numbers?: Float64Array;
  readonly offsets: Float64Array;
  readonly byteLengths: Uint32Array;
  /** Undefined if no chunk skipped a filter. */
  readonly filterMasks?: Uint32Array;
}

/**
 * Numbers chunks in the grid of a longer array: a variable may have fewer steps along an unlimited dimension than others, and netCDF
 * fills the rest.
 */
export async function extendGrid<T extends PlacedChunks>(
  chunks: T,
  chunkShape: readonly number[],
  from: readonly number[],
  to: readonly number[],
): Promise<T> {
  const fromGrid = gridShapeOf(from, chunkShape);
  const toGrid = gridShapeOf(to, chunkShape);
  if (fromGrid.join() === toGrid.join()) return chunks;
  return { ...chunks, numbers: await runCooperatively(numberSteps(chunks, fromGrid, toGrid)) };
}

function* numberSteps(
  { numbers, offsets }: PlacedChunks,
  from: readonly number[],
  to: readonly number[],
): CooperativeTask<Float64Array> {
  const renumbered = new Float64Array(offsets.length);
  for (let index = 0; index < offsets.length; index++) {
    if (index % CHUNKS_PER_STEP === 0) yield;
    let rest = numbers?.[index] ?? index;
    let number = 0;
    let stride = 1;
    for (let axis = from.length - 1; axis >= 0; axis--) {
      const length = from[axis] as number;
      number += (rest % length) * stride;
      rest = Math.floor(rest / length);
      stride *= to[axis] as number;
    }
    renumbered[index] = number;
  }
  return renumbered;
}

/** True if a grid has a chunk that is not stored. */
export function hasAbsentChunks(
  { numbers, offsets }: Pick<ListedChunks, "numbers" | "offsets">,
  shape: readonly number[],
  chunkShape: readonly number[],
): boolean {
  const count = elementCount(gridShapeOf(shape, chunkShape));
  return (numbers !== undefined && offsets.length < count) || offsets.includes(-1);
}
