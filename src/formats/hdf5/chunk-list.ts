import type { ZpublishError } from "../../errors.js";
import { type CooperativeTask, runCooperatively } from "../../event-loop/cooperative-task.js";
import { invalidFile } from "./bytes.js";
import type { Hdf5ChunkedLayout } from "./hdf5-model.js";

/** Creates an error about an index of chunks. */
export function damagedIndex(problem: string): ZpublishError {
  return invalidFile(`index of chunks: ${problem}`);
}

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

/** Derives the geometry of a chunked dataset, whose layout message was checked when it was parsed. */
export function chunkGeometry(
  { chunkShape, itemSize, edgesAreUnfiltered }: Hdf5ChunkedLayout,
  shape: readonly number[],
  maxShape: readonly (number | null)[],
  filterCount: number,
): ChunkGeometry {
  const perAxis = (lengths: readonly (number | null)[]): number[] =>
    lengths.map((length, axis) => (length === null ? Infinity : Math.ceil(length / chunkShape[axis]!)));
  const grid = perAxis(shape);
  const count = grid.reduce((product, length) => product * length, 1);
  if (!(count <= Number.MAX_SAFE_INTEGER)) {
    throw damagedIndex(`expected a grid of less than 2^53 chunks, received ${grid.join(" x ")}`);
  }
  const chunkByteLength = chunkShape.reduce((product, length) => product * length, itemSize);
  return {
    shape,
    chunkShape,
    grid,
    maxGrid: perAxis(maxShape),
    chunkByteLength,
    filterCount,
    edgesAreUnfiltered,
  };
}

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
    if (count >= MAX_CHUNKS) throw damagedIndex(`expected at most ${MAX_CHUNKS} chunks, received more`);
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
        throw damagedIndex(`expected each chunk once, received ${nameOf(number)} twice`);
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
        throw damagedIndex(
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

/**
 * Returns the positions of numbers in ascending order of the numbers. Merges the ascending runs that are there: the order of an
 * index is sorted but for few places, or consists of few runs.
 */
function* sortedOrder(numbers: Float64Array): CooperativeTask<Uint32Array> {
  const count = numbers.length;
  let order = new Uint32Array(count);
  let ends: number[] = [];
  for (let i = 0; i < count; i++) {
    order[i] = i;
    if (i + 1 === count || numbers[i + 1]! < numbers[i]!) ends.push(i + 1);
    if (i % 65_536 === 65_535) yield;
  }
  let other = new Uint32Array(count);
  while (ends.length > 1) {
    const merged: number[] = [];
    let start = 0;
    for (let run = 0; run < ends.length; run += 2) {
      const middle = ends[run]!;
      const end = ends[run + 1] ?? middle;
      yield* mergeRuns(numbers, order, other, start, middle, end);
      merged.push(end);
      start = end;
    }
    [order, other] = [other, order];
    ends = merged;
  }
  return order;
}

/** Merges `from[start, middle)` and `from[middle, end)` into `to`. */
function* mergeRuns(
  numbers: Float64Array,
  from: Uint32Array,
  to: Uint32Array,
  start: number,
  middle: number,
  end: number,
): CooperativeTask<void> {
  let left = start;
  let right = middle;
  for (let at = start; at < end; at++) {
    const takesLeft = right >= end || (left < middle && numbers[from[left]!]! <= numbers[from[right]!]!);
    to[at] = takesLeft ? from[left++]! : from[right++]!;
    if (at % 16_384 === 16_383) yield;
  }
}
