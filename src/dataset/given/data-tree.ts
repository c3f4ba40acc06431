import type { Readable } from "zarrita";
import { configError, describeValue, resolveLocation } from "../../config/value-schemas.js";
import type { DataTree } from "../../model/data-tree.js";
import { createMemorySource } from "../../open/memory/memory-source.js";
import { openSource } from "../../open/open-source.js";
import { createZarritaStore, type ZarritaStoreOptions } from "../../stores/zarrita-store.js";
import type { Refusal, Source } from "../../zarr/stored-tree.js";
import { createObjectSource } from "../../zarr-store/objects/object-source.js";
import { createSnapshot } from "../create-snapshot.js";
import { type GroupInput, readGroups } from "./group-input.js";

/** A data tree that can be served, from {@link openDataTree} or {@link createDataTree}. */
export interface ServableTree extends DataTree {
  readonly location: string;
  /** Arrays and groups of the location that cannot be served. */
  readonly refused: readonly Refusal[];
}

/** Options of {@link createDataTree}. */
export interface CreateDataTreeOptions {
  /**
   * Version of the data, for ETags and cache keys. Default: a hash of all values, which takes about a second per GB.
   */
  readonly revision?: string;
}

/** Time for which the version of a given store is believed. */
const VERSION_SECONDS = 1;

/** Sources of trees, whose `close` does nothing. They are no part of the public interface. */
const sources = new WeakMap<ServableTree, Source>();

/**
 * Opens a location: the path of a directory or file, or a `file:`, `https:`, `http:` or `s3:` URL.
 * @throws ZpublishError `invalid-config`, `invalid-metadata`, `source-unreadable`, or `unsupported` if it is another kind
 * of file.
 */
export async function openDataTree(location: string): Promise<ServableTree> {
  if (typeof location !== "string" || location === "") {
    throw configError([`openDataTree: expected a location, received ${describeValue(location)}`]);
  }
  return servableTree(await openSource(resolveLocation(location, process.cwd())));
}

/**
 * Builds a data tree of typed arrays. Values are copied once into memory that workers share, unless they are in a
 * SharedArrayBuffer already.
 * @throws ZpublishError `invalid-metadata`, naming the group or variable, if a value has the wrong type, or an array's data
 * do not fit its shape or type.
 */
export async function createDataTree(
  root: GroupInput,
  { revision }: CreateDataTreeOptions = {},
): Promise<ServableTree> {
  const groups = readGroups(root);
  return servableTree(createMemorySource({ groups, ...(revision === undefined ? {} : { revision }) }));
}

/**
 * Opens the Zarr store behind any store that implements zarrita's `Readable` (`FetchStore`, `ReferenceStore`, `ZipFileStore`, a `Map`,
 * one's own). It is read on the server's thread, and encoded by the workers.
 * @throws ZpublishError `invalid-metadata`, `source-unreadable`, or `unsupported` if it has no consolidated metadata and no `list`.
 */
export async function zarrStoreSource(
  store: Readable,
  options: ZarritaStoreOptions = {},
): Promise<ServableTree> {
  const { location = "zarrita", version } = options;
  const source = createObjectSource({
    location,
    store: createZarritaStore(store, options),
    rootArrayName: "data",
    freshness: version === undefined ? "immutable" : { seconds: VERSION_SECONDS },
    names: [],
  });
  return servableTree(source);
}

/**
 * Looks up the source of a tree that this module made; undefined for other objects. It stays open when a dataset of it closes. There
 * is one object per tree, by which a reload recognises it.
 */
export function sourceOf(tree: ServableTree): Source | undefined {
  return sources.get(tree);
}

async function servableTree(source: Source): Promise<ServableTree> {
  const stored = await source.readTree();
  const config = { id: "", location: source.location, immutable: false, encoding: {}, variables: {} };
  const { tree, refused } = createSnapshot(config, stored, "");
  const servable: ServableTree = Object.freeze({ ...tree, location: source.location, refused });
  sources.set(servable, { ...source, close: async () => undefined });
  return servable;
}
