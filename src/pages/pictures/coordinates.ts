import { isLatitude } from "../../cf/axis-roles.js";
import type { DatasetSnapshot, ServedArray } from "../../dataset/dataset.js";
import type { Group, Variable } from "../../model/data-tree.js";

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
  return findAbove(snapshot, variable, ({ variables }) => {
    const found = variables.get(dim);
    return found?.dims.length === 1 && found.dims[0] === dim && found.shape[0] === length ? found : undefined;
  });
}

/** Finds the latitudes of a curvilinear grid: a coordinate over both dimensions of a plane (CF section 5.2). */
export function latitudesOf(
  snapshot: DatasetSnapshot,
  variable: Variable,
  [dimY, dimX]: readonly [y: string, x: string],
): ServedArray | undefined {
  return findAbove(snapshot, variable, ({ coordinateNames, variables }) => {
    for (const name of coordinateNames) {
      const found = variables.get(name);
      if (found === undefined || found.dims.length !== 2 || !isLatitude(found.attrs)) continue;
      if (found.dims[0] === dimY && found.dims[1] === dimX) return found;
    }
    return undefined;
  });
}

/** Looks for a variable in the group of another one, then in the groups above it. */
function findAbove(
  { tree, arrays }: DatasetSnapshot,
  { path }: Variable,
  findIn: (group: Group) => Variable | undefined,
): ServedArray | undefined {
  for (let end = path.lastIndexOf("/"); ; end = path.lastIndexOf("/", end - 1)) {
    const group = tree.groups.get(`/${path.slice(0, Math.max(0, end))}`);
    const found = group && findIn(group);
    if (found !== undefined) return arrays.get(found.path);
    if (end <= 0) return undefined;
  }
}
