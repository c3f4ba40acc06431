import { isDamage, ZpublishError } from "../errors.js";
import type { MaybePromise } from "../event-loop/maybe-promise.js";
import type { JsonObject } from "../json/json-value.js";
import { nodeName } from "../model/data-tree.js";
import type { BytePlace, StoredVersion } from "./chunk-reader.js";
import type { StoredArray } from "./stored-array.js";

/**
 * The contract of an input: it opens a location, and yields a tree of groups and arrays. A source does all input of its kind, and
 * does not know how data is served.
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
  /** Other states of the same data, if the location keeps some; known once the source is read. Default: it has this one. */
  readonly versions?: StoredVersions | undefined;
  /** Ends what the source does by itself. Chunks of a tree that was read can still be read: requests in flight do. */
  close(): Promise<void>;
}

/** The states that a location keeps, such as those of an Icechunk repository. They can be listed and opened after the source is closed. */
export interface StoredVersions {
  /**
   * Lists branches, tags and snapshots, in this order, the newest of each kind first. Returns the same array object if nothing has changed.
   * @throws ZpublishError `source-unreadable`, `invalid-metadata`
   */
  list(signal?: AbortSignal): Promise<readonly NamedVersion[]>;
  /**
   * Opens the state of a tag or a snapshot, of which nothing ever changes. Undefined if there is none of that name; a branch is none. The
   * caller closes the source.
   * @param name A tag, or else the id of a snapshot.
   * @throws ZpublishError `source-unreadable`, `invalid-metadata`
   */
  open(name: string): Promise<Source | undefined>;
}

/** A name of one state. A snapshot may have several: its id, tags, and branches that end in it. */
export interface NamedVersion {
  readonly kind: "branch" | "tag" | "snapshot";
  /** Unique within the kind. A snapshot's is its id. */
  readonly name: string;
  /** Id of the snapshot. */
  readonly snapshot: string;
  /** Time at which the snapshot was written, in ISO 8601. */
  readonly time: string;
  /** What its writer says about it; may be empty. */
  readonly message: string;
}

/** A path or URL in a message. */
const PLACE = /(?:^|[\s'"(,:])(?:\/|[a-z][a-z\d+.-]*:\/\/)/i;

/**
 * Runs `work`, and adds the location to the message of its error. If that message is about the content of the location and names no
 * place, it is kept as the detail `reason`, which clients may see.
 */
export async function withinLocation<T>(location: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ZpublishError)) throw error;
    throw new ZpublishError(error.code, `${location}: ${error.message}`, {
      details: {
        ...(isDamage(error) && !PLACE.test(error.message) && { reason: error.message }),
        ...error.details,
      },
      cause: error,
    });
  }
}

/** The groups and arrays of a source: plain data, frozen. */
export interface StoredTree {
  /** Name of the file format as people say it: `NetCDF-4`, `GeoTIFF`. Default: it is a Zarr store, or memory. */
  readonly format?: string;
  /** Names of the dimensions that may grow. Default: it is not known of any. */
  readonly unlimited?: readonly string[];
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
  /** The file that has all of it. Default: it is a directory, several files, or memory. */
  readonly file?: StoredFile;
}

/**
 * One version of a file. Every read is made under the condition that the file still has it, so that bytes of two versions are never
 * mixed: else it throws `source-changed`, and the file has to be opened again.
 */
export interface StoredFile {
  /** Name of the file without its folder. */
  readonly name: string;
  /** Identity of the store that has the file, so that callers can bound reads per store. */
  readonly store: string;
  readonly version: { readonly token: string };
  readonly byteLength: number;
  /** Returns where other programs read the file; undefined if they cannot. */
  place(): MaybePromise<BytePlace | undefined>;
  /**
   * Asserts that the file has the version still, and returns it: at once if that waits for nothing.
   * @param wasChecked As in `ReadOptions`.
   * @throws ZpublishError `source-changed`, `source-unreadable`
   */
  check(wasChecked?: boolean): MaybePromise<StoredVersion>;
  /**
   * Reads bytes: at once from a local file system that is quick.
   * @param allocate Allocates memory for them. Default: memory of their own.
   * @throws ZpublishError `source-changed`, `source-unreadable`; `corrupt-chunk` if the file has not these bytes.
   */
  read(
    offset: number,
    byteLength: number,
    allocate?: (byteLength: number) => Uint8Array<ArrayBuffer>,
  ): MaybePromise<Uint8Array<ArrayBuffer>>;
  /** Returns a URL from which a client can fetch the file itself for some seconds; undefined if clients are not redirected. */
  readonly urlFor?: ((seconds: number) => Promise<string | undefined>) | undefined;
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
interface JoinedFile {
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

/** Maximum length of a request's path parameter in UTF-8. */
const MAX_PATH_BYTES = 1024;

/** Names of documents in a Zarr v2 store, which nodes of a group cannot have. */
const DOCUMENT_NAMES: ReadonlySet<string> = new Set([".zarray", ".zattrs", ".zgroup", ".zmetadata"]);

/**
 * Returns why a node cannot be served under its path; undefined if it can.
 * @param path Without a leading slash.
 */
export function nameProblem(path: string): string | undefined {
  for (const segment of path.split("/")) {
    if (segment === "" || segment === "." || segment === "..") {
      return `expected a name, received ${JSON.stringify(segment)}`;
    }
    if (DOCUMENT_NAMES.has(segment)) return `${segment} is the name of a document`;
  }
  if (/\p{Cc}/u.test(path)) return "the name has control characters, which no request can have";
  if (/\p{Cs}/u.test(path)) return "the name is no valid Unicode";
  const byteLength = Buffer.byteLength(path);
  if (byteLength > MAX_PATH_BYTES) {
    return `expected a path of at most ${MAX_PATH_BYTES} bytes, received ${byteLength}`;
  }
  return undefined;
}

/** Adds a warning if many clients cannot ask for the name of a node. */
export function warnOfName(path: string, warnings: string[]): void {
  const found = /[#?%]/.exec(nodeName(path));
  if (found !== null) warnings.push(`'${path}': many clients cannot ask for a name with "${found[0]}"`);
}

/** Returns a path for a message: with control characters escaped, and cut to 200 characters. */
export function printablePath(path: string): string {
  const text = path.replace(/[\p{Cc}\p{Cs}]/gu, (character) => {
    const code = (character.codePointAt(0) as number).toString(16);
    return `\\u${code.padStart(4, "0")}`;
  });
  return text.length <= 200 ? text : `${text.slice(0, 197)}...`;
}

/** Compares paths of a tree: parents before children, siblings by name in UTF-16 code units. */
export function comparePaths(a: string, b: string): number {
  const left = sortKey(a);
  const right = sortKey(b);
  return left < right ? -1 : left > right ? 1 : 0;
}

/** Returns a path with null characters, which no name has, for slashes. So children come before their parent's next sibling. */
function sortKey(path: string): string {
  return path.includes("/") ? path.replaceAll("/", "\0") : path;
}
