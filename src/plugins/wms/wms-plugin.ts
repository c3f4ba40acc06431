import {
  type DatasetView,
  datasetFacts,
  type ErrorFacts,
  type ErrorReply,
  LEGEND_SIZE,
  type MapPlace,
  type Plugin,
  type PluginContext,
  packageVersion,
  pictureReply,
  placesOf,
  type QueryParameter,
  queryToken,
  type Reply,
  type RouteRequest,
  shortestFloat,
  variableFacts,
  wrongParameter,
  ZpublishError,
} from "../../plugin-api.js";
import { WMS_FORMATS, WMS_TYPES, writeCapabilities, writeException } from "./capabilities.js";
import {
  MAX_PIXELS,
  parseBackground,
  parseFormat,
  parseFrame,
  parsePixel,
  parsePixels,
  parseStyle,
  parseWmsQuery,
  type WmsParameters,
  wmsVersion,
} from "./parse-wms-query.js";
import { parseSteps } from "./wms-dimensions.js";

/** Operations on one layer, with the parameters that name it. */
const LAYER_OPERATIONS = [
  { name: "GetMap", parameter: "LAYERS", serve: serveMap },
  { name: "GetFeatureInfo", parameter: "QUERY_LAYERS", serve: serveFeatureInfo },
  { name: "GetLegendGraphic", parameter: "LAYER", serve: serveLegend },
];
const OPERATIONS = ["GetCapabilities", ...LAYER_OPERATIONS.map(({ name }) => name)];

const text = (description: string, more = {}) => ({ description, schema: { type: "string", ...more } });
const pixels = (description: string) => ({ description, schema: { type: "integer", maximum: MAX_PIXELS } });

/** Parameters for the API description, as version 1.3.0 has them. */
const QUERY: Readonly<Record<string, QueryParameter>> = {
  REQUEST: { ...text("Operation. Names of parameters have no case", { enum: OPERATIONS }), required: true },
  VERSION: text("`1.3.0` or `1.1.1`", { default: "1.3.0" }),
  LAYERS: text("Path of one variable; `LAYER` for legends"),
  STYLES: text("`default`, or a colour scale, with `-inv` if it is reversed; `STYLE` for legends"),
  COLORSCALERANGE: text("Values of the first and the last colour: `240,310`. Default: by some values"),
  CRS: text("`EPSG:4326`, `CRS:84` or `EPSG:3857`; `SRS` in version 1.1.1"),
  BBOX: text("Box in that system; latitudes first for EPSG:4326 in version 1.3.0"),
  WIDTH: pixels("Columns of the map, or of the legend"),
  HEIGHT: pixels("Rows of the map, or of the legend"),
  FORMAT: text("`image/png`"),
  TRANSPARENT: text("Whether missing values are transparent", { default: "FALSE" }),
  BGCOLOR: text("Colour of missing values", { default: "0xFFFFFF" }),
  TIME: text("Time as ISO 8601, or `current`. Default: the last one"),
  ELEVATION: text("Value of the vertical axis. Default: the first one"),
  "DIM_{dim}": text("Value of another dimension. Default: the first one"),
  QUERY_LAYERS: text("Path of the variable that `GetFeatureInfo` is about"),
  INFO_FORMAT: text("`application/json` or `text/plain`"),
  I: pixels("Column of the pixel that is asked about; `X` in version 1.1.1"),
  J: pixels("Row of the pixel that is asked about; `Y` in version 1.1.1"),
};

/**
 * The plugin of OGC's Web Map Service, versions 1.3.0 and 1.1.1: variables are layers, colour scales are styles. Every dimension has a
 * default value, so that the exception `MissingDimensionValue` is never sent (OGC 06-042, annex C).
 */
