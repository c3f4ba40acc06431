import type { CooperativeTask } from "../event-loop/cooperative-task.js";
import type { JsonObject } from "../json/json-value.js";
import type { DataType } from "./data-type.js";

/** One array of a group as clients see it, in its stored form (xarray's `decode_cf=False`). Frozen. */
export interface Variable {
  readonly name: string;
  /** Path below the root without a leading slash, as in a Zarr store: `a/b/t2m`. */
  readonly path: string;
  /** One name per axis; never missing, never two equal. */
  readonly dims: readonly string[];
  /** Elements per axis. */
  readonly shape: readonly number[];
  /** Elements per axis of a served chunk. `[]` for a scalar. */
  readonly chunkShape: readonly number[];
  readonly dataType: DataType;
  /** Without `_ARRAY_DIMENSIONS`. */
  readonly attrs: JsonObject;
}

/** One node of a data tree. Frozen. */
export interface Group {
  /** Begins with a slash: `/`, `/a`, `/a/b`. */
  readonly path: string;
  /** Last segment of the path; empty for the root. */
  readonly name: string;
  readonly attrs: JsonObject;
  /** By name, in the order of the source; sorted by name if it has no order. */
  readonly variables: ReadonlyMap<string, Variable>;
  /** Variables that are coordinates: named like their one dimension, or named by a `coordinates` attribute. */
  readonly coordinateNames: ReadonlySet<string>;
  /** Dimension name → length, in order of first appearance. */
  readonly dims: ReadonlyMap<string, number>;
  /** Names of the child groups, sorted. */
  readonly childNames: readonly string[];
}

/** A tree of groups; a flat dataset is a tree of one. Frozen. */
export interface DataTree {
  readonly root: Group;
  /** Every group by path, root first, parents before children, siblings sorted. */
  readonly groups: ReadonlyMap<string, Group>;
}

/**
 * Strips leading, trailing and doubled slashes from a node's path: `a/b` for `/a//b/`, empty for the root. Zarr stores
 * normalise keys so, and paths that `/groups` lists can be used verbatim.
 */
export function normalNodePath(path: string): string {
  // Most paths are normal, and every request for a chunk passes here.
  if (!path.startsWith("/") && !path.endsWith("/") && !path.includes("//")) return path;
  return path
    .split("/")
    .filter((segment) => segment !== "")
    .join("/");
}

/** Returns the last segment of a node's path: `b` for `/a/b` and `a/b`, empty for the root. */
export function nodeName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** A group that has no place in a tree yet. */
export interface GroupContent {
  readonly path: string;
  readonly attrs: JsonObject;
  readonly variables: readonly Variable[];
}

/**
 * Makes a data tree of its groups: finds coordinates, dimensions and children.
 * @param contents Root first, parents before children, siblings sorted, as a source lists them.
 */
export function* dataTreeSteps(contents: readonly GroupContent[]): CooperativeTask<DataTree> {
  const childNames = new Map<string, string[]>(contents.map(({ path }) => [path, []]));
  for (const { path } of contents) {
    if (path !== "/") childNames.get(parentPath(path))?.push(nodeName(path));
  }
  const groups = new Map<string, Group>();
  for (const content of contents) {
    groups.set(
      content.path,
      Object.freeze({
        path: content.path,
        name: nodeName(content.path),
        attrs: content.attrs,
        ...(yield* membersOf(content)),
        childNames: childNames.get(content.path) ?? [],
      }),
    );
  }
  const root = groups.get("/");
  if (root === undefined) throw new TypeError("expected a root group '/' among the groups of a data tree");
  return Object.freeze({ root, groups });
}

/** Lists dimensions whose length differs between variables of a group, one sentence each. xarray cannot open such a group. */
export function* dimensionConflicts(content: GroupContent): CooperativeTask<string[]> {
  const seen = new Map<string, { length: number; by: string }>();
  const conflicts: string[] = [];
  for (const variable of content.variables) {
    yield;
    variable.dims.forEach((dim, axis) => {
      const length = variable.shape[axis]!;
      const first = seen.get(dim);
      if (first === undefined) seen.set(dim, { length, by: variable.name });
      else if (first.length !== length) {
        conflicts.push(
          `group '${content.path}': dimension '${dim}' has length ${first.length} in '${first.by}' ` +
            `and ${length} in '${variable.name}'`,
        );
      }
    });
  }
  return conflicts;
}

