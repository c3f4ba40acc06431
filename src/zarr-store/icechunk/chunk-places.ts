import { createHash } from "node:crypto";
import { createBoundedMap } from "../../collections/bounded-map.js";
import { createLimiter } from "../../collections/limiter.js";
import { createSingleFlight } from "../../collections/single-flight.js";
import { ZpublishError } from "../../errors.js";
import { type MaybePromise, whenDone } from "../../event-loop/maybe-promise.js";
import {
  type ByteStore,
  type ObjectVersion,
  type ReadObjectOptions,
  resolveObjectRange,
  schemeOf,
  sliceOf,
} from "../../stores/byte-store.js";
import { modifiedMsOf } from "../../stores/file-calls.js";
import { allowedUrl, type ReferenceOptions, shownUrl } from "../../stores/reference-store.js";
import { type BytePlace, placeOfPart } from "../../zarr/chunk-reader.js";
import type { PlacedObject } from "../chunk-reader.js";
import { type ChunkRef, decodeManifest, type Manifest, type VirtualRef } from "./manifest.js";
import { isoTimeOf, type ManifestExtent } from "./snapshot.js";

/** Memory of the manifests of all repositories: 7 million chunks, at 37 bytes each. The oldest go, and are read again. */
const MAX_MANIFEST_BYTES = 256 * 2 ** 20;
const manifests = createBoundedMap<Manifest>({
  maxBytes: MAX_MANIFEST_BYTES,
  byteLengthOf: ({ byteLength }) => byteLength,
});
const reading = createSingleFlight<Manifest>();
/** Manifests that are read at a time, of all repositories and of one: while it is decoded, one takes several times its file. */
const readers = createLimiter({ maxRunning: 16, maxPerKey: 8, maxWaiting: 10_000 });

/** Where the chunks of a repository lie. */
export interface ChunkPlacesOptions {
  /** The repository. */
  readonly store: ByteStore;
  /** Where virtual chunks may be. */
  readonly references: ReferenceOptions;
  /** URLs of containers by name, at present. */
  readonly containers: () => ReadonlyMap<string, string>;
}

/** Finds a chunk of an array: at once if its manifest is in memory. @param label Key of the chunk, for messages. */
export type FindChunk = (coords: readonly number[], label: string) => MaybePromise<PlacedObject | undefined>;

/** The object in which the bytes of a chunk lie. */
interface Target {
  readonly store: ByteStore;
  readonly key: string;
}

/** Objects elsewhere that stay open. */
const MAX_TARGETS = 1_024;

/**
 * Creates what finds the chunks of a repository's arrays. A manifest is read when a chunk in it is asked for.
 * Files of a repository never change, so no version of them is ever asked for.
 */
export function createChunkPlaces({ store, references, containers }: ChunkPlacesOptions) {
  const prefix = `${store.identity}\n`;
  const targets = createBoundedMap<Target>({ maxEntries: MAX_TARGETS });

  async function readManifest(id: string): Promise<Manifest> {
    const key = `manifests/${id}`;
    const found = await store.read(key);
    if (found === undefined) throw missing(key);
    const manifest = await decodeManifest(found.bytes, key);
    if (manifest.byteLength > MAX_MANIFEST_BYTES) {
      const received = `received one of ${manifest.byteLength}`;
      const expected = `expected a manifest of at most ${MAX_MANIFEST_BYTES} bytes in memory`;
      throw new ZpublishError("unsupported", `'${key}': ${expected}, ${received}`);
    }
    manifests.set(prefix + id, manifest);
    return manifest;
  }

  function manifestOf(id: string): MaybePromise<Manifest> {
    const key = prefix + id;
    return manifests.get(key) ?? reading.run(key, () => readers.run(store.identity, () => readManifest(id)));
  }

  /** Finds the object of a virtual chunk. @throws ZpublishError `unsupported` if it may not be read */
  function targetOf(url: string, label: string): Target {
    let target = targets.get(url);
    if (target === undefined) {
      target = references.openTarget(allowedUrl(label, url, references));
      targets.set(url, target);
    }
    return target;
  }

  function placedObject(ref: ChunkRef, label: string): PlacedObject {
    // A container may lead elsewhere after a restart: chunks in the cache are of the place before.
    const url = ref.kind === "virtual" ? urlOf(ref.location, containers()) : "";
    const token = tokenOf(ref, url);
    if (ref.kind === "inline") {
      const { bytes } = ref;
      const read = (range: ReadObjectOptions) => sliceOf(label, bytes, { token }, range).bytes;
      return { token, byteLength: bytes.length, read, place: () => undefined };
    }
    const { byteLength } = ref;
    const target = () => (ref.kind === "virtual" ? targetOf(url, label) : { store, key: `chunks/${ref.id}` });
    return {
      token,
      byteLength,
      read(options) {
        const { store, key } = target();
        const { offset, byteLength: length } = resolveObjectRange(label, byteLength, options);
        const range = { offset: ref.offset + offset, byteLength: length };
        const ifMatch = ref.kind === "virtual" && ref.etag !== undefined ? `"${bare(ref.etag)}"` : undefined;
        return whenDone(
          (store.local ?? store).read(key, { range, ifMatch, allocate: options.allocate }),
          (found) => {
            if (found === undefined) throw missing(ref.kind === "virtual" ? shownUrl(ref.location) : key);
            if (ref.kind === "virtual") assertUnchanged(ref, found.version, label, store.local !== undefined);
            return found.bytes;
          },
        );
      },
      place() {
        const { store, key } = target();
        return whenDone(store.placeOf?.(key), (place) => place && (placeOfPart(place, ref) as BytePlace));
      },
    };
  }

  /** Returns what finds the chunks of one array. @param node Its id. */
  return (node: string, extents: readonly ManifestExtent[]): FindChunk => {
    let last = extents[0];
    return (coords, label) => {
      if (last === undefined || !has(last, coords)) {
        const next = extents.find((extent) => has(extent, coords));
        if (next === undefined) return undefined;
        last = next;
      }
      return whenDone(manifestOf(last.id), (manifest) => {
        const ref = manifest.find(node, coords);
        return ref && placedObject(ref, label);
      });
    };
  };
}

