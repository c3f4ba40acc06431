import { type CooperativeTask, runNow } from "../../event-loop/cooperative-task.js";
import { type JsonObject, objectSteps } from "../../json/json-value.js";
import type { Group, Variable } from "../../model/data-tree.js";

/** A group as a dictionary without data, as xarray's `Dataset.to_dict(data=False)`. */
export function datasetDict(group: Group): JsonObject {
  return runNow(datasetDictSteps(group));
}

/** {@link datasetDict} as work that can be interrupted. */
export function* datasetDictSteps(group: Group): CooperativeTask<JsonObject> {
  const coords: [string, JsonObject][] = [];
  const dataVars: [string, JsonObject][] = [];
  for (const [name, variable] of group.variables) {
    yield;
    (group.coordinateNames.has(name) ? coords : dataVars).push([name, variableDict(variable)]);
  }
  return {
    coords: yield* objectSteps(coords),
    attrs: group.attrs,
    dims: yield* objectSteps(group.dims),
    data_vars: yield* objectSteps(dataVars),
  };
}

function variableDict({ dims, attrs, dataType, shape }: Variable): JsonObject {
  return { dims, attrs, dtype: dataType.numpyStr, shape };
}
