import { Piscina } from "piscina";
import { packingOf, stringifyJson, ZpublishError } from "zpublish";
import { readQuery, refused } from "./read-query.js";
import { sumArray } from "./sum-array.js";

/**
 * @import { DatasetSnapshot, Plugin, PluginContext, Reply, RouteRequest, ServedArray } from "zpublish"
 * @import { Selection } from "./read-query.js"
 * @import { Limits } from "./sum-array.js"
 */

/**
 * Makes the plugin.
 * @param {unknown} options See {@link Limits}; default 1,000 chunks and 100,000 values.
 * @returns {Plugin}
 */
export default function meanPlugin(options) {
  const limits = { maxChunks: 1_000, maxValues: 100_000, .../** @type {Partial<Limits>} */ (options ?? {}) };
  for (const [name, value] of Object.entries(limits)) {
    if (Number.isInteger(value) && value > 0) continue;
    throw new ZpublishError("invalid-config", `${name}: expected an integer above 0, received ${value}`);
  }
  // The thread starts with the first request.
  const pool = new Piscina({
    filename: new URL("sum-chunk.js", import.meta.url).href,
    minThreads: 0,
    maxThreads: 1,
    idleTimeout: 10_000,
  });
  return {
    name: "mean",
    version: "0.1.0",
    path: "zpublish-mean",
    routes: (context) => [
      {
        path: "/datasets/{dataset_id}/mean/{var:path}",
        priority: "page",
        operation: {
          summary: "Mean of a variable over a dimension",
          contentType: "application/json",
          query: {
            dimension: { description: "Dimension that the mean is taken over", schema: { type: "string" } },
            isel: {
              description: "Indices of an axis, `name:begin:end`; for further axes again",
              schema: { type: "array", items: { type: "string" } },
            },
          },
        },
        handler: (request) => answer(context, request, pool, limits),
      },
    ],
    close: () => pool.destroy(),
  };
}

/**
 * Answers with the mean.
 * @param {PluginContext} context
 * @param {RouteRequest} request
 * @param {Piscina} pool
 * @param {Limits} limits
 * @returns {Promise<Reply>}
 */
async function answer(context, request, pool, limits) {
  const snapshot = context.datasets.get(request.params.dataset_id);
  const array = snapshot.arrays.get(request.params.var);
  if (array === undefined) {
    const { dataset_id, var: name } = request.params;
    throw new ZpublishError("not-found", `Variable '${name}' not found in dataset '${dataset_id}'`);
  }
  const { variable } = array;
  const { kind, itemSize, numpyStr } = variable.dataType;
  if (!"iuf".includes(kind) || (kind === "f" && itemSize !== 4 && itemSize !== 8))
    throw refused("var", "expected a variable of integers, float32 or float64", numpyStr);
  const selection = readQuery(variable, request.query);
  const sums = await sumArray(context, { snapshot, array, selection, request, pool, limits });
  const { scale, offset } = packingOf(variable.attrs, array.document.fill_value);
  const means = Array.from(sums.sums, (sum, index) => {
    const count = sums.counts[index];
    return count === 0 ? null : (sum / count) * scale + offset;
  });
  const rest = variable.dims.map((_, axis) => axis).filter((axis) => axis !== selection.axis);
  const { begin, end } = selection;
  const shape = rest.map((axis) => end[axis] - begin[axis]);
  const body = {
    variable: variable.path,
    mean_over: {
      dimension: variable.dims[selection.axis],
      begin: begin[selection.axis],
      end: end[selection.axis],
    },
    dims: rest.map((axis) => variable.dims[axis]),
    shape,
    units: variable.attrs.units ?? null,
    coordinates: await coordinatesOf(context, snapshot, array, selection, rest),
    values: nest(means, shape),
  };
  return {
    kind: "document",
    document: context.createDocument(stringifyJson(body), "application/json"),
    cacheControl: snapshot.cacheControl,
  };
}

/**
 * Reads the coordinates of the axes that are left, by dimension: those that are numbers.
 * @param {PluginContext} context
 * @param {DatasetSnapshot} snapshot
 * @param {ServedArray} array
 * @param {Selection} selection
 * @param {readonly number[]} axes
 */
async function coordinatesOf({ previews }, snapshot, { variable }, { begin, end }, axes) {
  const group = variable.path.slice(0, -variable.name.length);
  const found = axes.map(async (axis) => {
    const coordinate = snapshot.arrays.get(group + variable.dims[axis]);
    if (coordinate === undefined) return [];
    const values = await previews.numbers(coordinate);
    if (values === undefined) return [];
    const { units = null, calendar } = coordinate.variable.attrs;
    const numbers = values
      .slice(begin[axis], end[axis])
      .map((value) => (Number.isFinite(value) ? value : null));
    return [
      [variable.dims[axis], { values: numbers, units, ...(calendar === undefined ? {} : { calendar }) }],
    ];
  });
  return Object.fromEntries((await Promise.all(found)).flat());
}

/**
 * Cuts a list into nested ones.
 * @param {any[]} values
 * @param {readonly number[]} shape
 * @returns {any}
 */
function nest(values, shape) {
  let nested = values;
  for (const length of shape.slice(1).toReversed()) {
    const rows = [];
    for (let from = 0; from < nested.length; from += length) rows.push(nested.slice(from, from + length));
    nested = rows;
  }
  return shape.length === 0 ? nested[0] : nested;
}
