import { LazyMap } from "../../collections/lazy-map.js";
import type { DataTree, Group, Variable } from "../../model/data-tree.js";
import type { OverviewLevels, ServedArray } from "../dataset.js";
import { lengthAt } from "./level-count.js";
import { withoutPlaces } from "./level-rule.js";

/**
 * Creates the tree of overviews: a root without arrays, and below it the whole tree of the dataset once per level. Groups and variables
 * are made when they are first asked for.
 * @param arrays All arrays by path: `1/a/b/t2m`.
 */
export function createLevelTree(
  { dataset, count, horizontal }: OverviewLevels,
  arrays: ReadonlyMap<string, ServedArray>,
): DataTree {
  const names = Array.from({ length: count + 1 }, (_, level) => String(level));
  const root: Group = Object.freeze({
    path: "/",
    name: "",
    attrs: {},
    variables: new Map(),
    coordinateNames: new Set<string>(),
    dims: new Map(),
    // As a source sorts them.
    childNames: [...names].sort(),
  });

  function groupAt(level: string, group: Group): Group {
    const path = group.path === "/" ? `/${level}` : `/${level}${group.path}`;
    const variableAt = (name: string): Variable | undefined => {
      const own = group.variables.has(name) ? arrays.get(`${path.slice(1)}/${name}`) : undefined;
      return own && Object.freeze({ ...own.variable, path: `${path.slice(1)}/${name}` });
    };
    return Object.freeze({
      path,
      name: group.path === "/" ? level : group.name,
      attrs: level === "0" ? group.attrs : withoutPlaces(group.attrs),
      variables: new LazyMap(() => group.variables.keys(), variableAt),
      coordinateNames: group.coordinateNames,
      dims: new Map(
        [...group.dims].map(([dim, length]) => [
          dim,
          horizontal.has(dim) ? lengthAt(length, Number(level)) : length,
        ]),
      ),
      childNames: group.childNames,
    });
  }

  function* paths(): Iterable<string> {
    yield "/";
    for (const level of root.childNames)
      for (const path of dataset.tree.groups.keys()) yield path === "/" ? `/${level}` : `/${level}${path}`;
  }

  function make(path: string): Group | undefined {
    if (path === "/") return root;
    const match = /^\/([^/]+)(\/.+)?$/.exec(path);
    const level = match?.[1] ?? "";
    const group = names.includes(level) ? dataset.tree.groups.get(match?.[2] ?? "/") : undefined;
    return group && groupAt(level, group);
  }

  return Object.freeze({ root, groups: new LazyMap(paths, make) });
}
