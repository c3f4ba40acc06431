import { axisRole, isLatitude, isLongitude } from "../../cf/axis-roles.js";
import { type DataTree, elementCount, type Group, parentPath, type Variable } from "../../model/data-tree.js";

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

/** A data variable with two horizontal dimensions, and what says where its cells are. */
export interface Grid {
  readonly group: Group;
  readonly variable: Variable;
  readonly y: string;
  readonly x: string;
  /** One-dimensional coordinates; undefined if there are none. */
  readonly yCoordinate: Variable | undefined;
  readonly xCoordinate: Variable | undefined;
}

/** Lists the data variables of a dataset that have two horizontal dimensions, first the largest: a viewer should open it. */
export function listGrids(tree: DataTree, horizontal: ReadonlySet<string>): readonly Grid[] {
  const grids: Grid[] = [];
  for (const group of tree.groups.values()) {
    for (const variable of group.variables.values()) {
      if (group.coordinateNames.has(variable.name)) continue;
      const grid = gridOf(tree, group, variable, horizontal);
      if (grid !== undefined) grids.push(grid);
    }
  }
  let largest = 0;
  for (const [index, { variable }] of grids.entries())
    if (elementCount(variable.shape) > elementCount((grids[largest] as Grid).variable.shape)) largest = index;
  return [...grids.splice(largest, 1), ...grids];
}

/** Tells whether places on the earth are known: by latitudes and longitudes, or by a grid mapping (CF sections 4 and 5.6). */
export function isGeographic(tree: DataTree): boolean {
  let hasLatitude = false;
  let hasLongitude = false;
  for (const { variables } of tree.groups.values()) {
    for (const { attrs } of variables.values()) {
      if (typeof attrs.grid_mapping === "string" || typeof attrs.grid_mapping_name === "string") return true;
      hasLatitude ||= isLatitude(attrs);
      hasLongitude ||= isLongitude(attrs);
    }
  }
  return hasLatitude && hasLongitude;
}

function gridOf(
  tree: DataTree,
  group: Group,
  variable: Variable,
  horizontal: ReadonlySet<string>,
): Grid | undefined {
  const dims = variable.dims.filter((dim) => horizontal.has(dim));
  if (dims.length !== 2) return undefined;
  const [first, second] = dims as [string, string];
  const roleOf = (dim: string) => axisRole(dim, coordinateOf(tree, group, dim)?.attrs);
  const isSwapped = roleOf(first) === "X" || roleOf(second) === "Y";
  const [y, x] = isSwapped ? [second, first] : [first, second];
  return {
    group,
    variable,
    y,
    x,
    yCoordinate: coordinateOf(tree, group, y),
    xCoordinate: coordinateOf(tree, group, x),
  };
}

/** Returns the grid mapping of a variable: a scalar with attributes (CF section 5.6); undefined if it has none. */
export function gridMappingOf(tree: DataTree, { group, variable }: Grid): Variable | undefined {
  // The extended form is "crs: x y other: lat lon"; rioxarray names `spatial_ref` in the encoding only.
  const said = variable.attrs.grid_mapping;
  const name = typeof said === "string" ? (said.split(/[\s:]+/)[0] as string) : "spatial_ref";
  for (let path = group.path; ; path = parentPath(path)) {
    const found = tree.groups.get(path)?.variables.get(name);
    if (found !== undefined || path === "/") return found;
  }
}
