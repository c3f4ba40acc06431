import type { Hdf5ChunkedLayout } from "../hdf5-model.js";
import { damaged } from "./index-blocks.js";

/** Shape of a dataset, of its chunks, and what can be said of all of them. */
export interface ChunkGeometry {
  readonly shape: readonly number[];
  readonly chunkShape: readonly number[];
  /** Chunks per axis of the current shape. */
  readonly grid: readonly number[];
  /** Chunks per axis of the maximum shape; Infinity along axes without limit. */
  readonly maxGrid: readonly number[];
  /** Bytes of a chunk before it is filtered. */
  readonly chunkByteLength: number;
  /** Number of filters in the pipeline. */
  readonly filterCount: number;
  readonly edgesAreUnfiltered: boolean;
}

/** Most axes of a dataset (`H5S_MAX_RANK`). */
const MAX_RANK = 32;

/** Derives the geometry of a chunked dataset. @throws ZpublishError `invalid-metadata` if its parts contradict each other. */
export function chunkGeometry(
  { chunkShape, itemSize, edgesAreUnfiltered }: Hdf5ChunkedLayout,
  shape: readonly number[],
  maxShape: readonly (number | null)[],
  filterCount: number,
): ChunkGeometry {
  const rank = shape.length;
  if (rank < 1 || rank > MAX_RANK || chunkShape.length !== rank || maxShape.length !== rank) {
    throw damaged(
      `expected from 1 to ${MAX_RANK} axes of shape, maximum shape and chunks, received ${rank}, ${maxShape.length} and ${chunkShape.length}`,
    );
  }
  if (filterCount > 32) throw damaged(`expected at most 32 filters, received ${filterCount}`);
  for (const length of chunkShape) {
    if (!(length >= 1))
      throw damaged(`expected chunks of at least one item per axis, received ${chunkShape.join(" x ")}`);
  }
  const perAxis = (lengths: readonly (number | null)[]): number[] =>
    lengths.map((length, axis) => (length === null ? Infinity : Math.ceil(length / chunkShape[axis]!)));
  const grid = perAxis(shape);
  const chunkByteLength = chunkShape.reduce((product, length) => product * length, itemSize);
  if (!(chunkByteLength >= 1 && chunkByteLength < 2 ** 32)) {
    throw damaged(`expected chunks of less than 4 GiB, received ${chunkByteLength} bytes`);
  }
  const count = grid.reduce((product, length) => product * length, 1);
  if (!(count <= Number.MAX_SAFE_INTEGER)) {
    throw damaged(`expected a grid of less than 2^53 chunks, received ${grid.join(" x ")}`);
  }
  const maxGrid = perAxis(maxShape);
  for (const [axis, length] of grid.entries()) {
    if (length <= maxGrid[axis]!) continue;
    throw damaged(
      `expected a maximum shape no smaller than ${shape.join(" x ")}, received ${maxShape.join(" x ")}`,
    );
  }
  return { shape, chunkShape, grid, maxGrid, chunkByteLength, filterCount, edgesAreUnfiltered };
}

/** The order in which fixed and extensible arrays number the chunks of the maximum shape. */
export interface SlotOrder {
  /** Number of slots up to the last one of the current shape; the rest belongs to no chunk. */
  readonly usedSlots: number;
  /** Returns the slot of a position in the grid. */
  slotOf(coords: ArrayLike<number>): number;
  /** Puts the position of a slot in the grid into `coords`. @returns False if it is outside of the current shape. */
  locate(slot: number, coords: Float64Array): boolean;
}

/** Creates the order of slots of a grid that has chunks. @param firstAxis Axis that varies slowest; the others follow in their order. */
export function createSlotOrder({ grid, maxGrid }: ChunkGeometry, firstAxis: number): SlotOrder {
  const axes = [firstAxis, ...grid.keys()].filter((axis, i) => i === 0 || axis !== firstAxis);
  const slotOf = (coords: ArrayLike<number>): number =>
    axes.reduce((slot, axis, i) => (i === 0 ? 0 : slot * maxGrid[axis]!) + coords[axis]!, 0);
  const usedSlots = slotOf(grid.map((length) => length - 1)) + 1;
  if (!(usedSlots <= Number.MAX_SAFE_INTEGER)) {
    throw damaged(`expected less than 2^53 slots, received ${usedSlots}`);
  }
  return {
    usedSlots,
    slotOf,
    locate(slot, coords) {
      let rest = slot;
      for (let i = axes.length - 1; i > 0; i--) {
        const axis = axes[i]!;
        const length = maxGrid[axis]!;
        const above = Math.floor(rest / length);
        coords[axis] = rest - above * length;
        if (coords[axis]! >= grid[axis]!) return false;
        rest = above;
      }
      coords[firstAxis] = rest;
      return rest < grid[firstAxis]!;
    },
  };
}
