import { realpath, type Stats, stat } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { ZpublishError } from "../errors.js";
import { HEAD_BYTES } from "../formats/file-format.js";
import { createFileSource, type FilePlace } from "../formats/file-source.js";
import { FORMATS } from "../formats/formats.js";
import { indexedFileOf, type KeptIndexes } from "../formats/kept-indexes.js";
import { createVersionedFile } from "../formats/versioned-file.js";
import { type ByteStore, type ObjectBytes, repositoryOf, schemeOf } from "../stores/byte-store.js";
import { codeOf, createFileCalls } from "../stores/file-calls.js";
import { createFileStore } from "../stores/file-store.js";
import { createFreshObjects, type Freshness } from "../stores/object-versions.js";
import { openByteStore } from "../stores/open-byte-store.js";
import { type ReferencePlaces, type ReferenceStore, referenceOptions } from "../stores/reference-store.js";
import {
  isParquetMetadata,
  isReferences,
  openParquetReferences,
  openReferences,
} from "../stores/references.js";
import { isZip, openZipStore } from "../stores/zip/zip-store.js";
import { nameProblem, type Source, withinLocation } from "../zarr/stored-tree.js";
import { createIcechunkSource } from "../zarr-store/icechunk/icechunk-source.js";
import { isRepository, type RepositoryRef } from "../zarr-store/icechunk/repository.js";
import { createDirectorySource, createIndexedSource } from "../zarr-store/zarr-source.js";
import { createRemoteSource, unknownFile } from "./remote-source.js";

/** Options of {@link openSource}. */
export interface OpenSourceOptions extends ReferencePlaces {
  /** Default: five seconds. */
  readonly freshness?: Freshness | undefined;
  /** Paths of arrays to read if nothing lists them. */
  readonly names?: readonly string[] | undefined;
  /** Indexes of files that are kept between runs. Default: none are. */
  readonly kept?: KeptIndexes | undefined;
  /** The state of an Icechunk repository, which the location has to be then. Default: that of `main`, if it is one. */
  readonly ref?: RepositoryRef | undefined;
}

/** For how long answers of stores are believed by default. */
export const DEFAULT_FRESHNESS: Freshness = { seconds: 5 };
/** The state of a repository that is served if none is named. */
const MAIN_BRANCH: RepositoryRef = { kind: "branch", name: "main" };
/** Name of the variable if the store is a single array and its location has no name that can be served. */
const FALLBACK_ARRAY_NAME = "data";

/**
 * Opens a location: the path of a directory or file, its `file:` URL, or the URL of a directory or file behind `https:`, `http:` or
 * `s3:`; or one of these with `icechunk:` before it, and a branch, tag or snapshot after it. Its documents and first bytes decide what it is. `readTree` then reads its metadata.
 * @throws ZpublishError `invalid-config`, `invalid-metadata`, `unsupported`
 */
export async function openSource(location: string, options: OpenSourceOptions = {}): Promise<Source> {
  const repository = repositoryOf(location);
  if (repository !== undefined)
    return openSource(repository.place, { ...options, ref: refOf(repository.query) });
  const scheme = schemeOf(location);
  if (scheme === undefined) return openLocal(location, resolve(location), options);
  if (scheme === "file") return openLocal(location, pathOf(location), options);
  const { stores = [] } = options;
  const url = location.replace(/\/+$/, "");
  const parent = url.slice(0, url.lastIndexOf("/") + 1);
  const isRoot = /^[a-z0-9+.-]+:\/\/$/i.test(parent);
  const folder = isRoot ? `${url}/` : parent;
  const isDirectory = location.endsWith("/") || isRoot;
  const store = openByteStore(url, stores);
  const name = url.slice(folder.length);
  const file = isDirectory
    ? undefined
    : { store: openByteStore(folder, stores), key: scheme === "s3" ? name : decodeName(name) };
  const openRepository = repositoryIn({ location, folder }, options);
  if (options.ref !== undefined) {
    if (file === undefined || !/\.(?:zip|ozx)$/i.test(name)) return openRepository(store) as Promise<Source>;
    return openArchive({ location, folder, container: file.store }, file.key, options);
  }
  return createRemoteSource({
    ...contextOf(location, options),
    store,
    file,
    openRepository: () => openRepository(store),
    isKept: file && (async () => options.kept?.has(indexedFileOf(file.store, file.key)) ?? false),
    openFile: (container, key, head) => openFile({ location, folder, container, key }, head, options),
    openReferences: (zmetadata) =>
      isParquetMetadata(zmetadata)
        ? openReferenceDirectory({ location, folder, container: store }, options)
        : undefined,
  });
}

