import { createHash } from "node:crypto";
import { resolve } from "node:path";
import { createBoundedMap } from "../collections/bounded-map.js";
import { ZpublishError } from "../errors.js";
import { type CooperativeTask, runCooperatively } from "../event-loop/cooperative-task.js";
import { HIDDEN, placeOfPart } from "../zarr/chunk-reader.js";
import {
  assertKnownVersion,
  type ByteStore,
  type ObjectBytes,
  type ObjectListing,
  type ObjectStat,
  type ObjectVersion,
  type ReadObjectOptions,
  resolveObjectRange,
  type StoreSettings,
  sliceOf,
  withSlash,
} from "./byte-store.js";
import { createFileStore } from "./file-store.js";
import { openByteStore } from "./open-byte-store.js";

/** A key's data: bytes in the reference file, or (part of) another object. */
export type Reference = { readonly inline: Uint8Array } | TargetReference;

/** A reference to an object, or to part of it. */
interface TargetReference {
  /** As it was written: relative, perhaps. */
  readonly url: string;
  /** Undefined: the whole object. */
  readonly part: { readonly offset: number; readonly byteLength: number } | undefined;
}

/** Where references may lead, which their caller decides. */
export interface ReferenceOptions {
  /**
   * URL of the folder in which the references lie, with a slash at the end; relative URLs are resolved against it. Only URLs of web
   * servers are percent-encoded: `file:///data/a b/`, `s3://bucket/a b/`.
   */
  readonly folder: string;
  /** Tells if data may be read from a URL, which is absolute, written as `folder` is, and has no `..` in it. */
  readonly isAllowed: (url: string) => boolean;
  /** Opens the store of an allowed URL. @throws ZpublishError `unsupported` if there is none for it. */
  readonly openTarget: (url: string) => { readonly store: ByteStore; readonly key: string };
}

/** References as a byte store. */
export interface ReferenceStore extends ByteStore {
  /** Version of the reference file. */
  readonly version: ObjectVersion;
  /**
   * Checks where references lead, without reading anything there: all references of a JSON file, and of parquet files the first ones
   * of each array.
   * @throws ZpublishError `unsupported`, naming the places that are not allowed
   */
  assertAllowed(): Promise<void>;
}

/** The references of a file, and the file itself. */
interface OpenedReferences {
  /** Store of the reference file. */
  readonly container: ByteStore;
  /** Name of the reference file. */
  readonly key: string;
  readonly version: ObjectVersion;
  /** Location and identity of the store. */
  readonly place: Pick<ByteStore, "location" | "identity">;
  readonly find: (
    key: string,
    signal?: AbortSignal,
  ) => Reference | undefined | Promise<Reference | undefined>;
  /** Finds a reference that is in memory; `"unknown"` if it would have to be read. */
  readonly findNow: (key: string) => Reference | undefined | "unknown";
  readonly list: (prefix: string) => Promise<ObjectListing>;
  /** Returns the URLs of references, as they were written; see {@link ReferenceStore.assertAllowed}. */
  readonly urls: () => Promise<Iterable<string>>;
}

/** Targets that stay open. */
const MAX_TARGETS = 1024;

interface Target {
  readonly store: ByteStore;
  readonly key: string;
  /** Name of the object that differs between URLs. */
  readonly name: string;
}

/**
 * Creates the store of references. Its objects have the versions of the objects in which they lie: those of inline data the
 * version of the reference file.
 */
