import type { CooperativeTask } from "../event-loop/cooperative-task.js";
import type { JsonObject } from "../json/json-value.js";
import { comparePaths } from "../zarr/stored-tree.js";
import type { PartArray, PartDescription } from "./part-description.js";

/** The arrays of one path in all parts. */
export interface PartColumn {
  /** Without a leading slash. */
  readonly path: string;
  readonly name: string;
  /** Path of the group, with a leading slash. */
  readonly group: string;
  /** One per part; undefined if the part has none. */
  readonly arrays: readonly (PartArray | undefined)[];
}

/** The groups and arrays of all parts. */
export interface PartColumns {
  /** Paths of all groups, parents before children, siblings sorted by name. */
  readonly groups: readonly string[];
  /** By path. */
  readonly columns: ReadonlyMap<string, PartColumn>;
  /** Returns the attributes of a group in the first of `order` that has it. */
  attrsOf(group: string, order: readonly number[]): JsonObject;
}

/** Lists the arrays of parts by path instead of by part. */
export function* createColumns(parts: readonly PartDescription[]): CooperativeTask<PartColumns> {
  const groups = new Set<string>();
  const columns = new Map<string, PartColumn & { readonly arrays: (PartArray | undefined)[] }>();
  for (const [index, part] of parts.entries()) {
    yield;
    for (const { path } of part.groups) groups.add(path);
    for (const array of part.arrays) {
      const { path, name } = array.stored;
      let column = columns.get(path);
      if (column === undefined) {
        const group = path === name ? "/" : `/${path.slice(0, -name.length - 1)}`;
        column = { path, name, group, arrays: new Array(parts.length).fill(undefined) };
        columns.set(path, column);
      }
      column.arrays[index] = array;
    }
  }
  return {
    groups: [...groups].sort(comparePaths),
    columns,
    attrsOf(path, order) {
      for (const part of order) {
        const group = (parts[part] as PartDescription).groups.find((each) => each.path === path);
        if (group !== undefined) return group.attrs;
      }
      return {};
    },
  };
}