/** @throws ZpublishError `invalid-config` */
function refOf(query: string): RepositoryRef {
  const [, kind, name = ""] = /^(branch|tag|snapshot)=(.+)$/s.exec(query) ?? [];
  if (query === "") return MAIN_BRANCH;
  if (kind !== undefined) return { kind: kind as RepositoryRef["kind"], name };
  throw new ZpublishError(
    "invalid-config",
    `expected ?branch=…, ?tag=… or ?snapshot=… after a repository, received ${JSON.stringify(`?${query}`)}`,
  );
}

function pathOf(location: string): string {
  try {
    return resolve(fileURLToPath(location));
  } catch (cause) {
    throw new ZpublishError("invalid-metadata", `expected a file URL of this machine, received ${location}`, {
      cause,
    });
  }
}

async function openLocal(location: string, path: string, options: OpenSourceOptions): Promise<Source> {
  const calls = createFileCalls(path);
  const found = await calls.call<Stats>((done) => stat(path, done)).catch(() => undefined);
  if (found !== undefined && !found.isFile() && !found.isDirectory())
    throw new ZpublishError(
      "unsupported",
      `${location}: expected a file or directory, found a device, pipe or socket`,
    );
  const real = found === undefined ? path : await withinLocation(location, () => realPath(path));
  const folder = `file://${dirname(real)}/`;
  if (!found?.isFile()) {
    const directory = createFileStore(real);
    if (found !== undefined && (await hasParquetMetadata(directory)))
      return openReferenceDirectory({ location, folder, container: directory }, options);
    const open = repositoryIn({ location, folder }, options);
    const isThere = found !== undefined || options.ref !== undefined;
    const repository = isThere ? await withinLocation(location, () => open(directory)) : undefined;
    if (repository !== undefined) return repository;
    return createDirectorySource(location.startsWith("file:") ? path : location);
  }
  const container = createFileStore(dirname(real));
  const key = basename(real);
  const range = { offset: 0, byteLength: Math.min(HEAD_BYTES, found.size) };
  const head = await withinLocation(location, () => container.read(key, { range }));
  const locate = () => realPlace(path);
  if (options.ref !== undefined && !(head && isZip(head.bytes)))
    throw new ZpublishError(
      "unsupported",
      `${location}: expected an Icechunk repository, received a file that is no zip archive`,
    );
  const source = head && openFile({ location, folder, container, key, locate }, head, options);
  if (source !== undefined) return source;
  throw new ZpublishError("unsupported", `${location}: ${unknownFile(head?.bytes ?? new Uint8Array(0))}`);
}

/** Finds the file behind a path, which may be a link. @throws ZpublishError `source-unreadable` */
export async function realPlace(path: string): Promise<FilePlace> {
  const real = await realPath(path);
  return { store: createFileStore(dirname(real)), key: basename(real) };
}

/** @throws ZpublishError `source-unreadable` */
export async function realPath(path: string): Promise<string> {
  try {
    return await createFileCalls(path).call<string>((done) => realpath.native(path, done));
  } catch (cause) {
    throw new ZpublishError("source-unreadable", `it cannot be read (${codeOf(cause)})`, { cause });
  }
}

/** Tells whether a directory has references in parquet, from the end of its `.zmetadata`, where their writer says how many a file has. */
async function hasParquetMetadata(directory: ByteStore): Promise<boolean> {
  const found = await directory.read(".zmetadata", { range: { last: 64 } }).catch(() => undefined);
  return found !== undefined && isParquetMetadata(Buffer.from(found.bytes).toString("latin1"));
}

