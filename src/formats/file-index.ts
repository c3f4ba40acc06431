import { firstNotLess } from "../collections/sorted-lists.js";
import type { JsonObject, JsonValue } from "../json/json-value.js";
import { elementCount, gridShapeOf } from "../model/data-tree.js";
import { allocateOwn } from "../stores/file-calls.js";
import type { ChunkPlace, ReadOptions } from "../zarr/chunk-reader.js";
import type { StoredArray } from "../zarr/stored-array.js";
import type { Refusal } from "../zarr/stored-tree.js";

/**
 * Content of a file in terms of Zarr, and where its chunks lie: plain data that can be kept on disk. Lists and attributes may be
 * shared and are not written to.
 */
export interface FileIndex {
  /** Name of the format as people say it: `NetCDF-4`, `HDF5`, `NetCDF-3 (64-bit offset)`, `GeoTIFF`. */
  readonly format: string;
  /** Names of the dimensions that may grow: unlimited in NetCDF-4, of records in NetCDF-3. */
  readonly unlimited?: readonly string[];
  /** Every group, root (`path` "/") first, parents before children, siblings sorted by name (`comparePaths` of `node-name.ts`). */
  readonly groups: readonly FileGroup[];
  readonly refused: readonly Refusal[];
  /** One line each; those about an array or group begin with its path in quotes. */
  readonly warnings: readonly string[];
}

/** A group of a file. */
export interface FileGroup {
  /** `/`, `/forecast/surface`. */
  readonly path: string;
  readonly attrs: JsonObject;
  /** Sorted by name. */
  readonly arrays: readonly FileArray[];
}

/** Fields that arrays of files have in common with others. */
type CommonFields = "name" | "shape" | "codecs" | "compressorCount" | "variants" | "fill" | "attrs";

/**
 * An array of a file. Besides the codecs of Zarr it may have internal ones (`zarr/plan/codec-rules.ts`), which are decoded and never
 * served.
 */
export interface FileArray
  extends Pick<StoredArray, CommonFields | "servedChunks" | "servedFilters" | "servedCompressor"> {
  /** Elements per axis of a stored chunk, each at least 1. */
  readonly chunkShape: readonly number[];
  /** As in `StoredArray`. Default: C order. */
  readonly axisOrder?: readonly number[];
  /** As in a v2 `.zarray`: `"<f4"`, `"|O"`, a list of fields. */
  readonly dtype: JsonValue;
  /** One name per axis. */
  readonly dimNames: readonly string[];
  readonly chunks: FileChunkTable;
}

/** The places of an array's stored chunks. */
export type FileChunkTable = ListedChunks | StridedChunks | InlineChunks | MadeFileChunks;

/** A place for each chunk, such as those of chunked HDF5 and tiled TIFF. */
export interface ListedChunks {
  readonly kind: "listed";
  /**
   * Numbers of the chunks in the stored grid, counted in C order, ascending; all others are absent. Undefined if the lists have
   * an entry for every chunk of the grid.
   */
  readonly numbers?: Float64Array;
  /** Offset in the file, in bytes; -1 if the chunk is absent. */
  readonly offsets: Float64Array;
  /** Stored length in bytes. */
  readonly byteLengths: Uint32Array;
  /** Variant of each chunk: 0 for `codecs`, n for entry n - 1 of `variants`. Undefined if all are 0. */
  readonly variants?: Uint8Array;
}

/** Chunks of equal length at regular places, uncompressed: pieces of contiguous data, and records. */
export interface StridedChunks {
  readonly kind: "strided";
  /** Offset of the first chunk in the file, in bytes. */
  readonly start: number;
  /** Bytes from one chunk to the next, per axis of the grid. */
  readonly strides: readonly number[];
  /** Length of a whole chunk in bytes. */
  readonly byteLength: number;
  /**
   * The axis along which the last chunk passes the end of the array, and the bytes of that chunk which the file has. The rest of
   * it is padding. Undefined if there is no such axis.
   */
  readonly last?: { readonly axis: number; readonly byteLength: number };
}

/** A whole array as the only chunk of its grid, kept in the index. */
interface InlineChunks {
  readonly kind: "inline";
  /** As the array's codecs say. Null if the chunk is absent. */
  readonly bytes: Uint8Array | null;
}

/** Chunks that are put together by `FileFormat.makeChunk`: variable-length strings, records of a few bytes. */
interface MadeFileChunks {
  readonly kind: "made";
  /** Plain data of numbers, strings, lists, objects and typed arrays. */
  readonly recipe: unknown;
}

/** Length up to which items are put in one chunk. */
export const CHUNK_BYTES = 2 ** 20;

