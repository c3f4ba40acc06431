import { type CooperativeTask, runNow } from "../../event-loop/cooperative-task.js";
import { type JsonObject, objectSteps } from "../../json/json-value.js";
import type { Group, Variable } from "../../model/data-tree.js";

/** Describes a group as a dictionary without data, as xarray's `Dataset.to_dict(data=False)`. */
export function datasetDict(group: Group): JsonObject {
  return runNow(datasetDictSteps(group));
}

/** {@link datasetDict} as a cooperative task. */
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

/** Describes a group by a schema near NCO-JSON: dimensions, variables with types and attributes, global attributes. */
export function datasetSchema(group: Group): JsonObject {
  return runNow(datasetSchemaSteps(group));
}

/** {@link datasetSchema} as a cooperative task. */
export function* datasetSchemaSteps(group: Group): CooperativeTask<JsonObject> {
  const variables: [string, JsonObject][] = [];
  for (const [name, { dataType, dims, attrs }] of group.variables) {
    yield;
    variables.push([name, { type: dataType.numpyName, dimensions: dims, attributes: attrs }]);
  }
  return {
    dimensions: yield* objectSteps(group.dims),
    variables: yield* objectSteps(variables),
    global_attributes: group.attrs,
  };
}
