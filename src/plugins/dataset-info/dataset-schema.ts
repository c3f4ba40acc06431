import type { Group } from "../../model/data-tree.js";
import type { JsonObject } from "../../model/json-value.js";

/** A group's schema near NCO-JSON: dimensions, variables with types and attributes, global attributes. */
export function datasetSchema(group: Group): JsonObject {
  return {
    dimensions: Object.fromEntries(group.dims),
    variables: Object.fromEntries(
      Array.from(group.variables, ([name, { dataType, dims, attrs }]): [string, JsonObject] => [
        name,
        { type: dataType.numpyName, dimensions: dims, attributes: attrs },
      ]),
    ),
    global_attributes: group.attrs,
  };
}
