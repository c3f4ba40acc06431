import type { JsonObject, JsonValue } from "../json/json-value.js";
import type { CodecSpec } from "../zarr/codec-step.js";
import type { StoredFill } from "../zarr/stored-array.js";
import type { Refusal } from "../zarr/stored-tree.js";

/**
 * Content of a file in terms of Zarr, and where its chunks lie: plain data that can be kept on disk. Lists and attributes may be
 * shared and are not written to.
 */
export interface FileIndex {
  /** Name of the format as people say it: `NetCDF-4`, `HDF5`, `NetCDF-3 (64-bit offset)`, `GeoTIFF`. */
  readonly format: string;
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

/** An array of a file. */
export interface FileArray {
  readonly name: string;
  readonly shape: readonly number[];
  /** Elements per axis of a stored chunk, each at least 1. */
  readonly chunkShape: readonly number[];
  /** As in `StoredArray`. Default: C order. */
  readonly axisOrder?: readonly number[];
  /** As in a v2 `.zarray`: `"<f4"`, `"|O"`, a list of fields. */
  readonly dtype: JsonValue;
  /**
   * Codecs of most chunks in order of encoding, filters first, compressor last. Besides those of Zarr they may be internal ones
   * (`zarr/plan/codec-rules.ts`), which are decoded and never served.
   */
  readonly codecs: readonly CodecSpec[];
  readonly compressorCount: 0 | 1;
  /** Codecs of the other chunks: those of variant 1 first. Default: none differ. */
  readonly variants?: readonly (readonly CodecSpec[])[];
  readonly fill: StoredFill;
  /** One name per axis. */
  readonly dimNames: readonly string[];
  readonly attrs: JsonObject;
  readonly chunks: FileChunkTable;
  /** As in `StoredArray`. */
  readonly servedChunks?: readonly number[];
  /** As in `StoredArray`. */
  readonly servedFilters?: readonly CodecSpec[];
  /** As in `StoredArray`. */
  readonly servedCompressor?: CodecSpec | null;
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
export interface InlineChunks {
  readonly kind: "inline";
  /** As the array's codecs say. Null if the chunk is absent. */
  readonly bytes: Uint8Array | null;
}

/** Chunks that are put together by `FileFormat.makeChunk`: variable-length strings, records of a few bytes. */
export interface MadeFileChunks {
  readonly kind: "made";
  /** Plain data of numbers, strings, lists, objects and typed arrays. */
  readonly recipe: unknown;
}
