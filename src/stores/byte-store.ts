import { ZpublishError } from "../errors.js";
import type { MaybePromise } from "../event-loop/maybe-promise.js";
import type { BytePlace, StoredVersion } from "../zarr/chunk-reader.js";
import { allocateOwn } from "./file-calls.js";

/**
 * Objects by key, such as the files below a directory, a web server's path or a bucket's prefix. Everything that does not lie in
 * a local Zarr directory is read through one. Keys have no slash at the beginning, and are not percent-encoded.
 */
export interface ByteStore {
  /** The place for messages, pages and metrics: without credentials and queries. */
  readonly location: string;
  /** Text that differs between places, for cache keys. Without credentials. */
  readonly identity: string;
  /** Returns version and length of an object without its bytes; undefined if there is none. @throws ZpublishError `source-unreadable` */
  stat(key: string, signal?: AbortSignal): Promise<ObjectStat | undefined>;
  /**
   * Reads an object, or part of it: all of the bytes asked for, of one version; undefined if there is no such object.
   * @throws ZpublishError `source-unreadable`; `source-changed` if `options.version` is given and the object has another one;
   * `corrupt-chunk` if it is longer than `options.maxByteLength`, or has not the bytes of `options.range`.
   */
  read(key: string, options?: ReadObjectOptions): Promise<ObjectBytes | undefined>;
  /** Reads an object, or part of it, unless it has the known version. @returns `"unchanged"` if it has; else as `read`. */
  readIfChanged(
    key: string,
    known: ObjectVersion,
    options?: ReadObjectOptions,
  ): Promise<ObjectBytes | "unchanged" | undefined>;
  /** The same objects as files of this machine. Default: they are elsewhere. */
  readonly local?: LocalFiles | undefined;
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
  /** Whether clients that fetch such a URL get 404 if there is no object. Default false. */
  readonly urlTellsAbsence?: boolean;
  /**
   * Returns where other programs read the bytes of an object that exists; undefined if they cannot. Default: they cannot.
   * @throws ZpublishError as `stat`
   */
  readonly placeOf?: ((key: string) => MaybePromise<BytePlace | undefined>) | undefined;
}

