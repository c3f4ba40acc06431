/** JSON Schemas of the plugin's documents, for OpenAPI. */

const NAMES = { type: "array", items: { type: "string" } };
const DIMENSIONS = { type: "object", additionalProperties: { type: "integer", minimum: 0 } };

const VARIABLE_DICT = {
  type: "object",
  required: ["dims", "attrs", "dtype", "shape"],
  properties: {
    dims: NAMES,
    attrs: { type: "object" },
    dtype: { type: "string", description: "numpy's `str(dtype)`: `float32`, `>f4`, `<U4`, `|S5`" },
    shape: { type: "array", items: { type: "integer", minimum: 0 } },
  },
};

/** A list of names. */
export const NAMES_SCHEMA = NAMES;

/** Schema of `/dict`. */
export const DICT_SCHEMA = {
  type: "object",
  required: ["coords", "attrs", "dims", "data_vars"],
  properties: {
    coords: { type: "object", additionalProperties: VARIABLE_DICT },
    attrs: { type: "object" },
    dims: DIMENSIONS,
    data_vars: { type: "object", additionalProperties: VARIABLE_DICT },
  },
};

/** Schema of `/info`. */
export const INFO_SCHEMA = {
  type: "object",
  required: ["dimensions", "variables", "global_attributes"],
  properties: {
    dimensions: DIMENSIONS,
    variables: {
      type: "object",
      additionalProperties: {
        type: "object",
        required: ["type", "dimensions", "attributes"],
        properties: {
          type: { type: "string", description: "numpy's name of the type: `float32`, `bytes40`, `str128`" },
          dimensions: NAMES,
          attributes: { type: "object" },
        },
      },
    },
    global_attributes: { type: "object" },
  },
};