const wmsPlugin = {
  name: "wms",
  version: packageVersion,
  path: "zpublish/plugins/wms",
  routes: (context) => [
    {
      path: "/datasets/{dataset_id}/wms",
      priority: "page",
      errors: errorReply,
      operation: {
        summary: "The dataset as a Web Map Service (WMS 1.3.0, 1.1.1)",
        description:
          "Layers are variables that lie on the Earth, styles are colour scales. A pixel has the value of the cell that its centre lies in. Errors are exceptions of WMS in XML, with status 400 if the query is wrong.",
        contentType: WMS_TYPES["1.3.0"].capabilities,
        alternatives: ["image/png", ...WMS_FORMATS.GetFeatureInfo, WMS_TYPES["1.1.1"].capabilities],
        parameters: { dataset_id: "Id of the dataset" },
        query: QUERY,
        isBounded: true,
      },
      handler: (request) => pictureReply(context, request, () => answer(context, request)),
    },
  ],
} satisfies Plugin;
export default wmsPlugin;

/** An operation on one layer. */
interface LayerRequest {
  readonly context: PluginContext;
  readonly request: RouteRequest;
  readonly parameters: WmsParameters;
  readonly place: MapPlace;
}

async function answer(context: PluginContext, request: RouteRequest): Promise<Reply> {
  const parameters = parseWmsQuery(request.query);
  const snapshot = context.datasets.get(request.params.dataset_id!);
  const service = parameters.get("SERVICE") ?? "WMS";
  if (service.toUpperCase() !== "WMS") throw wrongParameter("SERVICE", "enum", "WMS", service);
  const name = parameters.need("REQUEST");
  if (name === "GetCapabilities") return serveCapabilities(context, request, snapshot);
  const operation = LAYER_OPERATIONS.find((each) => each.name === name);
  if (operation === undefined)
    throw wrongParameter("REQUEST", "OperationNotSupported", `one of ${OPERATIONS.join(", ")}`, name);
  const path = parameters.need(operation.parameter);
  const place = await context.maps.place(snapshot, path).catch(noLayer);
  if (!(place instanceof ZpublishError)) return operation.serve({ context, request, parameters, place });
  const expected = path.includes(",") ? "one layer" : `a layer (${place.message})`;
  throw wrongParameter(operation.parameter, "LayerNotDefined", expected, path);
}

/** Returns an error that says that a variable is no layer. @throws any other, which says that it cannot be read */
function noLayer(error: unknown): ZpublishError {
  if (!(error instanceof ZpublishError)) throw error;
  if (!["not-found", "invalid-query", "unsupported"].includes(error.code)) throw error;
  return error;
}

async function serveCapabilities(
  context: PluginContext,
  { serviceUrl, rawPath, query }: RouteRequest,
  snapshot: DatasetView,
): Promise<Reply> {
  const version = wmsVersion(query);
  // Variables that are no layers yet are looked at again: their coordinates may be written meanwhile.
  const kept = context.memo(snapshot, "wms layers", () => new Map<string, MapPlace>());
  const find = async (path: string) => {
    const known = kept.get(path);
    if (known?.isCurrent()) return known;
    const layer = await context.maps.place(snapshot, path).catch(noLayer);
    if ("axes" in layer) kept.set(path, layer);
    return layer;
  };
  const found = await Promise.all([...snapshot.arrays.keys()].map(find));
  const layers = found.flatMap((layer) => ("axes" in layer && layer.extent ? [layer] : []));
  const token = queryToken(query);
  const url = `${serviceUrl}${rawPath}?${token === undefined ? "" : `token=${encodeURIComponent(token)}&`}`;
  const title = datasetFacts(snapshot.tree.root.attrs).title ?? snapshot.id;
  return {
    kind: "stream",
    contentType: WMS_TYPES[version].capabilities,
    cacheControl: snapshot.cacheControl,
    quotesAddress: true,
    isCompressible: true,
    async *pieces() {
      for (const piece of writeCapabilities(version, url, title, layers)) yield Buffer.from(piece);
    },
  };
}

