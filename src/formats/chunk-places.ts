import { elementCount, gridShapeOf } from "../model/data-tree.js";
import { allocateOwn } from "../stores/files/open-file.js";
import type { ChunkPlace, ReadOptions } from "../zarr/chunk-reader.js";
import type { FileArray, ListedChunks, StridedChunks } from "./file-index.js";

/** Finds the place of a chunk; undefined if it is absent. */
export type FindPlace = (chunkCoords: readonly number[]) => ChunkPlace | undefined;

/** Creates what finds the chunks of an array in a table of places. */
export function createFindPlace(
  { shape, chunkShape }: Pick<FileArray, "shape" | "chunkShape">,
  table: ListedChunks | StridedChunks,
): FindPlace {
  const gridShape = gridShapeOf(shape, chunkShape);
  return table.kind === "listed" ? listedPlaces(gridShape, table) : stridedPlaces(gridShape, table);
}

function listedPlaces(gridShape: readonly number[], table: ListedChunks): FindPlace {
  const { numbers, offsets, byteLengths, variants } = table;
  return (chunkCoords) => {
    let number = 0;
    for (const [axis, length] of gridShape.entries())
      number = number * length + (chunkCoords[axis] as number);
    const entry = numbers === undefined ? number : positionOf(numbers, number);
    const offset = entry < 0 ? -1 : (offsets[entry] ?? -1);
    if (offset < 0) return undefined;
    const byteLength = byteLengths[entry] as number;
    return { offset, byteLength, wholeByteLength: byteLength, variant: variants?.[entry] ?? 0 };
  };
}

/** Returns the position of a number in an ascending list; -1 if it is not there. */
function positionOf(numbers: Float64Array, wanted: number): number {
  let low = 0;
  let high = numbers.length - 1;
  while (low <= high) {
    const middle = (low + high) >>> 1;
    const found = numbers[middle] as number;
    if (found === wanted) return middle;
    if (found < wanted) low = middle + 1;
    else high = middle - 1;
  }
  return -1;
}

function stridedPlaces(gridShape: readonly number[], table: StridedChunks): FindPlace {
  const { start, strides, byteLength, last } = table;
  // An axis without items has no chunks, and none is asked for.
  const lastIndex =
    last === undefined || elementCount(gridShape) === 0 ? -1 : (gridShape[last.axis] ?? 0) - 1;
  return (chunkCoords) => {
    let offset = start;
    for (const [axis, stride] of strides.entries()) offset += stride * (chunkCoords[axis] as number);
    const isLast = last !== undefined && chunkCoords[last.axis] === lastIndex;
    const inFile = isLast ? last.byteLength : byteLength;
    return { offset, byteLength: inFile, wholeByteLength: byteLength, variant: 0 };
  };
}

/** Creates the memory for a chunk, of which a read fills the part that the file has. */
export function memoryFor({ byteLength, wholeByteLength }: ChunkPlace, allocate: ReadOptions["allocate"]) {
  if (byteLength === wholeByteLength) return { allocate, whole: (bytes: Uint8Array) => bytes };
  let whole: Uint8Array<ArrayBuffer> | undefined;
  return {
    allocate(needed: number) {
      whole ??= (allocate ?? allocateOwn)(wholeByteLength);
      return whole.subarray(0, needed);
    },
    /** Clears the padding, which nothing is stored of. */
    whole(bytes: Uint8Array): Uint8Array {
      const found = whole ?? (allocate ?? allocateOwn)(wholeByteLength);
      if (whole === undefined) found.set(bytes);
      return found.fill(0, bytes.length);
    },
  };
}
