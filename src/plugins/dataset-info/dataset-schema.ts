import { type CooperativeTask, runNow } from "../../event-loop/cooperative-task.js";
import { type JsonObject, objectSteps } from "../../json/json-value.js";
import type { Group } from "../../model/data-tree.js";

/** A group's schema near NCO-JSON: dimensions, variables with types and attributes, global attributes. */
export function datasetSchema(group: Group): JsonObject {
  return runNow(datasetSchemaSteps(group));
}

/** {@link datasetSchema} as work that can be interrupted. */
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
