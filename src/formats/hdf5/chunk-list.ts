import { type CooperativeTask, runCooperatively } from "../../event-loop/cooperative-task.js";
import { sortCooperatively } from "../../event-loop/sort-cooperatively.js";
import { elementCount } from "../../model/data-tree.js";
import { check } from "./bytes.js";
import type { Hdf5ChunkedLayout } from "./hdf5-model.js";

/** @throws ZpublishError `invalid-metadata` unless an index of chunks is as expected */
export function checkIndex(isValid: boolean, expected: string, received: string | number): asserts isValid {
  check(isValid, "index of chunks", expected, received);
}

/** Shape of the chunks of a dataset, and what can be said of all of them. */
export type ChunkGeometry = ReturnType<typeof chunkGeometry>;

/**
 * Derives the geometry of a chunked dataset, whose layout message was checked when it was parsed.
 * @returns `grid` has the chunks per axis of the current shape, `maxGrid` those of the maximum shape, Infinity along axes without limit;
 * `chunkByteLength` counts before filters.
 */
export function chunkGeometry(
  { chunkShape, itemSize }: Hdf5ChunkedLayout,
  shape: readonly number[],
  maxShape: readonly (number | null)[],
  filterCount: number,
) {
  const perAxis = (lengths: readonly (number | null)[]): number[] =>
    lengths.map((length, axis) => (length === null ? Infinity : Math.ceil(length / chunkShape[axis]!)));
  const grid = perAxis(shape);
  const isSane = elementCount(grid) <= Number.MAX_SAFE_INTEGER;
  checkIndex(isSane, "a grid of less than 2^53 chunks", grid.join(" x "));
  const chunkByteLength = elementCount(chunkShape) * itemSize;
  const maxGrid = perAxis(maxShape);
  return { chunkShape, grid, maxGrid, chunkByteLength, filterCount };
}

/** Most chunks of a dataset: their places take some 400 MB. */
const MAX_CHUNKS = 2 ** 24;

/** The stored chunks of a dataset. */
export interface Hdf5Chunks {
  /** As in `ListedChunks`: numbers in the grid of the current shape, ascending; undefined if all chunks are listed. */
  readonly numbers?: Float64Array;
  /** Offset in the file, in bytes; -1 if the chunk is absent. */
  readonly offsets: Float64Array;
  /** Stored length in bytes. */
  readonly byteLengths: Uint32Array;
  /**
   * Filters that were skipped: bit i is set for the i-th filter of the pipeline. Undefined if no filter of any chunk was skipped.
   */
  readonly filterMasks?: Uint32Array;
}

/** Stored chunks as they are found in an index. */
export interface ChunkList {
  /**
   * Adds a chunk, unless it is outside of the grid.
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
  const { grid, filterCount } = geometry;
  const rank = grid.length;
  const gridCount = elementCount(grid);
  const allFilters = 2 ** filterCount - 1;
  let count = 0;
  let [numbers, offsets] = [new Float64Array(0), new Float64Array(0)];
  let [byteLengths, masks] = [new Uint32Array(0), new Uint32Array(0)];
  let isAscending = true;
  let hasMasks = false;

  function grow(): void {
    const most = Math.min(gridCount, MAX_CHUNKS);
    checkIndex(count < most, `at most ${most} chunks`, "more");
    const length = Math.min(Math.max(64, 2 * count), most);
    numbers = grown(numbers, new Float64Array(length));
    offsets = grown(offsets, new Float64Array(length));
    byteLengths = grown(byteLengths, new Uint32Array(length));
    masks = grown(masks, new Uint32Array(length));
  }

  /** Moves the chunks to their places: all of the grid's, or in the order of their numbers. */
  function* arrange(): CooperativeTask<Hdf5Chunks> {
    // Then each chunk is at its place, and the lists are as long as the grid.
    if (isAscending && count === gridCount)
      return { offsets, byteLengths, ...(hasMasks && { filterMasks: masks }) };
    const isDense = gridCount <= 2 * count;
    const byNumber = (a: number, b: number): number => numbers[a]! - numbers[b]!;
    const order =
      isAscending || isDense
        ? undefined
        : yield* sortCooperatively([...numbers.keys()].slice(0, count), byNumber);
    const length = isDense ? gridCount : count;
    const to = {
      ...(isDense ? {} : { numbers: new Float64Array(length) }),
      offsets: new Float64Array(length).fill(-1),
      byteLengths: new Uint32Array(length),
      ...(hasMasks && { filterMasks: new Uint32Array(length) }),
    };
    for (let i = 0; i < count; i++) {
      const from = order === undefined ? i : order[i]!;
      const number = numbers[from]!;
      const place = isDense ? number : i;
      if (isDense ? to.offsets[place] !== -1 : number === to.numbers?.[i - 1]) {
        checkIndex(false, "each chunk once", `${nameOf(number)} twice`);
      }
      if (to.numbers !== undefined) to.numbers[place] = number;
      to.offsets[place] = offsets[from]!;
      to.byteLengths[place] = byteLengths[from]!;
      if (to.filterMasks !== undefined) to.filterMasks[place] = masks[from]!;
      if (i % 16_384 === 0) yield;
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
      for (let axis = 0; axis < rank; axis++) {
        const at = coords[axis]!;
        const length = grid[axis]!;
        if (!(at < length)) return;
        number = number * length + at;
      }
      const offset = baseAddress + address;
      if (!(offset + byteLength <= fileByteLength && byteLength < 2 ** 32)) {
        const expected = `${nameOf(number)} inside the ${fileByteLength} bytes of the file`;
        checkIndex(false, expected, `${byteLength} bytes at ${offset}`);
      }
      if (count === numbers.length) grow();
      const mask = filterMask & allFilters;
      if (count > 0 && number <= numbers[count - 1]!) isAscending = false;
      if (mask !== 0) hasMasks = true;
      numbers[count] = number;
      offsets[count] = offset;
      byteLengths[count] = byteLength;
      masks[count] = mask;
      count++;
    },
    finish: () => runCooperatively(arrange()),
  };
}

function grown<T extends Float64Array | Uint32Array>(from: T, to: T): T {
  to.set(from);
  return to;
}
