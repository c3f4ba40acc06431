import { type CooperativeTask, runCooperatively } from "../../../event-loop/cooperative-task.js";
import type { ChunkGeometry } from "./chunk-geometry.js";
import { damaged } from "./index-blocks.js";
import { sortedOrder } from "./sorted-order.js";

/** Most chunks of a dataset: their places take some 400 MB. */
const MAX_CHUNKS = 2 ** 24;
/** Chunks that are moved between two looks at the clock. */
const CHUNKS_PER_STEP = 16_384;

/** The stored chunks of a dataset. */
export interface Hdf5Chunks {
  /** As in `ListedChunks`: numbers in the grid of the current shape, ascending; undefined if all chunks are listed. */
  readonly numbers?: Float64Array;
  /** Offset in the file, in bytes; -1 if the chunk is absent. */
  readonly offsets: Float64Array;
  /** Stored length in bytes. */
  readonly byteLengths: Uint32Array;
  /**
   * Filters that were skipped: bit i is set for the i-th filter of the pipeline. Chunks at the edge that are stored without
   * filters have all bits of the pipeline set. Undefined if no filter of any chunk was skipped.
   */
  readonly filterMasks?: Uint32Array;
}

/** Stored chunks as they are found in an index. */
export interface ChunkList {
  /**
   * Adds a chunk. Those outside of the grid are left out.
   * @param coords Position in the grid, one number per axis; it is read at once.
   * @param address As the index has it.
   * @throws ZpublishError `invalid-metadata` if the chunk is not inside the file, or if there are too many.
   */
  add(coords: ArrayLike<number>, address: number, byteLength: number, filterMask: number): void;
  /** Returns all chunks in order. @throws ZpublishError `invalid-metadata` if two have the same place in the grid. */
  finish(): Promise<Hdf5Chunks>;
}

/** Creates an empty list. @param baseAddress Offset in the file that addresses count from. */
export function createChunkList(
  geometry: ChunkGeometry,
  fileByteLength: number,
  baseAddress: number,
): ChunkList {
  const { grid, shape, chunkShape, filterCount, edgesAreUnfiltered } = geometry;
  const rank = grid.length;
  const allFilters = 2 ** filterCount - 1;
  let count = 0;
  let numbers = new Float64Array(16);
  let offsets = new Float64Array(16);
  let byteLengths = new Uint32Array(16);
  let masks = new Uint32Array(16);
  let isAscending = true;
  let hasMasks = false;

  function grow(): void {
    if (count >= MAX_CHUNKS) throw damaged(`expected at most ${MAX_CHUNKS} chunks, received more`);
    const length = 2 * numbers.length;
    numbers = grown(numbers, new Float64Array(length));
    offsets = grown(offsets, new Float64Array(length));
    byteLengths = grown(byteLengths, new Uint32Array(length));
    masks = grown(masks, new Uint32Array(length));
  }

  /** Moves the chunks to their places: all of the grid's, or in the order of their numbers. */
  function* arrange(gridCount: number): CooperativeTask<Hdf5Chunks> {
    const isDense = gridCount <= 2 * count;
    const order = isAscending || isDense ? undefined : yield* sortedOrder(numbers.subarray(0, count));
    const length = isDense ? gridCount : count;
    const to = {
      ...(isDense ? {} : { numbers: new Float64Array(length) }),
      offsets: new Float64Array(length).fill(-1),
      byteLengths: new Uint32Array(length),
      ...(hasMasks ? { filterMasks: new Uint32Array(length) } : {}),
    };
    let previous = -1;
    for (let i = 0; i < count; i++) {
      const from = order === undefined ? i : order[i]!;
      const number = numbers[from]!;
      const place = isDense ? number : i;
      if (isDense ? to.offsets[place] !== -1 : number === previous) {
        throw damaged(`expected each chunk once, received ${nameOf(number)} twice`);
      }
      previous = number;
      if (to.numbers !== undefined) to.numbers[place] = number;
      to.offsets[place] = offsets[from]!;
      to.byteLengths[place] = byteLengths[from]!;
      if (to.filterMasks !== undefined) to.filterMasks[place] = masks[from]!;
      if (i % CHUNKS_PER_STEP === CHUNKS_PER_STEP - 1) yield;
    }
    return to;
  }

  function nameOf(number: number): string {
    const coords: number[] = [];
    let rest = number;
    for (let axis = rank - 1; axis >= 0; axis--) {
      coords.unshift(rest % grid[axis]!);
      rest = Math.floor(rest / grid[axis]!);
    }
    return `chunk ${coords.join(".")}`;
  }

  return {
    add(coords, address, byteLength, filterMask) {
      let number = 0;
      let isPartial = false;
      for (let axis = 0; axis < rank; axis++) {
        const at = coords[axis]!;
        const length = grid[axis]!;
        if (!(at < length)) return;
        number = number * length + at;
        if (edgesAreUnfiltered && (at + 1) * chunkShape[axis]! > shape[axis]!) isPartial = true;
      }
      const offset = baseAddress + address;
      if (!(offset + byteLength <= fileByteLength && byteLength < 2 ** 32)) {
        throw damaged(
          `expected ${nameOf(number)} inside the ${fileByteLength} bytes of the file, received ${byteLength} bytes at ${offset}`,
        );
      }
      if (count === numbers.length) grow();
      const mask = isPartial ? allFilters : filterMask & allFilters;
      if (count > 0 && number < numbers[count - 1]!) isAscending = false;
      if (mask !== 0) hasMasks = true;
      numbers[count] = number;
      offsets[count] = offset;
      byteLengths[count] = byteLength;
      masks[count] = mask;
      count++;
    },
    finish: () => runCooperatively(arrange(grid.reduce((product, length) => product * length, 1))),
  };
}

function grown<T extends Float64Array | Uint32Array>(from: T, to: T): T {
  to.set(from);
  return to;
}