/** Files of this machine. Results are there at once if their file system is local and quick at present. */
interface LocalFiles {
  /** @param wasChecked Whether the file was checked before, so that its metadata is in memory. Default false. */
  version(key: string, wasChecked?: boolean): MaybePromise<StoredVersion>;
  /** As {@link ByteStore.read}. */
  read(key: string, options?: ReadObjectOptions): MaybePromise<ObjectBytes | undefined>;
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
  /** Entity tag that the object must have, with quotes. Stores without tags do not know it. */
  readonly ifMatch?: string | undefined;
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

/** More bytes than this are not read at once. */
const MAX_READ_BYTES = 2 ** 31 - 1;

/** Bytes of an object that a read asks for. */
export interface ResolvedRange {
  readonly offset: number;
  readonly byteLength: number;
}

/**
 * Resolves the range of a read against the length of the object, before memory is allocated.
 * @throws ZpublishError `corrupt-chunk` if the object has not these bytes, or they are more than may be read.
 */
export function resolveObjectRange(
  key: string,
  objectByteLength: number,
  { range, maxByteLength = MAX_READ_BYTES }: ReadObjectOptions,
): ResolvedRange {
  const resolved =
    range === undefined ? { offset: 0, byteLength: objectByteLength } : placeOf(range, objectByteLength);
  const { offset, byteLength } = resolved;
  if (range !== undefined && (offset < 0 || offset + byteLength > objectByteLength))
    throw shortObject(key, range, objectByteLength);
  if (byteLength > maxByteLength) {
    const message = `'${key}': expected at most ${maxByteLength} bytes, received ${byteLength}`;
    const details = { key, expected: maxByteLength, received: byteLength };
    throw new ZpublishError("corrupt-chunk", message, { details });
  }
  return resolved;
}

/** Returns the error for an object that has not the bytes of a range. */
export function shortObject(key: string, range: ObjectRange, received: number): ZpublishError {
  const expected = "last" in range ? range.last : range.offset + range.byteLength;
  const message = `'${key}': expected at least ${expected} bytes, received ${received}`;
  return new ZpublishError("corrupt-chunk", message, { details: { key, expected, received } });
}

function placeOf(range: ObjectRange, objectByteLength: number): ResolvedRange {
  return "last" in range ? { offset: objectByteLength - range.last, byteLength: range.last } : range;
}

/**
 * Returns what a read asks for of an object that is in memory, copied into the memory that it gives.
 * @param object All of its bytes.
 * @throws ZpublishError `corrupt-chunk`, as {@link resolveObjectRange}.
 */
export function sliceOf(
  key: string,
  object: Uint8Array,
  version: ObjectVersion,
  options: ReadObjectOptions,
): ObjectBytes {
  const { offset, byteLength } = resolveObjectRange(key, object.length, options);
  const bytes = (options.allocate ?? allocateOwn)(byteLength);
  bytes.set(object.subarray(offset, offset + byteLength));
  return { bytes, version, objectByteLength: object.length };
}

/**
 * Asserts that the object from which an index was read still has the version of the index.
 * @throws ZpublishError `source-unreadable` if there is no such object; `source-changed` if it has another version.
 */
export async function assertKnownVersion(
  container: ByteStore,
  key: string,
  version: ObjectVersion,
  signal?: AbortSignal,
): Promise<void> {
  const found = await container.stat(key, signal);
  if (found === undefined) {
    throw new ZpublishError("source-unreadable", `'${key}' is no longer there`, { details: { key } });
  }
  if (found.version.token === version.token) return;
  throw new ZpublishError("source-changed", `'${key}' has been replaced`, { details: { key } });
}

/** Returns location and identity of a store that lies in an object of another one. */
export function childPlace(
  { location, identity }: ByteStore,
  key: string,
): Pick<ByteStore, "location" | "identity"> {
  return { location: join(location, key), identity: join(identity, key) };
}

function join(place: string, key: string): string {
  if (key === "") return place;
  return place.endsWith("/") ? `${place}${key}` : `${place}/${key}`;
}

/** A value of a header: the text itself, or the name of the environment variable that has it. */
export type HeaderValue = string | { readonly env: string };

/**
 * How a remote place is reached: an entry of `stores` in the configuration. Plain data without any secret: those are named, and looked
 * up when the store is opened.
 */
export interface StoreSettings {
  /** Key in the configuration, for messages. */
  readonly name: string;
  /** Locations below this URL use the store: `https://host/path/`, `s3://bucket/prefix/`. */
  readonly url: string;
  /** URL of an S3 service. Default: `AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL`, else Amazon's. */
  readonly endpoint?: string | undefined;
  /** Region of the bucket. Default: `AWS_REGION`, `AWS_DEFAULT_REGION`, else `us-east-1`. */
  readonly region?: string | undefined;
  /** True if the bucket is a part of the path, not of the host. Default: true for an endpoint that is not Amazon's. */
  readonly forcePathStyle?: boolean | undefined;
  /** True if requests are not signed. Default false. */
  readonly anonymous?: boolean | undefined;
  /** Profile of AWS's files that has the credentials. */
  readonly profile?: string | undefined;
  /** Environment variables that have the credentials. Default: AWS's usual sources. */
  readonly credentials?:
    | {
        readonly accessKeyId: { readonly env: string };
        readonly secretAccessKey: { readonly env: string };
        readonly sessionToken?: { readonly env: string } | undefined;
      }
    | undefined;
  /** True if the one who asks pays. Default false. */
  readonly requesterPays?: boolean | undefined;
  /** Statuses that say that there is no object. Default `404`, since 403 may be a credential that expired. */
  readonly missing?: "404" | "404+403" | undefined;
  /** Headers of every request. */
  readonly headers?: Readonly<Record<string, HeaderValue>> | undefined;
  /** True if clients are redirected to the store for whole chunks. Default false. */
  readonly redirect?: boolean | undefined;
}

/** Finds the settings for a location: those with the longest URL that it is below; undefined if there are none. */
export function settingsFor(location: string, stores: readonly StoreSettings[]): StoreSettings | undefined {
  let found: StoreSettings | undefined;
  for (const store of stores) {
    const url = withSlash(store.url);
    if (withSlash(location).startsWith(url) && url.length > (found?.url.length ?? 0))
      found = { ...store, url };
  }
  return found;
}

/** Returns a URL with a slash at its end. */
export function withSlash(url: string): string {
  return url.endsWith("/") ? url : `${url}/`;
}

/** Returns the scheme of a URL in lower case; undefined if the location is a path. */
export function schemeOf(location: string): string | undefined {
  return /^([a-z][a-z0-9+.-]+):\/\//i.exec(location)?.[1]?.toLowerCase();
}

/** A location that says which state of an Icechunk repository is meant: `icechunk:/data/repo?tag=v1`. */
interface RepositoryLocation {
  /** Path or URL of the repository. */
  readonly place: string;
  /** Text after the question mark; empty if there is none. */
  readonly query: string;
}

/** Splits the location of an Icechunk repository; undefined if it is none by its prefix. */
export function repositoryOf(location: string): RepositoryLocation | undefined {
  const [, place, query = ""] = /^icechunk:([^?]*)(?:\?(.*))?$/is.exec(location) ?? [];
  return place === undefined ? undefined : { place, query };
}
