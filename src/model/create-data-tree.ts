import { type CooperativeTask, runNow } from "../event-loop/cooperative-task.js";
import type { JsonObject } from "../json/json-value.js";
import type { DataTree, Group, Variable } from "./data-tree.js";
import { nodeName } from "./node-path.js";

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
export function createDataTree(contents: readonly GroupContent[]): DataTree {
  return runNow(dataTreeSteps(contents));
}

/** {@link createDataTree} in steps. */
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
export function dimensionConflicts(content: GroupContent): string[] {
  return runNow(dimensionConflictSteps(content));
}

/** {@link dimensionConflicts} in steps. */
export function* dimensionConflictSteps(content: GroupContent): CooperativeTask<string[]> {
  const seen = new Map<string, { length: number; by: string }>();
  const conflicts: string[] = [];
  for (const variable of content.variables) {
    yield;
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
      if (!dims.has(name)) dims.set(name, variable.shape[axis] as number);
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
