import { isLatitude } from "../../cf/axis-roles.js";
import type { DatasetSnapshot, ServedArray } from "../../dataset/dataset.js";
import type { Variable } from "../../model/data-tree.js";

/**
 * Finds the coordinate of a dimension: the variable of that name and dimension in the variable's group, or in the nearest group above
 * it (CF section 2.7). Undefined if there is none.
 */
export function coordinateOf(
  snapshot: DatasetSnapshot,
  variable: Variable,
  dim: string,
): ServedArray | undefined {
  const length = variable.shape[variable.dims.indexOf(dim)];
  return findAbove(
    snapshot,
    variable,
    ({ name, dims, shape }) => name === dim && dims.length === 1 && dims[0] === dim && shape[0] === length,
  );
}

/** Finds the latitudes of a curvilinear grid: a variable over both dimensions of a plane (CF section 5.2). */
export function latitudesOf(
  snapshot: DatasetSnapshot,
  variable: Variable,
  plane: readonly [y: string, x: string],
): ServedArray | undefined {
  return findAbove(
    snapshot,
    variable,
    ({ dims, attrs }) =>
      dims.length === 2 && dims[0] === plane[0] && dims[1] === plane[1] && isLatitude(attrs),
  );
}

function findAbove(
  { tree, arrays }: DatasetSnapshot,
  { path }: Variable,
  matches: (variable: Variable) => boolean,
): ServedArray | undefined {
  for (let end = path.lastIndexOf("/"); ; end = path.lastIndexOf("/", end - 1)) {
    const group = tree.groups.get(`/${path.slice(0, Math.max(0, end))}`);
    for (const variable of group?.variables.values() ?? []) {
      if (matches(variable)) return arrays.get(variable.path);
    }
    if (end <= 0) return undefined;
  }
}
