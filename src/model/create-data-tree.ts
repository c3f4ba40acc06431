import type { DataTree, Group, Variable } from "./data-tree.js";
import type { JsonObject } from "./json-value.js";
import { nodeName } from "./node-path.js";

/** A group before its place in the tree is known. */
export interface GroupContent {
  readonly path: string;
  readonly attrs: JsonObject;
  readonly variables: readonly Variable[];
}

/**
 * The data tree of its groups: finds coordinates, dimensions and children.
 * @param contents Root first, parents before children, siblings sorted, as sources give them.
 */
export function createDataTree(contents: readonly GroupContent[]): DataTree {
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
        variables: new Map(content.variables.map((variable) => [variable.name, variable])),
        coordinateNames: coordinateNamesOf(content),
        dims: dimsOf(content.variables),
        childNames: childNames.get(content.path) ?? [],
      }),
    );
  }
  const root = groups.get("/");
  if (root === undefined) throw new TypeError("expected a root group '/' among the groups of a data tree");
  return Object.freeze({ root, groups });
}

/** Dimensions over which two variables of a group disagree, one sentence each: xarray cannot open such a group. */
export function dimensionConflicts(content: GroupContent): string[] {
  const seen = new Map<string, { length: number; by: string }>();
  const conflicts: string[] = [];
  for (const variable of content.variables) {
    variable.dims.forEach((dim, axis) => {
      const length = variable.shape[axis] as number;
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

/** `/a/b` of `/a/b/c`; `/` of `/a`. */
export function parentPath(path: string): string {
  return path.slice(0, path.lastIndexOf("/")) || "/";
}

/** As xarray finds them: variables named like their one dimension, and names in a `coordinates` attribute (CF 5). */
function coordinateNamesOf({ attrs, variables }: GroupContent): ReadonlySet<string> {
  const named = new Set<string>();
  for (const { coordinates } of [attrs, ...variables.map((variable) => variable.attrs)]) {
    if (typeof coordinates === "string") for (const name of coordinates.split(/\s+/)) named.add(name);
  }
  const isCoordinate = ({ name, dims }: Variable) =>
    named.has(name) || (dims.length === 1 && dims[0] === name);
  return new Set(variables.filter(isCoordinate).map(({ name }) => name));
}

function dimsOf(variables: readonly Variable[]): ReadonlyMap<string, number> {
  const dims = new Map<string, number>();
  for (const { dims: names, shape } of variables) {
    names.forEach((name, axis) => {
      if (!dims.has(name)) dims.set(name, shape[axis] as number);
    });
  }
  return dims;
}
