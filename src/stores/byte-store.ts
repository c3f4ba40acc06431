import type { VersionCheck } from "../zarr/chunk-reader.js";

/**
 * Objects by key, such as the files below a directory, a web server's path or a bucket's prefix. Everything that does not lie in
 * a local Zarr directory is read through one. Keys have no slash at the beginning, and are not percent-encoded.
 */
export interface ByteStore {
  /** The place for messages, pages and metrics: without credentials and queries. */
  readonly location: string;
  /** Text that differs between places, for cache keys. Without credentials. */
  readonly identity: string;
  /**
   * Returns version and length of an object without its bytes; undefined if there is none.
   * @throws ZpublishError `source-unreadable`
   */
  stat(key: string, signal?: AbortSignal): Promise<ObjectStat | undefined>;
  /**
   * Reads an object, or part of it: all of the bytes asked for, of one version; undefined if there is no such object.
   * @throws ZpublishError `source-unreadable`; `source-changed` if `options.version` is given and the object has another one;
   * `corrupt-chunk` if it is longer than `options.maxByteLength`, or has not the bytes of `options.range`.
   */
  read(key: string, options?: ReadObjectOptions): Promise<ObjectBytes | undefined>;
  /**
   * Reads an object, or part of it, unless it has the known version.
   * @returns `"unchanged"` if it has; else as `read`.
   */
  readIfChanged(
    key: string,
    known: ObjectVersion,
    options?: ReadObjectOptions,
  ): Promise<ObjectBytes | "unchanged" | undefined>;
  /**
   * Returns the version of an object without waiting; undefined if that might have to wait, and if there is no such object.
   * Only stores of local files have it.
   * @param wasChecked Whether the object was checked before, so that its metadata is in memory. Default false.
   */
  readonly versionNow?: ((key: string, wasChecked?: boolean) => VersionCheck | undefined) | undefined;
  /**
   * Reads an object without waiting, from a local file system that answers quickly. Undefined if the caller has to call `read`,
   * which also tells what is wrong. Only stores of local files have it.
   */
  readonly readNow?: ((key: string, options?: ReadObjectOptions) => ObjectBytes | undefined) | undefined;
  /**
   * Lists names directly below a prefix, in any order. Undefined if objects cannot be listed, as over HTTP.
   * @param prefix Empty, or with a slash at the end.
   * @param withVersions Whether to tell the versions of objects, if the store can in the same requests. Default false.
   */
  readonly list?:
    | ((prefix: string, signal?: AbortSignal, withVersions?: boolean) => Promise<ObjectListing>)
    | undefined;
  /**
   * Returns the name of the object in which the bytes of a key lie, if many keys lie in one: its version is theirs, too.
   * Undefined if there is no such key. Default: every key is an object of its own.
   */
  readonly objectOf?: ((key: string) => string | undefined) | undefined;
  /**
   * Returns a URL from which a client can fetch a whole object itself for some seconds; undefined if it cannot.
   * Default: clients cannot.
   */
  readonly urlFor?: ((key: string, seconds: number) => Promise<string | undefined>) | undefined;
}

/** State of an object: equal versions have equal bytes. */
export interface ObjectVersion {
  /** Identifies the version; short, of `[0-9a-z.]`. Part of ETags and cache keys. */
  readonly token: string;
  /** Entity tag as the store sent it, with quotes; undefined if it sent none. */
  readonly etag?: string | undefined;
  /** Modification time as the store sent it; undefined if it sent none. */
  readonly lastModified?: string | undefined;
}

/** An object without its bytes. */
export interface ObjectStat {
  readonly version: ObjectVersion;
  readonly byteLength: number;
}

/** Bytes of an object. */
export interface ObjectBytes {
  /** Memory that belongs to the caller. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly version: ObjectVersion;
  /** Length of the whole object. */
  readonly objectByteLength: number;
}

/** Part of an object: so many bytes from an offset, or the last ones. */
export type ObjectRange =
  | { readonly offset: number; readonly byteLength: number }
  | { readonly last: number };

/** Options of reading an object. */
export interface ReadObjectOptions {
  /** Default: the whole object. */
  readonly range?: ObjectRange | undefined;
  /** The version that the object must have. Default: any. */
  readonly version?: ObjectVersion | undefined;
  /** Greatest number of bytes to read; more are refused before memory is allocated. Default 2^31 - 1. */
  readonly maxByteLength?: number | undefined;
  /** Allocates memory for the bytes. Default: memory of their own. */
  readonly allocate?: ((byteLength: number) => Uint8Array<ArrayBuffer>) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Names directly below a prefix. */
export interface ObjectListing {
  /** Names of objects, without the prefix. */
  readonly objects: readonly string[];
  /** Names of prefixes below it, without slash at the end. */
  readonly prefixes: readonly string[];
  /** Texts that change with the bytes of each object, in the order of `objects`; not the tokens of their versions. */
  readonly versions?: readonly string[];
}
