import type { DataType } from "../model/data-type.js";
import type { JsonObject, JsonValue } from "../model/json-value.js";
import type { CodecSpec } from "../zarr/codec-spec.js";
import type { ChunkSource } from "./chunk-source.js";

/**
 * The contract of an input: something that opens a location and tells what is in it. One file or folder per kind
 * (`local-directory/`, `memory.ts`). A source does all input I/O of its kind and knows nothing of how data is served.
 */
export interface Source {
  /** As the operator wrote it, for messages. */
  readonly location: string;
  /**
   * Makes sure that there is a dataset, without reading more than that takes: what it does not throw, `readTree` would
   * not throw now either. Where it is missing, only `readTree` can tell.
   * @throws ZpublishError what `readTree` would throw.
   */
  check?(): Promise<void>;
  /**
   * Reads all metadata. What has not changed since it was read last is the same objects as then.
   * @throws ZpublishError `invalid-metadata` or `source-unreadable` where the root is no dataset. A single array or
   * group that cannot be understood goes to `refused` instead.
   */
  readTree(progress?: (arraysRead: number) => void): Promise<StoredTree>;
  /**
   * A cheap text that changes whenever `readTree` might answer differently (names, sizes and modification times of
   * metadata files); undefined for a source that never changes.
   * @throws ZpublishError `source-unreadable`
   */
  fingerprint(): Promise<string | undefined>;
  close(): Promise<void>;
}

/** What a source found. Plain, frozen. */
export interface StoredTree {
  /** Every group, root (`path` "/") first, parents before children, siblings sorted by name. */
  readonly groups: readonly StoredGroup[];
  /** What was found and cannot be served, by path without a leading slash. */
  readonly refused: readonly Refusal[];
  /** Said at open and in `inspect`, one line each. */
  readonly warnings: readonly string[];
  /**
   * Identity of the place and its metadata files (realpath, modification times; for memory a hash of the content):
   * part of every cache key, never shown, never in an ETag.
   */
  readonly identity: string;
  /** Same as {@link Source.fingerprint}, taken before reading. */
  readonly fingerprint: string | undefined;
}

export interface Refusal {
  readonly path: string;
  readonly reason: string;
}

export interface StoredGroup {
  readonly path: string;
  readonly attrs: JsonObject;
  /** Sorted by name. */
  readonly arrays: readonly StoredArray[];
}

/**
 * One array as stored, whatever the format version: a grid of chunks, each of which decodes through `codecs`
 * to items in the order of `axisOrder`.
 */
export interface StoredArray {
  readonly name: string;
  /** Without a leading slash: `a/b/t2m`. */
  readonly path: string;
  readonly shape: readonly number[];
  /** Of one stored chunk (of an inner chunk where sharded). */
  readonly chunkShape: readonly number[];
  readonly dataType: DataType;
  /**
   * Axes of the array from slowest to fastest varying in a decoded chunk: `[0,1,2]` is C order, `[2,1,0]` is F order.
   */
  readonly axisOrder: readonly number[];
  /** In order of encoding: filters first, compressor last. */
  readonly codecs: readonly CodecSpec[];
  /** How many of `codecs`, from the end, form the v2 compressor: 0 or 1. The rest are filters. */
  readonly compressorCount: 0 | 1;
  readonly fill: StoredFill;
  /** Names from the source; null where it names none (for the array, or for one axis). */
  readonly dimNames: readonly (string | null)[] | null;
  /** Without `_ARRAY_DIMENSIONS`. */
  readonly attrs: JsonObject;
  readonly chunks: ChunkSource;
  /**
   * Chunk shape to serve where the operator asks for none; undefined: `chunkShape`. In-memory arrays, whose one stored
   * chunk is the whole array, have it.
   */
  readonly servedChunks?: readonly number[];
  /** Compressor to serve where the operator asks for none; null: none; undefined: the stored one. */
  readonly servedCompressor?: CodecSpec | null;
}

/** What absent chunks mean, and what the served document says about it. */
export interface StoredFill {
  /** `fill_value` of the served `.zarray`, as zarr-python writes it. */
  readonly served: JsonValue;
  /**
   * One item in the array's type and byte order for padding and absent chunks; null: zero bytes. Of variable-length types,
   * the item as vlen-utf8 and vlen-bytes write it (its length as uint32, little-endian, and its bytes).
   */
  readonly item: Uint8Array | null;
  /**
   * False where `served` does not say what an absent chunk means (a v3 array whose fill value is no missing-value
   * mark to xarray): its absent chunks are then answered filled with `item`, not as 404.
   */
  readonly absentIsServed: boolean;
}
