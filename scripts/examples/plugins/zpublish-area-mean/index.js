import { extentText, findArray, indexRange, labelText, parseQuery, wrongParameter } from "zpublish";

/** @import { Plugin, PluginContext, Reply, RouteRequest } from "zpublish" */

const describe = (/** @type {string} */ edge) => ({
  description: `${edge} edge of the box, in degrees. Default: that of the data`,
  schema: { type: "number" },
});
const QUERY = {
  south: describe("Southern"),
  north: describe("Northern"),
  west: describe("Western"),
  east: describe("Eastern"),
};
const summary = "Mean over a box of latitudes and longitudes, weighted by the area of the cells";

/** @type {Plugin} */
export default {
  name: "area_mean",
  version: "0.1.0",
  path: "zpublish-area-mean",
  routes: (context) => [
    {
      path: "/datasets/{dataset_id}/area-mean/{var:path}",
      priority: "page",
      operation: { summary, contentType: "application/json", query: QUERY },
      handler: (request) => answer(context, request),
    },
  ],
};

/** @type {(context: PluginContext, request: RouteRequest) => Promise<Reply>} */
async function answer({ datasets, values, createDocument }, { params, query, signal }) {
  const asked = parseQuery(query, { once: Object.keys(QUERY) });
  const [south = "-90", north = "90", west, east] = Object.keys(QUERY).map((name) => asked.get(name)?.[0]);
  const snapshot = datasets.get(params.dataset_id);
  const array = findArray(snapshot, params.var);
  const { dims, attrs } = array.variable;
  const { axes } = await values.coordinates(snapshot, array);
  const [y, x] = axes.slice(-2);
  if (y?.role !== "Y" || x?.role !== "X")
    throw wrongParameter("var", "axes", "latitude and longitude as last dimensions", dims.join(", "));
  const rest = axes.slice(0, -2);
  const rows = indexRange(y, south, north);
  const whole = rest.map(({ length }) => ({ begin: 0, count: length, step: 1 }));
  const options = { decode: true, signal, maxBytes: 2 ** 28 };
  const maps = await values.read(snapshot, array, [...whole, rows, indexRange(x, west, east)], options);
  if (maps.shape.includes(0))
    throw wrongParameter("south", "empty", `a box within ${extentText(y)} and ${extentText(x)}`, query);
  const latitudes = await values.read(snapshot, findArray(snapshot, y.variable ?? ""), [rows], options);
  const data = { items: maps.values, latitudes: latitudes.values, columns: maps.shape.at(-1) };
  const means = await values.run(new URL("weigh.js", import.meta.url), data, { signal });
  const labels = rest.map((axis) => [
    axis.dim,
    Array.from({ length: axis.length }, (_, at) => labelText(axis, at)),
  ]);
  const body = { units: attrs.units ?? null, coordinates: Object.fromEntries(labels), values: [...means] };
  return { kind: "document", document: createDocument(JSON.stringify(body), "application/json") };
}