async function serveMap({ context, parameters, place }: LayerRequest): Promise<Reply> {
  parseFormat(parameters, "FORMAT", WMS_FORMATS.GetMap);
  const { steps, warnings } = parseSteps(parameters, place);
  const reply = await context.maps.draw(place, parseFrame(parameters), steps, {
    ...parseStyle(parameters, "STYLES", place.categories !== undefined),
    background: parseBackground(parameters),
  });
  if (warnings.length === 0) return reply;
  // OGC 06-042, annex C.4.2.
  const warning = warnings.map((text) => `99 ${text.replace(/[^ -~]/g, "?")}`).join(", ");
  return { ...reply, headers: [...(reply.headers ?? []), ["Warning", warning]] };
}

async function serveLegend({ context, parameters, place }: LayerRequest): Promise<Reply> {
  parseFormat(parameters, "FORMAT", WMS_FORMATS.GetMap);
  const size = {
    width: parsePixels(parameters, "WIDTH", LEGEND_SIZE.width),
    height: parsePixels(parameters, "HEIGHT", LEGEND_SIZE.height),
  };
  const style = parseStyle(parameters, "STYLE", place.categories !== undefined);
  return context.maps.legend(place, size, style);
}

async function serveFeatureInfo({ context, request, parameters, place }: LayerRequest): Promise<Reply> {
  const { array, snapshot } = place;
  const format = parseFormat(parameters, "INFO_FORMAT", WMS_FORMATS.GetFeatureInfo);
  const pixel = parsePixel(parameters, parseFrame(parameters));
  const { steps, shown } = parseSteps(parameters, place);
  const value = await context.maps.valueAt(place, pixel, steps, request.signal);
  const { path, attrs } = array.variable;
  const { unit = null } = variableFacts(attrs);
  const { kind, itemSize } = context.values.dataType(array, true);
  const number = value === undefined || kind !== "f" ? value : shortestFloat(value, itemSize);
  const { longitudes, latitudes } = placesOf(pixel);
  const coordinates = [...longitudes, ...latitudes];
  const [longitude, latitude] = coordinates.map((each) => each.toFixed(6));
  const category = place.categories?.find((each) => each.value === value)?.meaning;
  const properties = {
    ...{ layer: path, title: place.title, value: number ?? null, units: unit },
    ...(category === undefined ? {} : { category }),
    ...shown,
  };
  const geometry = { type: "Point", coordinates };
  const features = [{ type: "Feature", id: path, geometry, properties }];
  const lines = Object.entries({ ...properties, longitude, latitude }).map((pair) => pair.join(": "));
  const isText = format === "text/plain";
  const content = isText ? `${lines.join("\n")}\n` : JSON.stringify({ type: "FeatureCollection", features });
  const document = context.createDocument(content, format);
  return { kind: "document", document, cacheControl: snapshot.cacheControl };
}

/** Writes an error as an exception. A query that is wrong is 400: some programs take 404 for an empty map. */
function errorReply({ status, code, detail, parameter, query }: ErrorFacts): ErrorReply {
  const version = wmsVersion(query);
  const message = parameter === undefined ? detail : `${parameter.name}: ${detail}`;
  return {
    status: code === "invalid-query" ? 400 : Number.parseInt(status, 10),
    contentType: WMS_TYPES[version].exception,
    body: writeException(version, parameter && codeOf(parameter), parameter?.name, message),
  };
}

/** Returns the code of an exception (OGC 06-042, table E.1), which many errors have as their type; undefined if there is none. */
function codeOf({ name, type }: NonNullable<ErrorFacts["parameter"]>): string | undefined {
  // Steps are checked when a map is drawn, which knows nothing of WMS.
  if (type === "label" || type === "empty_selection") return "InvalidDimensionValue";
  if (name === "I" || name === "J") return "InvalidPoint";
  return /^[A-Z]/.test(type) ? type : undefined;
}
