import { axisRole, isLatitude, isLongitude } from "../../cf/axis-roles.js";
import { parentPath } from "../../model/create-data-tree.js";
import type { DataTree, Group, Variable } from "../../model/data-tree.js";

/**
 * Finds the horizontal dimensions of a dataset: those with the role Y or X in some group, and those of two-dimensional latitudes and
 * longitudes. If there are none, they are the last two of each array that are neither times nor heights. One name is the same in all
 * groups, since xarray's DataTree hands coordinates down.
 */
export function horizontalDims(tree: DataTree): ReadonlySet<string> {
  const horizontal = new Set<string>();
  for (const group of tree.groups.values()) {
    for (const dim of group.dims.keys()) {
      const role = axisRole(dim, coordinateOf(tree, group, dim)?.attrs);
      if (role === "Y" || role === "X") horizontal.add(dim);
    }
  }
  for (const [group, variable] of variablesOf(tree)) {
    const isPlace = isLatitude(variable.attrs) || isLongitude(variable.attrs);
    if (isPlace && variable.dims.length === 2) addAll(horizontal, mapDims(tree, group, variable));
  }
  if (horizontal.size > 0) return horizontal;
  for (const [group, variable] of variablesOf(tree)) {
    const { kind } = variable.dataType;
    const isNumber = kind === "f" || kind === "i" || kind === "u" || kind === "b";
    const dims = isNumber ? mapDims(tree, group, variable) : [];
    if (dims.length >= 2) addAll(horizontal, dims.slice(-2));
  }
  return horizontal;
}

/** Returns the coordinate that indexes a dimension, from the group or the nearest one above it; undefined if there is none. */
export function coordinateOf(tree: DataTree, group: Group, dim: string): Variable | undefined {
  const variable = group.variables.get(dim);
  if (variable !== undefined && variable.dims.length === 1 && variable.dims[0] === dim) return variable;
  if (group.path === "/") return undefined;
  const parent = tree.groups.get(parentPath(group.path));
  return parent && coordinateOf(tree, parent, dim);
}

/** Returns the dimensions of a variable that are neither times nor heights. */
function mapDims(tree: DataTree, group: Group, { dims }: Variable): string[] {
  return dims.filter((dim) => {
    const role = axisRole(dim, coordinateOf(tree, group, dim)?.attrs);
    return role !== "T" && role !== "Z";
  });
}

function* variablesOf(tree: DataTree): Iterable<readonly [Group, Variable]> {
  for (const group of tree.groups.values())
    for (const variable of group.variables.values()) yield [group, variable];
}

function addAll(set: Set<string>, names: readonly string[]): void {
  for (const name of names) set.add(name);
}
