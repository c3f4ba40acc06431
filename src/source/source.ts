import type { JsonObject } from "../json/json-value.js";
import type { StoredArray } from "../zarr/stored-array.js";

/**
 * The contract of an input: something that opens a location and tells what is in it. One file or folder per kind
 * (`directory/`, `memory/`). A source does all input I/O of its kind and knows nothing of how data is served.
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
