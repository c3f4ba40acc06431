import type { JsonObject, JsonValue } from "../json/json-value.js";
import type { ChunkAxis } from "../model/chunk-axis.js";
import type { DataType } from "../model/data-type.js";
import type { ChunkFiles, ChunkSource, FileChunks } from "./chunk-reader.js";
import type { CodecSpec } from "./codec-step.js";

/**
 * One array as stored, whatever the format version: a grid of chunks, each of which decodes through `codecs`
 * to items in the order of `axisOrder`.
 */
export interface StoredArray {
  readonly name: string;
  /** Without a leading slash: `a/b/t2m`. */
  readonly path: string;
  readonly shape: readonly number[];
  /** Elements per axis of a stored chunk; of an innermost chunk if chunks are sharded. */
  readonly chunkShape: readonly number[];
  readonly dataType: DataType;
  /**
   * Axes of the array from slowest to fastest varying in a decoded chunk: `[0,1,2]` is C order, `[2,1,0]` is F order.
   */
  readonly axisOrder: readonly number[];
  /** In order of encoding: filters first, compressor last. */
  readonly codecs: readonly CodecSpec[];
  /** Number of codecs at the end of `codecs` that form the v2 compressor. The rest are filters. */
  readonly compressorCount: 0 | 1;
  /**
   * Codecs of stored chunks that differ from the array's, by variant: `StoredChunk.variant` 1 has the first list. Their chunks are
   * decoded, and encoded as served. Default: no chunk differs.
   */
  readonly variants?: readonly (readonly CodecSpec[])[];
  readonly fill: StoredFill;
  /** Names from the source; null if it names none (for the array, or for one axis). */
  readonly dimNames: readonly (string | null)[] | null;
  /** Without `_ARRAY_DIMENSIONS`. */
  readonly attrs: JsonObject;
  readonly chunks: ChunkSource;
  /**
   * Chunk shape to serve if the operator asks for none. In-memory arrays have it, since their one stored chunk is the
   * whole array. Default: `chunkShape`.
   */
  readonly servedChunks?: readonly number[];
  /** Filters to serve if the operator asks for none. Default: the stored ones that clients know. */
  readonly servedFilters?: readonly CodecSpec[];
  /** Compressor to serve if the operator asks for none; null for no compressor. Default: the stored one. */
  readonly servedCompressor?: CodecSpec | null;
  /** Lengths of the stored chunks along each axis if they differ, or of shards. Then `chunkShape` is that of a regular grid made of them. */
  readonly axes?: readonly ChunkAxis[];
  /** What became of codecs on values, and why; for `inspect`. */
  readonly remark?: string;
  /** Form of an array that is stored as Zarr v3, in terms that v2 does not have. */
  readonly v3?: StoredV3Form;
}

/** Fields of an array's `zarr.json` as they are stored, and its files. */
export interface StoredV3Form {
  readonly dataType: JsonValue;
  readonly fillValue: JsonValue;
  /** Without `_ARRAY_DIMENSIONS`. */
  readonly attrs: JsonObject;
  /** Null if most clients do not know one of them: then the chunks of v2 are served, not the stored files. */
  readonly codecs: JsonValue;
  /** Elements per axis of one file: of a shard if chunks are sharded. */
  readonly fileShape: readonly number[];
  readonly files: FileChunks;
}

/** Meaning of absent chunks, and the `fill_value` that is served. */
export interface StoredFill {
  /** `fill_value` of the served `.zarray`, as zarr-python writes it. */
  readonly served: JsonValue;
  /**
   * One item for padding and absent chunks, in the array's type and byte order; null for zero bytes. An item of a
   * variable-length type is as vlen-utf8 and vlen-bytes write it: its length as little-endian uint32, then its bytes.
   */
  readonly item: Uint8Array | null;
  /**
   * Whether `served` says what an absent chunk means. It does not for a v3 array whose fill value is no missing-value
   * mark to xarray. The server then answers absent chunks filled with `item` instead of as 404.
   */
  readonly absentIsServed: boolean;
}

/** Place of an array's documents, which do not contain it themselves. */
export interface ArrayPlace {
  readonly name: string;
  /** Without a leading slash. */
  readonly path: string;
  readonly files: ChunkFiles;
}

/** An array, and warnings about its documents, one line each, without the array's path. */
export interface ParsedArray {
  readonly array: StoredArray;
  readonly warnings: readonly string[];
}