function has({ from, to }: ManifestExtent, coords: readonly number[]): boolean {
  for (let axis = 0; axis < coords.length; axis++)
    if (coords[axis]! < from[axis]! || coords[axis]! >= to[axis]!) return false;
  return true;
}

/** Returns the version of a chunk: files of the repository are named by their content, which never changes. @param url Of a virtual one. */
function tokenOf(ref: ChunkRef, url: string): string {
  const hash = (data: Uint8Array | string) => createHash("sha256").update(data).digest("hex").slice(0, 20);
  if (ref.kind === "inline") return `i${hash(ref.bytes)}`;
  const { offset, byteLength } = ref;
  if (ref.kind === "native")
    return `n${ref.id.toLowerCase()}.${offset.toString(36)}.${byteLength.toString(36)}`;
  return `v${hash([url, offset, byteLength, ref.etag, ref.modified].join("\n"))}`;
}

/** What a manifest or snapshot names must be there: a chunk in it is not absent. */
function missing(name: string): ZpublishError {
  const problem = `'${name}' is not there, though the snapshot names it`;
  return new ZpublishError("source-unreadable", problem, { details: { key: name } });
}

/**
 * Returns the URL of a virtual chunk. Icechunk percent-encodes keys; URLs of references are as a client sends them for web servers, and plain
 * for all others.
 * @throws ZpublishError `unsupported` if its container is not known, or its key can only be said encoded
 */
function urlOf(location: string, containers: ReadonlyMap<string, string>): string {
  const [, name, path = ""] = /^vcc:\/\/([^/]+)\/(.*)$/s.exec(location) ?? [];
  const prefix = name === undefined ? "" : containers.get(name);
  const url = prefix === undefined || name === undefined ? location : prefix + path;
  const scheme = schemeOf(url);
  const refused = (expected: string) =>
    new ZpublishError("unsupported", `a virtual chunk is at '${shownUrl(location)}': expected ${expected}`);
  if (prefix === undefined)
    throw refused(`a container of the name ${JSON.stringify(name)} in the repository`);
  if (scheme === undefined) throw refused("a URL");
  if (scheme === "http" || scheme === "https") return url;
  // A key with such a segment means another object than a path does.
  if (/\/\.{1,2}(?:\/|$)/.test(url)) throw refused("a URL without . and ..");
  try {
    return decodeURIComponent(url.replace(/[?#].*$/s, ""));
  } catch {
    throw refused("a URL with valid percent-encoding");
  }
}

function bare(tag: string): string {
  return tag.replace(/^(?:W\/)?"|"$/g, "");
}

/**
 * Asserts that an object is what it was when its chunks were recorded.
 * @throws ZpublishError `source-unreadable` if it is not, or if that cannot be told
 */
function assertUnchanged(
  { etag, modified, location }: VirtualRef,
  { etag: receivedTag, lastModified, token }: ObjectVersion,
  label: string,
  isFile: boolean,
): void {
  const at =
    lastModified !== undefined ? Date.parse(lastModified) : isFile ? modifiedMsOf(token) : Number.NaN;
  const isSame =
    etag === undefined
      ? // Icechunk reads what was not modified after the second that is recorded.
        modified === 0 || Math.floor(at / 1_000) <= modified
      : receivedTag !== undefined && bare(etag) === bare(receivedTag);
  if (isSame) return;
  const [expected, received] =
    etag === undefined
      ? [`no change after ${isoTimeOf(modified * 1e6)}`, Number.isNaN(at) ? "no time" : isoTimeOf(at * 1e3)]
      : [`the ETag ${etag}`, receivedTag ?? "none"];
  const problem = `'${label}' refers to '${shownUrl(location)}', which has changed: expected ${expected}, received ${received}`;
  throw new ZpublishError("source-unreadable", problem, { details: { key: label } });
}
