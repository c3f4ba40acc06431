import type { Group, Variable } from "../../model/data-tree.js";
import type { JsonObject } from "../../model/json-value.js";

/** A group as a dictionary without data, as xarray's `Dataset.to_dict(data=False)`. */
export function datasetDict(group: Group): JsonObject {
  const coords: [string, JsonObject][] = [];
  const dataVars: [string, JsonObject][] = [];
  for (const [name, variable] of group.variables) {
    (group.coordinateNames.has(name) ? coords : dataVars).push([name, variableDict(variable)]);
  }
  // Object.fromEntries keeps a variable called __proto__; an assignment would not.
  return {
    coords: Object.fromEntries(coords),
    attrs: group.attrs,
    dims: Object.fromEntries(group.dims),
    data_vars: Object.fromEntries(dataVars),
  };
}

function variableDict({ dims, attrs, dataType, shape }: Variable): JsonObject {
  return { dims, attrs, dtype: dataType.numpyStr, shape };
}
