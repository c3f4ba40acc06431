import { basename, dirname, join, resolve } from "node:path";
import { createBoundedMap } from "../collections/bounded-map.js";
import { type MaybePromise, whenDone } from "../event-loop/maybe-promise.js";
import { FORMATS } from "../formats/formats.js";
import { type ChunkIndex, openIndexedChunks } from "../formats/table-chunk-reader.js";
import { openChunkReader } from "../open/chunk-reader.js";
import { DEFAULT_FRESHNESS, type OpenSourceOptions, realPath, realPlace } from "../open/open-source.js";
import { schemeOf } from "../stores/byte-store.js";
import { createFileStore } from "../stores/file-store.js";
import { createFreshObjects, type FreshObjects } from "../stores/object-versions.js";
import { openByteStore } from "../stores/open-byte-store.js";
import type { ChunkFiles, ChunkReader } from "../zarr/chunk-reader.js";
import type { StoredTree } from "../zarr/stored-tree.js";
import { lookAtDocuments } from "../zarr-store/local-hierarchy.js";
import type { FilePlaces, KnownPart, PartDescription, PartPlaces, StorePlaces } from "./describe-part.js";

/** Opens a reader of an array by its path; undefined if the part has to be opened for it. */
export type OpenPlaced = (path: string) => ChunkReader | undefined;

/** Finds the places of the chunks of a part; undefined if there are none. Coordinates have none: their values are known. */
export function findPlaces(
  { groups, identity }: StoredTree,
  description: PartDescription,
): PartPlaces | undefined {
  const { arrays } = description;
  const sources = groups.flatMap((group) => group.arrays.map(({ chunks }) => chunks));
  const wanted = sources.map((chunks, index) => (arrays[index]?.values === undefined ? chunks : undefined));
  const placed = wanted.map((chunks) => (chunks?.kind === "ranges" && chunks.index ? chunks : undefined));
  const first = placed.find((chunks) => chunks !== undefined);
  if (first !== undefined) {
    const { store, key } = first;
    const { file, format } = first.index as ChunkIndex;
    const tables = placed.map((chunks) => (chunks?.index as ChunkIndex | undefined)?.chunks ?? null);
    return { kind: "file", store, key, file, format, tables };
  }
  let root: string | undefined;
  const chunks = wanted.map((source) => {
    const isFile = source?.kind === "files" || source?.kind === "shards";
    if (!isFile || source.objects !== undefined || source.root === undefined) return null;
    root = source.root;
    return { ...source, root: "", ...movedTo("", source, root.length) };
  });
  const looked = root === undefined ? undefined : lookAtDocuments(root, pathsOf(description));
  if (looked?.identity() !== identity) return undefined;
  return { kind: "store", layout: { chunks }, records: looked.records.slice(0, arrays.length) };
}

/** Returns the paths of arrays, then of all other nodes. */
function pathsOf({ groups, arrays, refused }: PartDescription): string[] {
  const nodes = [...arrays.map(({ stored }) => stored), ...refused].map(({ path }) => path);
  return [...nodes, ...groups.map(({ path }) => path.slice(1))];
}

/** Returns the paths of chunks with another root. @param length Of the root that they have. */
function movedTo(root: string, { directory, metadataFile }: ChunkFiles, length: number) {
  return {
    directory: root + directory.slice(length),
    ...(metadataFile !== undefined && { metadataFile: root + metadataFile.slice(length) }),
  };
}

/** Bytes of a table of places, or of the records of documents. */
const TABLE_BYTES = 512;
/** Bytes of the place of a chunk: its offset, its length, and its number or variant. */
const PLACE_BYTES = 21;

/** Estimates the memory of places. */
export function memoryOfPlaces(places: PartPlaces | undefined): number {
  if (places === undefined) return 0;
  if (places.kind === "store") return places.records.length * TABLE_BYTES;
  const tables = places.tables.filter((table) => table !== null);
  const counts = tables.map((table) => (table.kind === "listed" ? table.offsets.length : 0));
  return counts.reduce((sum, count) => sum + TABLE_BYTES + count * PLACE_BYTES, TABLE_BYTES);
}

/** Begins the name of a store of this machine. */
const LOCAL = "file:";
/** Stores of parts that are kept open: one for each folder of files. */
const MAX_STORES = 1_024;
/** Time for which a folder is believed to be no link, or to lead where it did. */
const REAL_FOR_MS = 1_000;

/**
 * Creates what opens the chunks of parts by their places, at once if they are in a file. Undefined if the part has to be opened.
 * @param locationOf Returns the location of a part.
 */
export function createOpenPlaced(locationOf: (name: string) => string, options: OpenSourceOptions) {
  const { stores = [], freshness = DEFAULT_FRESHNESS } = options;
  const known = createBoundedMap<FreshObjects>({ maxEntries: MAX_STORES });
  const folders = createBoundedMap<{ real: string; untilMs: number }>({ maxEntries: MAX_STORES });

  function objectsOf(store: string, location: string): FreshObjects | undefined {
    const found = known.get(store);
    if (found !== undefined) return found;
    const opened = store.startsWith(LOCAL)
      ? createFileStore(store.slice(LOCAL.length))
      : openByteStore(location.slice(0, location.lastIndexOf("/") + 1), stores);
    if (opened.identity !== store) return undefined;
    const objects = createFreshObjects(opened, freshness);
    known.set(store, objects);
    return objects;
  }

  /** Finds the real path of a folder of stores, which may change while they are served. */
  function realFolder(folder: string): MaybePromise<string | undefined> {
    const before = folders.get(folder);
    if (before !== undefined && performance.now() < before.untilMs) return before.real;
    const found = realPath(folder).then((real) => {
      folders.set(folder, { real, untilMs: performance.now() + REAL_FOR_MS });
      return real;
    });
    return found.catch(() => undefined);
  }

  function openFile({ name, identity, description }: KnownPart, places: FilePlaces): OpenPlaced | undefined {
    const location = locationOf(name);
    const { store, key, file, format } = places;
    const objects = objectsOf(store, location);
    if (objects === undefined) return undefined;
    const hasMoved = async (): Promise<boolean> => {
      if (schemeOf(location) !== undefined) return false;
      const found = await realPlace(location).catch(() => undefined);
      return found !== undefined && (found.store.identity !== store || found.key !== key);
    };
    const opened = { objects, key, identity, hasMoved, formats: FORMATS };
    return (path) => {
      const index = description.arrays.findIndex(({ stored }) => stored.path === path);
      const chunks = places.tables[index];
      const stored = description.arrays[index]?.stored;
      if (!chunks || stored === undefined) return undefined;
      return openIndexedChunks(opened, stored, { file, format, chunks });
    };
  }

  function openStore(
    { name, description: { arrays } }: KnownPart,
    { layout, records }: StorePlaces,
  ): MaybePromise<OpenPlaced | undefined> {
    const location = resolve(locationOf(name));
    return whenDone(realFolder(dirname(location)), (folder) => {
      if (folder === undefined) return undefined;
      const root = join(folder, basename(location));
      return (path) => {
        const index = arrays.findIndex(({ stored }) => stored.path === path);
        const source = layout.chunks[index];
        if (!source || lookAtDocuments(root, [path])?.records[0] !== records[index]) return undefined;
        return openChunkReader({ ...source, root, ...movedTo(root, source, 0) });
      };
    });
  }

  return (part: KnownPart) => {
    const { places } = part;
    if (places === undefined) return undefined;
    return places.kind === "file" ? openFile(part, places) : openStore(part, places);
  };
}
