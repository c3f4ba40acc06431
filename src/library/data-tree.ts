import { resolveLocation } from "../config/locate.js";
import { configError, describeValue } from "../config/problem.js";
import { createSnapshot } from "../dataset/create-snapshot.js";
import type { DataTree } from "../model/data-tree.js";
import { createMemorySource } from "../source/memory.js";
import { openSource } from "../source/open-source.js";
import type { Refusal, Source } from "../source/source.js";
import { type GroupInput, readGroups } from "./group-input.js";

/** A data tree that can be looked at and served; what {@link openDataTree} and {@link createDataTree} give. */
export interface ServableTree extends DataTree {
  readonly location: string;
  /** What is in the location and cannot be served, by path. */
  readonly refused: readonly Refusal[];
}

export interface CreateDataTreeOptions {
  /**
   * What tells this state of the data from others, in ETags and cache keys; without it, a hash of all values,
   * which takes about a second per GB.
   */
  readonly revision?: string;
}

/** The source behind a tree, kept aside: how data are stored is no part of the public interface. */
const sources = new WeakMap<ServableTree, Source>();

/**
 * Opens the Zarr store at a location: the path of a directory, or its `file:` URL.
 * @throws ZpublishError `invalid-config`, `invalid-metadata`, `source-unreadable`, or `unsupported` for another kind of location.
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
 * @throws ZpublishError `invalid-metadata`, naming the group or variable, where something is not what it has to be, or
 * an array's data do not fit its shape or type.
 */
export async function createDataTree(
  root: GroupInput,
  { revision }: CreateDataTreeOptions = {},
): Promise<ServableTree> {
  const groups = readGroups(root);
  return servableTree(createMemorySource({ groups, ...(revision === undefined ? {} : { revision }) }));
}

/** The source of a tree that this module made. */
export function sourceOf(tree: ServableTree): Source | undefined {
  return sources.get(tree);
}

async function servableTree(source: Source): Promise<ServableTree> {
  const stored = await source.readTree();
  const config = { id: "", location: source.location, immutable: false, encoding: {}, variables: {} };
  const { tree, refused } = createSnapshot(config, stored, "");
  const servable: ServableTree = Object.freeze({ ...tree, location: source.location, refused });
  sources.set(servable, source);
  return servable;
}