/** Returns the path of a group's parent: `/a/b` for `/a/b/c`, `/` for `/a`. */
export function parentPath(path: string): string {
  return path.slice(0, path.lastIndexOf("/")) || "/";
}

/** A group's variables by name, which of them are coordinates, and its dimensions. */
function* membersOf({
  attrs,
  variables,
}: GroupContent): CooperativeTask<Pick<Group, "variables" | "coordinateNames" | "dims">> {
  const byName = new Map<string, Variable>();
  const dims = new Map<string, number>();
  const named = new Set<string>();
  noteCoordinates(attrs, named);
  for (const variable of variables) {
    yield;
    byName.set(variable.name, variable);
    noteCoordinates(variable.attrs, named);
    variable.dims.forEach((name, axis) => {
      if (!dims.has(name)) dims.set(name, variable.shape[axis]!);
    });
  }
  // As xarray finds them: variables named like their one dimension, and names in a `coordinates` attribute (CF 5).
  const coordinateNames = new Set<string>();
  for (const { name, dims: ownDims } of variables) {
    yield;
    if (named.has(name) || (ownDims.length === 1 && ownDims[0] === name)) coordinateNames.add(name);
  }
  return { variables: byName, coordinateNames, dims };
}

function noteCoordinates({ coordinates }: JsonObject, named: Set<string>): void {
  if (typeof coordinates === "string") for (const name of coordinates.split(/\s+/)) named.add(name);
}

/** An array of a group whose dimensions may lack names. */
interface UnnamedArray {
  readonly name: string;
  readonly shape: readonly number[];
  /** Names from the source; null if it names none (for the array, or for one axis). */
  readonly dimNames: readonly (string | null)[] | null;
}

/**
 * Names the dimensions of the arrays of one group, one list per array.
 *
 * Names from the source stay. An axis without one is called after its length, `dim_12`; the next axis of the same
 * length in the same array is `dim_12_1`. So two arrays never disagree about a dimension's length, anywhere in a tree.
 *
 * A name does not depend on the other arrays unless it is taken: by another variable of the group, which xarray would
 * take for a coordinate, or by a dimension of the source with another length.
 */
export function* nameDimensions(arrays: readonly UnnamedArray[]): CooperativeTask<string[][]> {
  const lengthsOfSource = new Map<string, Set<number>>();
  const variableNames = new Set<string>();
  for (const array of arrays) {
    yield;
    variableNames.add(array.name);
    array.dimNames?.forEach((name, axis) => {
      if (name === null) return;
      const lengths = lengthsOfSource.get(name) ?? new Set();
      lengthsOfSource.set(name, lengths.add(array.shape[axis]!));
    });
  }

  const names: string[][] = [];
  for (const array of arrays) {
    yield;
    const used = new Set(array.dimNames?.filter((name) => name !== null));
    names.push(
      array.shape.map((length, axis) => {
        const named = array.dimNames?.[axis];
        if (typeof named === "string") return named;
        for (let suffix = 0; ; suffix++) {
          const name = suffix === 0 ? `dim_${length}` : `dim_${length}_${suffix}`;
          const lengths = lengthsOfSource.get(name);
          const isFree = lengths === undefined || (lengths.size === 1 && lengths.has(length));
          if (!isFree || used.has(name) || variableNames.has(name)) continue;
          used.add(name);
          return name;
        }
      }),
    );
  }
  return names;
}

/** Chunks per axis: `ceil(shape / chunkShape)`; an axis of length 0 has none, a scalar's grid is `[]` (one chunk). */
export function gridShapeOf(shape: readonly number[], chunkShape: readonly number[]): number[] {
  return shape.map((length, axis) => Math.ceil(length / chunkShape[axis]!));
}

/** Product of all entries; 1 for a scalar. Elements of a shape, or chunks of a grid shape. */
export function elementCount(shape: readonly number[]): number {
  let count = 1;
  for (const length of shape) count *= length;
  return count;
}