export function createReferenceStore(opened: OpenedReferences, options: ReferenceOptions): ReferenceStore {
  const { container, key: file, version } = opened;
  const targets = createBoundedMap<Target>({ maxEntries: MAX_TARGETS });

  function targetOf(key: string, written: string): Target {
    const known = targets.get(written);
    if (known !== undefined) return known;
    const url = allowedUrl(key, written, options);
    const { store, key: targetKey } = options.openTarget(url);
    const target = { store, key: targetKey, name: targetName(url) };
    targets.set(written, target);
    return target;
  }

  const assertCurrent = (signal?: AbortSignal): Promise<void> =>
    assertKnownVersion(container, file, version, signal);

  function readInline(key: string, bytes: Uint8Array, options: ReadObjectOptions): ObjectBytes {
    if (options.version !== undefined && options.version.token !== version.token) {
      throw new ZpublishError("source-changed", `'${key}': '${file}' has another version`, {
        details: { key },
      });
    }
    return sliceOf(key, bytes, version, options);
  }

  /** Finds the object of a reference, and the bytes in it that a read asks for. */
  function locate(
    key: string,
    { url, part }: TargetReference,
    options: ReadObjectOptions,
  ): { readonly target: Target; readonly targetOptions: ReadObjectOptions } {
    const target = targetOf(key, url);
    if (part === undefined) return { target, targetOptions: options };
    const { offset, byteLength } = resolveObjectRange(key, part.byteLength, options);
    const range = { offset: part.offset + offset, byteLength };
    return { target, targetOptions: { ...options, range } };
  }

  function partOf(key: string, { url, part }: TargetReference, found: ObjectBytes | undefined): ObjectBytes {
    if (found === undefined) throw missing(key, url);
    return part === undefined ? found : { ...found, objectByteLength: part.byteLength };
  }

  return {
    ...opened.place,
    version,
    async stat(key, signal): Promise<ObjectStat | undefined> {
      const reference = await opened.find(key, signal);
      if (reference === undefined || "inline" in reference) {
        await assertCurrent(signal);
        return reference && { version, byteLength: reference.inline.length };
      }
      const target = targetOf(key, reference.url);
      const found = await target.store.stat(target.key, signal);
      if (found === undefined) throw missing(key, reference.url);
      return { version: found.version, byteLength: reference.part?.byteLength ?? found.byteLength };
    },
    async read(key, options = {}) {
      const reference = await opened.find(key, options.signal);
      if (reference === undefined) return assertCurrent(options.signal).then(() => undefined);
      if ("inline" in reference) return readInline(key, reference.inline, options);
      const { target, targetOptions } = locate(key, reference, options);
      return partOf(key, reference, await target.store.read(target.key, targetOptions));
    },
    async readIfChanged(key, known, options = {}) {
      const reference = await opened.find(key, options.signal);
      if (reference === undefined || "inline" in reference) {
        await assertCurrent(options.signal);
        if (reference === undefined) return undefined;
        return known.token === version.token ? "unchanged" : readInline(key, reference.inline, options);
      }
      const { target, targetOptions } = locate(key, reference, options);
      const found = await target.store.readIfChanged(target.key, known, targetOptions);
      return found === "unchanged" ? found : partOf(key, reference, found);
    },
    list: opened.list,
    objectOf(key) {
      const reference = opened.findNow(key);
      if (reference === undefined) return undefined;
      if (reference === "unknown") return key;
      if ("inline" in reference) return file;
      try {
        return targetOf(key, reference.url).name;
      } catch {
        // Reading it says why it is refused.
        return key;
      }
    },
    async placeOf(key) {
      const reference = await opened.find(key);
      if (reference === undefined || "inline" in reference) return undefined;
      const target = targetOf(key, reference.url);
      const place = placeOfPart(await target.store.placeOf?.(target.key), reference.part);
      return place === HIDDEN ? undefined : place;
    },
    assertAllowed: async () => runCooperatively(assertAllowed(await opened.urls(), options)),
  };
}

/** Places that an error names. */
const MAX_NAMED = 3;

/** @throws ZpublishError `unsupported` if one of the URLs is not allowed */
function* assertAllowed(
  urls: Iterable<string>,
  { folder, isAllowed }: ReferenceOptions,
): CooperativeTask<void> {
  const places = new Set<string>();
  for (const written of urls) {
    yield;
    const url = resolveTargetUrl(written, folder);
    if (!isAllowed(url)) places.add(shownUrl(url).replace(/[^/]*$/, ""));
  }
  if (places.size === 0) return;
  const named = [...places].slice(0, MAX_NAMED).map((place) => JSON.stringify(place));
  const rest = places.size > MAX_NAMED ? ` and ${places.size - MAX_NAMED} other places` : "";
  throw new ZpublishError(
    "unsupported",
    `its references lead to ${named.join(", ")}${rest}, which the configuration does not allow: ` +
      `expected "references": {"allow": [${named.join(", ")}${rest === "" ? "" : ", …"}]}`,
  );
}

/** Returns the absolute URL of a reference. @throws ZpublishError `unsupported` if it is not allowed. */
export function allowedUrl(key: string, written: string, { folder, isAllowed }: ReferenceOptions): string {
  const url = resolveTargetUrl(written, folder);
  if (isAllowed(url)) return url;
  throw new ZpublishError(
    "unsupported",
    `'${key}' refers to '${shownUrl(url)}', which is not among the places that references may lead to`,
    { details: { key } },
  );
}

/** A reference to nothing is data that is not there now, so the key is not absent. */
function missing(key: string, url: string): ZpublishError {
  return new ZpublishError(
    "source-unreadable",
    `'${key}' refers to '${shownUrl(url)}', which does not exist`,
    {
      details: { key },
    },
  );
}

