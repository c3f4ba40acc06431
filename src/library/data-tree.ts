import { createSnapshot } from "../dataset/create-snapshot.js";
import type { DataTree } from "../model/data-tree.js";
import type { JsonObject } from "../model/json-value.js";
import { createMemorySource, type MemoryArray, type MemoryGroup } from "../source/memory.js";
import { openSource } from "../source/open-source.js";
import type { Refusal, Source } from "../source/source.js";

/** A data tree that can be looked at and served; what {@link openDataTree} and {@link createDataTree} give. */
export interface ServableTree extends DataTree {
  readonly location: string;
  /** What is in the location and cannot be served, by path. */
  readonly refused: readonly Refusal[];
}

/** An array of a tree in memory. */
export type VariableInput = Omit<MemoryArray, "name">;

/** A group of a tree in memory, with its child groups. */
export interface GroupInput {
  readonly attrs?: JsonObject;
  /** By name. */
  readonly variables?: Readonly<Record<string, VariableInput>>;
  /** By name. */
  readonly groups?: Readonly<Record<string, GroupInput>>;
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
 * Opens the Zarr store at a location.
 * @throws ZpublishError `invalid-metadata` or `source-unreadable`.
 */
export async function openDataTree(location: string): Promise<ServableTree> {
  return servableTree(await openSource(location));
}

/**
 * Builds a data tree of typed arrays. Values are copied once into memory that workers share, unless they are in a
 * SharedArrayBuffer already.
 * @throws ZpublishError `invalid-metadata` where an array's data do not fit its shape or type.
 */
export async function createDataTree(
  root: GroupInput,
  { revision }: CreateDataTreeOptions = {},
): Promise<ServableTree> {
  const groups = [...flatten("/", root)];
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

/** Groups by path, parents before children, siblings sorted. */
function* flatten(
  path: string,
  { attrs = {}, variables = {}, groups = {} }: GroupInput,
): Iterable<MemoryGroup> {
  const arrays = Object.keys(variables)
    .sort()
    .map((name) => ({ ...(variables[name] as VariableInput), name }));
  yield { path, attrs, arrays };
  for (const name of Object.keys(groups).sort()) {
    yield* flatten(path === "/" ? `/${name}` : `${path}/${name}`, groups[name] as GroupInput);
  }
}