/** Items of an array, in C order. */
export interface PlacedItems {
  readonly begin: number;
  readonly shape: readonly number[];
  readonly itemSize: number;
}

/** Chunks of an array, and where they are. */
export interface PlacedChunks {
  readonly chunkShape: readonly number[];
  readonly chunks: FileChunkTable;
}

/** A table without any chunk. */
export const NO_CHUNKS: FileChunkTable = {
  kind: "listed",
  numbers: new Float64Array(0),
  offsets: new Float64Array(0),
  byteLengths: new Uint32Array(0),
};

/**
 * Cuts an array whose items adjoin into chunks of up to 1 MiB, along its first axes.
 * @param isGrowing True if the first axis may get longer: full chunks stay the same then.
 */
export function placeItems({ begin, shape, itemSize }: PlacedItems, isGrowing: boolean): PlacedChunks {
  const { chunkShape, axis } = cutChunks(shape, itemSize, isGrowing);
  if (shape.includes(0)) return { chunkShape, chunks: NO_CHUNKS };
  const itemStrides = stridesOf(shape, itemSize);
  return { chunkShape, chunks: stridedChunks({ begin, shape, itemSize }, chunkShape, itemStrides, axis) };
}

/**
 * Returns the shape of chunks of up to 1 MiB: whole along the last axes, a part along one axis, one entry along those before.
 * @returns `axis` is the one that is cut; -1 if one chunk has all.
 */
export function cutChunks(
  shape: readonly number[],
  itemSize: number,
  isGrowing: boolean,
): { readonly chunkShape: readonly number[]; readonly axis: number } {
  const chunkShape = shape.map(() => 1);
  let bytes = itemSize;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const length = shape[axis]!;
    if (bytes * length > CHUNK_BYTES) {
      const most = Math.max(1, Math.floor(CHUNK_BYTES / bytes));
      // Chunks of equal length leave little padding in the last one.
      chunkShape[axis] = isGrowing ? most : Math.ceil(length / Math.ceil(length / most));
      return { chunkShape, axis };
    }
    bytes *= length;
    chunkShape[axis] = Math.max(1, length);
  }
  return { chunkShape, axis: -1 };
}

/** Returns the bytes from one index to the next, per axis. */
export function stridesOf(shape: readonly number[], itemSize: number): number[] {
  const strides = shape.map(() => itemSize);
  for (let axis = shape.length - 2; axis >= 0; axis--) strides[axis] = strides[axis + 1]! * shape[axis + 1]!;
  return strides;
}

/**
 * Places chunks that lie at regular places.
 * @param itemStrides Bytes from one index to the next, per axis.
 * @param cutAxis The axis that is cut; negative if none is.
 */
export function stridedChunks(
  { begin, shape, itemSize }: PlacedItems,
  chunkShape: readonly number[],
  itemStrides: readonly number[],
  cutAxis: number,
): StridedChunks {
  const rest = cutAxis < 0 ? 0 : shape[cutAxis]! % chunkShape[cutAxis]!;
  return {
    kind: "strided",
    start: begin,
    strides: itemStrides.map((stride, axis) => stride * chunkShape[axis]!),
    byteLength: chunkShape.reduce((bytes, length) => bytes * length, itemSize),
    ...(rest > 0 && { last: { axis: cutAxis, byteLength: rest * itemStrides[cutAxis]! } }),
  };
}

/** Finds the place of a chunk; undefined if it is absent. */
type FindPlace = (chunkCoords: readonly number[]) => ChunkPlace | undefined;

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
    for (const [axis, length] of gridShape.entries()) number = number * length + chunkCoords[axis]!;
    const entry = numbers === undefined ? number : positionOf(numbers, number);
    const offset = entry < 0 ? -1 : (offsets[entry] ?? -1);
    if (offset < 0) return undefined;
    const byteLength = byteLengths[entry]!;
    return { offset, byteLength, wholeByteLength: byteLength, variant: variants?.[entry] ?? 0 };
  };
}

/** Returns the position of a number in an ascending list; -1 if it is not there. */
function positionOf(numbers: Float64Array, wanted: number): number {
  const place = firstNotLess(numbers, wanted);
  return numbers[place] === wanted ? place : -1;
}

function stridedPlaces(gridShape: readonly number[], table: StridedChunks): FindPlace {
  const { start, strides, byteLength, last } = table;
  // An axis without items has no chunks, and none is asked for.
  const lastIndex =
    last === undefined || elementCount(gridShape) === 0 ? -1 : (gridShape[last.axis] ?? 0) - 1;
  return (chunkCoords) => {
    let offset = start;
    for (const [axis, stride] of strides.entries()) offset += stride * chunkCoords[axis]!;
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