const SCHEME = /^([a-z][a-z0-9+.-]*):\/\/([^/?#]*)(.*)$/is;

/**
 * Resolves the URL of a reference: a relative one against the folder of the references, and `.` and `..` in its path. URLs of web
 * servers are percent-encoded, as a client would send them; others, such as `s3://bucket/a b`, are not.
 * @throws ZpublishError `unsupported` for URLs with credentials, for URLs that lead above the root, and for chains of fsspec
 * (`simplecache::…`).
 */
function resolveTargetUrl(url: string, folder: string): string {
  const absolute = SCHEME.test(url) ? url : below(url, folder);
  const [, scheme = "", authority = "", rest = ""] = SCHEME.exec(absolute) ?? [];
  if (scheme === "" || absolute.includes("::")) throw refused(url, "a URL of one object");
  if (authority.includes("@")) throw refused(url, "a URL without credentials");
  const kind = scheme.toLowerCase();
  return kind === "http" || kind === "https"
    ? webUrl(url, absolute)
    : `${kind}://${authority}${resolvePath(url, rest, kind === "file")}`;
}

/** Returns a URL for messages: without query, fragment and credentials. */
export function shownUrl(url: string): string {
  const shown = url.replace(/[?#].*$/s, "").replace(/\/\/[^/]*@/, "//");
  return shown.length <= 200 ? shown : `${shown.slice(0, 197)}...`;
}

/** Returns a name that differs between URLs, and contains no query: that may be a credential. */
function targetName(url: string): string {
  const shown = url.replace(/[?#].*$/s, "");
  return shown === url ? url : `${shown}?${createHash("sha256").update(url).digest("hex").slice(0, 16)}`;
}

function below(url: string, folder: string): string {
  if (!url.startsWith("/")) return `${folder}${url}`;
  // An absolute path is one of the same machine as the references, or of the same bucket or server.
  const [, scheme = "", authority = ""] = SCHEME.exec(folder) ?? [];
  return `${scheme}://${authority}${url}`;
}

function webUrl(url: string, absolute: string): string {
  if (!URL.canParse(absolute)) throw refused(url, "a valid URL");
  const parsed = new URL(absolute);
  parsed.hash = "";
  // Servers may decode a segment that still has dots or slashes in it, and leave the folder.
  const segments = parsed.pathname.split("/").map((segment) => decode(segment));
  if (segments.some((segment) => segment === undefined || /[/\\]|^\.{1,2}$/.test(segment))) {
    throw refused(url, "a URL without encoded slashes or dots");
  }
  return parsed.href;
}

function decode(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

/** @param isFile Whether several slashes are one; in keys of objects they are not. */
function resolvePath(url: string, path: string, isFile: boolean): string {
  const resolved: string[] = [];
  for (const segment of path.split("/").slice(1)) {
    if (segment === "." || (isFile && segment === "")) continue;
    if (segment !== "..") resolved.push(segment);
    else if (resolved.pop() === undefined) throw refused(url, "a URL that stays below its root");
  }
  return `/${resolved.join("/")}`;
}

function refused(url: string, expected: string): ZpublishError {
  return new ZpublishError("unsupported", `a reference leads to '${shownUrl(url)}', expected ${expected}`);
}

/** Places of references. */
export interface ReferencePlaces {
  readonly stores?: readonly StoreSettings[] | undefined;
  /** URLs and absolute paths below which references may lead. Default: the folder of the reference file. */
  readonly allow?: readonly string[] | undefined;
}

/**
 * Returns how the targets of references are opened: only below the places that are allowed.
 * @param folder The folder of the reference file, as in `ReferenceOptions`.
 */
export function referenceOptions(
  { folder }: { readonly folder: string },
  { stores = [], allow = [folder] }: ReferencePlaces,
): ReferenceOptions {
  const places = allow.map(urlOfPlace);
  const placeOf = (url: string) => places.find((place) => url.startsWith(withSlash(place)) || url === place);
  return {
    folder,
    isAllowed: (url) => placeOf(url) !== undefined,
    openTarget(url) {
      if (url.startsWith("file://")) {
        const place = withSlash(placeOf(url) as string);
        // Links may lead to files below the allowed place, never out of it.
        const root = url === placeOf(url) ? url.slice(0, url.lastIndexOf("/") + 1) : place;
        return {
          store: createFileStore(resolve(root.slice("file://".length))),
          key: url.slice(root.length),
        };
      }
      if (url.includes("?"))
        throw new ZpublishError(
          "unsupported",
          "expected a reference to a URL without query, received one with it",
        );
      const parent = url.slice(0, url.lastIndexOf("/") + 1);
      const name = url.slice(parent.length);
      return {
        store: openByteStore(parent, stores),
        key: url.startsWith("s3:") ? name : decodeURIComponent(name),
      };
    },
  };
}

/** Returns the URL of a place that the operator wrote: local paths become `file://` URLs, which are not percent-encoded. */
function urlOfPlace(place: string): string {
  if (place.startsWith("/")) return `file://${place}`;
  return /^https?:/i.test(place) ? new URL(place).href : place;
}
