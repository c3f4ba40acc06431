import type { StoreSettings } from "../stores/store-settings.js";

/** Finds files and Zarr stores below a folder of this machine or a prefix of a bucket, again and again, with little work if little has changed. */
export interface FileFinder {
  /** The folder or prefix: an absolute path, or a URL that ends with a slash. For messages. */
  readonly root: string;
  /**
   * Looks once; calls are not to overlap. What has not changed since the last look is not read again.
   * @throws ZpublishError `source-unreadable` if the root cannot be listed; `invalid-config` if it is of a kind that cannot be.
   */
  look(signal?: AbortSignal): Promise<Findings>;
  /** Returns the location of a file, as `openSource` takes it. */
  locationOf(path: string): string;
}

/** The result of one look. */
export interface Findings {
  /**
   * Sorted by path in UTF-16 code units. The same array object as before if all are. Folders that cannot be read have the files that
   * they had.
   */
  readonly files: readonly FoundFile[];
  /** Folders and files that cannot be used, each with the reason: not readable, a loop of links, a name that cannot be served. */
  readonly problems: readonly Problem[];
}

/** A folder or file that cannot be used. */
export interface Problem {
  /** Relative to the root; empty for the root, or for several together. */
  readonly path: string;
  readonly reason: string;
}

/** A file, or a directory that is a Zarr store. */
export interface FoundFile {
  /** Relative to the root, with `/` between its parts, without a slash at the end. */
  readonly path: string;
  /** True for a directory that is a Zarr store. */
  readonly isStore: boolean;
  /**
   * Identifies the content of a file, such as its size and modification time; of a store the modification times of its root documents.
   * If the content changes, it stays what it was until the file has stood still. Undefined if the finder was not asked for versions.
   */
  readonly version?: string;
}

/** Options of a finder. */
export interface FileFinderOptions {
  /** Absolute path of a directory, or a URL `s3://bucket/prefix/`. */
  readonly root: string;
  /** Patterns of paths relative to the root, as picomatch reads them. Default: files and stores of all known formats. */
  readonly include?: readonly string[] | undefined;
  /** Patterns of paths that are left out, folders with everything below them included. */
  readonly exclude?: readonly string[] | undefined;
  /** Whether to tell versions, which takes a look at every file each time. Default false. */
  readonly withVersions?: boolean;
  /** How buckets are reached. Default: as AWS's own programs do. */
  readonly stores?: readonly StoreSettings[] | undefined;
}
