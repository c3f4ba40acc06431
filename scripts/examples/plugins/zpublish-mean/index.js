import { findArray, labelText, parseQuery, wrongParameter, ZpublishError } from "zpublish";

/** @import { Plugin, PluginContext, Reply, RouteRequest, Variable } from "zpublish" */

/** Most values that are read for an answer, and most means in it. */
const [MAX_READ, MAX_MEANS] = [2 ** 28, 100_000];

const SUM = new URL("sum-piece.js", import.meta.url);
const schema = { type: "string" };
const QUERY = {
  dimension: { description: "Dimension that the mean is taken over", schema, required: true },
  isel: { description: "Indices of an axis, `name:begin:end`; repeated for further axes", schema },
};

/** @type {Plugin} */
export default {
  name: "mean",
  version: "0.2.0",
  path: "zpublish-mean",
  routes: (context) => [
    {
      path: "/datasets/{dataset_id}/mean/{var:path}",
      priority: "page",
      operation: { summary: "Mean over a dimension", contentType: "application/json", query: QUERY },
      handler: (request) => answer(context, request),
    },
  ],
};

/** @type {(context: PluginContext, request: RouteRequest) => Promise<Reply>} */
async function answer({ datasets, values, createDocument }, { params, query, signal }) {
  const snapshot = datasets.get(params.dataset_id);
  const array = findArray(snapshot, params.var);
  const { kind, numpyStr } = values.dataType(array, true);
  if (!"iuf".includes(kind)) throw wrongParameter("var", "data_type", "a variable of numbers", numpyStr);
  const { axis, ranges } = readQuery(array.variable, query);
  const { count: length } = ranges[axis];
  const inner = ranges.slice(axis + 1).reduce((all, { count }) => all * count, 1);
  const { itemCount } = values.cost(array, ranges);
  if (itemCount > MAX_READ || itemCount / length > MAX_MEANS) {
    const expected = `Expected at most ${MAX_READ} values and ${MAX_MEANS} means`;
    throw new ZpublishError("too-large", `${expected}, received ${itemCount} and ${itemCount / length}`);
  }
  // Sum and count of each mean.
  const totals = new Float64Array((2 * itemCount) / length);
  let first = 0;
  for await (const piece of values.stream(snapshot, array, ranges, { decode: true, signal })) {
    const part = await values.run(SUM, { items: piece.values, first, length, inner }, { signal });
    for (const [at, each] of part.totals.entries()) totals[2 * part.begin + at] += each;
    first += piece.shape[0];
  }
  const { axes } = await values.coordinates(snapshot, array);
  const labels = axes.map((each, at) => {
    const { begin, count } = ranges[at];
    return [each.dim, Array.from({ length: count }, (_, index) => labelText(each, begin + index))];
  });
  labels.splice(axis, 1);
  const body = {
    units: array.variable.attrs.units ?? null,
    dims: labels.map(([dim]) => dim),
    coordinates: Object.fromEntries(labels),
    // No value at all is NaN, which JSON.stringify() writes as null.
    values: Array.from({ length: totals.length / 2 }, (_, at) => totals[2 * at] / totals[2 * at + 1]),
  };
  return { kind: "document", document: createDocument(JSON.stringify(body), "application/json") };
}

/** @type {(variable: Variable, query: string) => { axis: number, ranges: { begin: number, count: number, step: number }[] }} */
function readQuery({ dims, shape }, query) {
  const asked = parseQuery(query, { once: ["dimension"], repeated: ["isel"] });
  const [dimension = ""] = asked.get("dimension") ?? [];
  const axis = dims.indexOf(dimension);
  if (axis < 0) throw wrongParameter("dimension", "enum", `one of ${dims.join(", ")}`, dimension);
  const ranges = shape.map((count) => ({ begin: 0, count, step: 1 }));
  for (const text of asked.get("isel") ?? []) {
    const [, name = "", from = "", to = ""] = /^(.+):(\d*):(\d*)$/.exec(text) ?? [];
    const at = dims.indexOf(name);
    const [begin, end] = [Number(from), to === "" ? shape[at] : Number(to)];
    if (at < 0 || begin >= end || end > shape[at])
      throw wrongParameter("isel", "range", `name:begin:end within one of ${dims.join(", ")}`, text);
    ranges[at] = { begin, count: end - begin, step: 1 };
  }
  return { axis, ranges };
}