/** A file, or a directory of references, and the folder in which it lies. */
interface Place {
  readonly location: string;
  /** As in `ReferenceOptions`. */
  readonly folder: string;
  /** The store that has the file, or is the directory. */
  readonly container: ByteStore;
}

/** Opens a file by its first bytes; undefined if they are of no kind that is known. */
function openFile(
  place: Place & { readonly key: string; readonly locate?: () => Promise<FilePlace> },
  head: ObjectBytes,
  options: OpenSourceOptions,
): Source | undefined {
  const { location, container, key, locate } = place;
  const context = { ...contextOf(location, options), container, key };
  const { bytes } = head;
  if (FORMATS.some((format) => format.recognizes(bytes.subarray(0, HEAD_BYTES)))) {
    const { freshness } = context;
    const { kept } = options;
    return createFileSource({
      ...{ location, store: container, key, formats: FORMATS, freshness },
      ...{ head, kept, locate },
    });
  }
  if (isZip(bytes)) return openArchive(place, key, options);
  if (!isReferences(bytes)) return undefined;
  const references = referenceOptions(place, options);
  return createIndexedSource({ ...context, open: () => allowed(openReferences(container, key, references)) });
}

function openArchive(place: Place, key: string, options: OpenSourceOptions): Source {
  const { location, container } = place;
  const context = contextOf(location, options);
  const source = createIndexedSource({
    ...{ ...context, container, key, sourceIn: repositoryIn(place, options) },
    open: () => openZipStore(container, key),
  });
  return withFile(source, { store: container, key }, context.freshness);
}

/** Returns what opens the repository in a store; undefined if there is none, unless there has to be one. */
function repositoryIn(
  place: Omit<Place, "container">,
  options: OpenSourceOptions,
): (store: ByteStore) => Promise<Source | undefined> {
  const { location } = place;
  const { rootArrayName } = contextOf(location, options);
  return async (store) => {
    if (options.ref === undefined && !(await isRepository(store))) return undefined;
    const { ref = MAIN_BRANCH } = options;
    const references = referenceOptions(place, options);
    return createIcechunkSource({ location, store, ref, references, rootArrayName });
  };
}

/** Adds the file to the trees of a source that reads all from it. */
function withFile(source: Source, { store, key }: FilePlace, freshness: Freshness): Source {
  return {
    ...source,
    get versions() {
      return source.versions;
    },
    async readTree(progress) {
      const tree = await source.readTree(progress);
      const stat = await store.stat(key);
      if (stat === undefined) return tree;
      const objects = createFreshObjects(store, freshness);
      return { ...tree, file: createVersionedFile(store, key, stat, objects, tree.identity) };
    },
  };
}

function openReferenceDirectory(place: Place, options: OpenSourceOptions): Source {
  const { location, container } = place;
  const references = referenceOptions(place, options);
  return createIndexedSource({
    ...contextOf(location, options),
    container,
    key: ".zmetadata",
    open: () => allowed(openParquetReferences(container, "", references)),
  });
}

/** Refuses references that lead where they may not: each of their chunks would be an error. @throws ZpublishError `unsupported` */
async function allowed(opening: Promise<ReferenceStore>): Promise<ReferenceStore> {
  const store = await opening;
  await store.assertAllowed();
  return store;
}

function contextOf(location: string, { freshness = DEFAULT_FRESHNESS, names = [] }: OpenSourceOptions) {
  return { location, freshness, names, rootArrayName: arrayNameOf(location) };
}

/** Returns the last part of a location without its extensions, as the name of an array. */
function arrayNameOf(location: string): string {
  const base = decodeName(location.split(/[\\/]/).findLast((part) => part !== "") ?? "");
  const name = base.replace(/(?<=.)(\.zarr)?\.[^.]*$/, "");
  return name === "" || nameProblem(name) !== undefined ? FALLBACK_ARRAY_NAME : name;
}

function decodeName(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
