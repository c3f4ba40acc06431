import { ZpublishError } from "../errors.js";
import { type CooperativeTask, runNow } from "../event-loop/cooperative-task.js";
import type { Refusal } from "../zarr/stored-tree.js";
import { compareParts } from "./compare-parts.js";
import { joinColumn } from "./join-column.js";
import { createScopes } from "./join-scopes.js";
import type { JoinedArray, JoinedTree } from "./joined-tree.js";
import { createColumns, type PartColumns } from "./part-columns.js";
import type { PartDescription } from "./part-description.js";
import { stackParts } from "./stack-parts.js";

/** Options of {@link joinParts}. */
export interface JoinOptions {
  /** `concat`: the parts lie one behind the other along a dimension that they have. `stack`: each is one step of a new dimension. */
  readonly kind: "concat" | "stack";
  readonly dimension: string;
  /** Serves steps that come twice from the part that is last in order: by first value, then by name. Default: they are refused. */
  readonly overlap?: "last";
  /** Coordinate of the new dimension of a stack, one value per part. Default: it has none. */
  readonly coordinate?: readonly (string | number)[];
}

/**
 * Joins parts into one tree, as xarray's `open_mfdataset` reads it.
 *
 * `concat` is `combine="by_coords", data_vars="minimal", coords="minimal", compat="override", join="exact"`, in each group. Arrays without
 * the dimension are those of the first part that has them. Without a coordinate, parts are in natural order of their names.
 *
 * `stack` is `combine="nested", data_vars="all", coords="different"`: every data variable gets the new dimension. Coordinates and scalars
 * get it only if their values differ; coordinates of several dimensions, bounds and grid mappings are those of the first part. A scalar
 * of the dimension's name becomes its coordinate if none is given.
 *
 * Parts without steps are compared with none. An array whose parts differ is refused, and the others are served.
 * @throws ZpublishError `invalid-metadata`, naming two parts and what differs, if they cannot be one dataset
 */
export function joinParts(parts: readonly PartDescription[], options: JoinOptions): JoinedTree {
  return runNow(joinSteps(parts, options));
}

/** {@link joinParts} in steps. */
export function* joinSteps(
  parts: readonly PartDescription[],
  options: JoinOptions,
): CooperativeTask<JoinedTree> {
  if (parts.length === 0)
    throw new ZpublishError("invalid-metadata", "expected files to join, received none");
  const { dimension, overlap } = options;
  const names = parts.map(({ name }) => name);
  const found = yield* createColumns(parts);
  const { table, scopes } =
    options.kind === "stack"
      ? stackParts(found, parts, options)
      : { table: found, scopes: yield* createScopes(found, parts, dimension, overlap) };
  const { main } = scopes;
  yield* compareParts(table, names, dimension, (group) => {
    const scope = scopes.scopeOf(group);
    return typeof scope === "object" ? scope.present : main.present;
  });
  const refused: Refusal[] = [];
  const warnings: string[] = [];
  const bounds = new Map<string, string>();
  const groups = table.groups.map((path) => ({
    path,
    attrs: table.attrsOf(path, [...main.present, ...main.order]),
    arrays: [] as JoinedArray[],
  }));
  const byPath = new Map(groups.map((group) => [group.path, group]));
  for (const column of table.columns.values()) {
    yield;
    try {
      const joined = joinColumn(column, parts, scopes, dimension);
      byPath.get(column.group)?.arrays.push(joined.array);
      if (joined.bounds !== undefined) bounds.set(joined.bounds, column.path);
      if (joined.warning !== undefined) warnings.push(`'${column.path}': ${joined.warning}`);
    } catch (error) {
      if (!(error instanceof ZpublishError)) throw error;
      const isCoordinate = column.name === dimension && scopes.scopeOf(column.group) === main;
      if (isCoordinate) throw new ZpublishError(error.code, `'${column.path}': ${error.message}`);
      refused.push({ path: column.path, reason: error.message });
    }
  }
  for (const group of groups) {
    group.arrays = group.arrays.filter(({ kind, stored: { path } }) => {
      const time = kind === "joined" ? bounds.get(path) : undefined;
      if (time === undefined) return true;
      refused.push({
        path,
        reason: `times of '${time}' are converted to other units, and its bounds cannot be`,
      });
      return false;
    });
    group.arrays.sort((a, b) => (a.stored.name < b.stored.name ? -1 : 1));
  }
  refused.push(...refusedByParts(parts, table));
  return { order: main.order, steps: main.steps, groups, refused, warnings };
}

/** Lists arrays and groups that no part can serve, each with the reason of the first. */
function refusedByParts(parts: readonly PartDescription[], { columns, groups }: PartColumns): Refusal[] {
  const reasons = new Map<string, string>();
  for (const part of parts) {
    for (const { path, reason } of part.refused) {
      const isServed = columns.has(path) || groups.includes(`/${path}`);
      if (!isServed && !reasons.has(path)) reasons.set(path, `${part.name}: ${reason}`);
    }
  }
  return [...reasons].map(([path, reason]) => ({ path, reason }));
}
