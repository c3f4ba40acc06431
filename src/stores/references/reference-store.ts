import { createBoundedMap } from "../../collections/bounded-map.js";
import { ZpublishError } from "../../errors.js";
import type {
  ByteStore,
  ObjectBytes,
  ObjectListing,
  ObjectStat,
  ObjectVersion,
  ReadObjectOptions,
} from "../byte-store.js";
import { assertKnownVersion } from "../known-version.js";
import { resolveRange, sliceOf } from "../resolve-range.js";
import { resolveTargetUrl, shownUrl, targetName } from "./target-url.js";

/** A key's data: bytes in the reference file, or (part of) another object. */
export type Reference = { readonly inline: Uint8Array } | TargetReference;

/** A reference to an object, or to part of it. */
export interface TargetReference {
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
}

/** The references of a file, and the file itself. */
export interface OpenedReferences {
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
    const { offset, byteLength } = resolveRange(key, part.byteLength, options);
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
  };
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
