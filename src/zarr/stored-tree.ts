import type { JsonObject } from "../json/json-value.js";
import type { StoredArray } from "./stored-array.js";

/**
 * The contract of an input: it opens a location, and yields a tree of groups and arrays. Each kind has a folder (`directory/`,
 * `memory/`). A source does all input of its kind, and does not know how data is served.
 */
export interface Source {
  /** The location as the operator wrote it, for messages. */
  readonly location: string;
  /**
   * Checks that there is a dataset, and reads no more than that takes. If it does not throw, `readTree` would not throw now.
   * Without this function only `readTree` can tell.
   * @throws ZpublishError what `readTree` would throw.
   */
  check?(): Promise<void>;
  /**
   * Reads all metadata. Arrays that have not changed since the last call are the same objects.
   * @param progress Called with the number of arrays read so far.
   * @throws ZpublishError `invalid-metadata` or `source-unreadable` if the root is not a dataset. A single array or group that
   * cannot be understood goes to `refused` instead.
   */
  readTree(progress?: (arraysRead: number) => void): Promise<StoredTree>;
  /**
   * Returns a text that changes whenever the result of `readTree` may change, such as a hash of names, sizes and modification
   * times. It costs less than `readTree`. Undefined for a source that never changes.
   * @throws ZpublishError `source-unreadable`
   */
  fingerprint(): Promise<string | undefined>;
  /** Ends what the source does by itself. Chunks of a tree that was read can still be read: requests in flight do. */
  close(): Promise<void>;
}

/** The groups and arrays of a source: plain data, frozen. */
export interface StoredTree {
  /** Name of the file format as people say it: `NetCDF-4`, `GeoTIFF`. Default: it is a Zarr store, or memory. */
  readonly format?: string;
  /** Every group, root (`path` "/") first, parents before children, siblings sorted by name. */
  readonly groups: readonly StoredGroup[];
  /** Arrays and groups that cannot be served. */
  readonly refused: readonly Refusal[];
  /** Warnings for the log and `inspect`, one line each. */
  readonly warnings: readonly string[];
  /**
   * Identity of the location and its metadata files: real path and modification times, or a hash of the content of memory. It is
   * part of every cache key, never shown, and never in an ETag.
   */
  readonly identity: string;
  /** Same as {@link Source.fingerprint}, taken before reading. */
  readonly fingerprint: string | undefined;
  /** The parts of a dataset that several files are. Default: it is one. */
  readonly join?: StoredJoin;
}

/** Several files that are one dataset. */
export interface StoredJoin {
  /** `concat` along a dimension that they have; `stack` along a new one, with one step per file. */
  readonly kind: "concat" | "stack";
  /** The joined dimension. */
  readonly dimension: string;
  /** In the order of their steps. */
  readonly parts: readonly JoinedFile[];
}

/** A file, and the steps along the joined dimension that it gives. */
export interface JoinedFile {
  /** Path below the folder that all parts have in common: `2024/sst-01.nc`. */
  readonly name: string;
  /** First step in the dataset. */
  readonly start: number;
  /** Number of steps; 0 if others give all of them. */
  readonly length: number;
}

/** An array or group that cannot be served, and why. */
export interface Refusal {
  /** Without a leading slash. */
  readonly path: string;
  readonly reason: string;
}

/** A group of a source. */
export interface StoredGroup {
  readonly path: string;
  readonly attrs: JsonObject;
  /** Sorted by name. */
  readonly arrays: readonly StoredArray[];
}
