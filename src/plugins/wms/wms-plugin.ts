import {
  type ArrayView,
  type DatasetView,
  datasetFacts,
  type ErrorFacts,
  type ErrorReply,
  findArray,
  type MapFrame,
  type MapPlace,
  type Plugin,
  type PluginContext,
  packageVersion,
  type QueryParameter,
  queryToken,
  type Reply,
  type RouteRequest,
  shortestFloat,
  variableFacts,
  WEB_MERCATOR,
  xmlText,
  ZpublishError,
} from "../../plugin-api.js";
import {
  LEGEND,
  URL_MARK,
  WMS_FORMATS,
  WMS_TYPES,
  type WmsLayer,
  writeCapabilities,
  writeException,
} from "./capabilities.js";
import {
  parseBackground,
  parseFormat,
  parseFrame,
  parsePixel,
  parseStyle,
  parseWmsQuery,
  readPixels,
  WMS_CODES,
  type WmsParameters,
  type WmsVersion,
  wmsError,
  wmsVersion,
} from "./parse-wms-query.js";
import { parseSteps } from "./wms-dimensions.js";

const OPERATIONS = ["GetCapabilities", "GetMap", "GetFeatureInfo", "GetLegendGraphic"];
const TEXT = { type: "string" };

/** Parameters for the API description, as version 1.3.0 has them. */
const QUERY: Readonly<Record<string, QueryParameter>> = {
  REQUEST: {
    description: "Operation. Names of parameters have no case",
    required: true,
    schema: { ...TEXT, enum: OPERATIONS },
  },
  VERSION: { description: "`1.3.0` or `1.1.1`", schema: { ...TEXT, default: "1.3.0" } },
  LAYERS: { description: "Path of one variable; `LAYER` for legends", schema: TEXT },
  STYLES: {
    description: "`default`, or a colour scale, with `-inv` if it is reversed; `STYLE` for legends",
    schema: TEXT,
  },
  COLORSCALERANGE: {
    description:
      "Values of the first and the last colour: `240,310`. Default: by some values of the variable",
    schema: TEXT,
  },
  CRS: { description: "`EPSG:4326`, `CRS:84` or `EPSG:3857`; `SRS` in version 1.1.1", schema: TEXT },
  BBOX: { description: "Box in that system; latitudes first for EPSG:4326 in version 1.3.0", schema: TEXT },
  WIDTH: { description: "Pixels, at most 4096", schema: { type: "integer" } },
  HEIGHT: { description: "Pixels, at most 4096", schema: { type: "integer" } },
  FORMAT: { description: "`image/png`", schema: TEXT },
  TRANSPARENT: {
    description: "Whether missing values are transparent",
    schema: { ...TEXT, default: "FALSE" },
  },
  BGCOLOR: { description: "Colour of missing values", schema: { ...TEXT, default: "0xFFFFFF" } },
  TIME: { description: "Time as ISO 8601, or `current`. Default: the last one", schema: TEXT },
  ELEVATION: { description: "Value of the vertical axis. Default: the first one", schema: TEXT },
  "DIM_{dim}": { description: "Value of another dimension. Default: the first one", schema: TEXT },
  QUERY_LAYERS: { description: "Path of the variable that `GetFeatureInfo` is about", schema: TEXT },
  INFO_FORMAT: { description: "`application/json` or `text/plain`", schema: TEXT },
  I: {
    description: "Column of the pixel that is asked about; `X` in version 1.1.1",
    schema: { type: "integer" },
  },
  J: {
    description: "Row of the pixel that is asked about; `Y` in version 1.1.1",
    schema: { type: "integer" },
  },
};

/** The plugin of OGC's Web Map Service, versions 1.3.0 and 1.1.1: variables are layers, colour scales are styles. */
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
      handler: (request) => answer(context, request),
    },
  ],
} satisfies Plugin;
export default wmsPlugin;

/** An operation on one layer. */
interface LayerRequest {
  readonly context: PluginContext;
  readonly request: RouteRequest;
  readonly parameters: WmsParameters;
  readonly snapshot: DatasetView;
  readonly array: ArrayView;
  readonly place: MapPlace;
}

async function answer(context: PluginContext, request: RouteRequest): Promise<Reply> {
  const parameters = parseWmsQuery(request.query);
  const snapshot = context.datasets.get(request.params.dataset_id as string);
  const service = parameters.get("SERVICE") ?? "WMS";
  if (service.toUpperCase() !== "WMS") throw wmsError("SERVICE", undefined, "WMS", service);
  const operation = parameters.need("REQUEST");
  const about = async (name: string) => ({
    ...{ context, request, parameters, snapshot },
    ...(await layerOf(context, snapshot, name, parameters.need(name))),
  });
  switch (operation) {
    case "GetCapabilities":
      return serveCapabilities(context, request, snapshot);
    case "GetMap":
      return serveMap(await about("LAYERS"));
    case "GetFeatureInfo":
      return serveFeatureInfo(await about("QUERY_LAYERS"));
    case "GetLegendGraphic":
      return serveLegend(await about("LAYER"));
    default:
      throw wmsError("REQUEST", "OperationNotSupported", `one of ${OPERATIONS.join(", ")}`, operation);
  }
}

async function layerOf(context: PluginContext, snapshot: DatasetView, parameter: string, name: string) {
  try {
    const array = findArray(snapshot, name);
    return { array, place: await context.maps.place(snapshot, array) };
  } catch (error) {
    if (!hasNoMap(error)) throw error;
    const expected = name.includes(",") ? "one layer" : `a layer (${(error as ZpublishError).message})`;
    throw wmsError(parameter, "LayerNotDefined", expected, name);
  }
}

/** Tells whether an error says that a variable is no layer, and not that it cannot be read. */
function hasNoMap(error: unknown): boolean {
  return error instanceof ZpublishError && ["not-found", "invalid-query", "unsupported"].includes(error.code);
}

/** Characters of capabilities that are sent at a time. */
const PIECE_CHARS = 64 * 1024;

async function serveCapabilities(
  context: PluginContext,
  { serviceUrl, rawPath, query }: RouteRequest,
  snapshot: DatasetView,
): Promise<Reply> {
  const version = wmsVersion(query);
  const found = await Promise.all(
    [...snapshot.arrays.values()].map(async (array): Promise<WmsLayer | undefined> => {
      try {
        return { array, place: await context.maps.place(snapshot, array) };
      } catch (error) {
        if (hasNoMap(error)) return undefined;
        throw error;
      }
    }),
  );
  const layers = found.filter((layer) => layer?.place.extent !== undefined) as WmsLayer[];
  const token = queryToken(query);
  const suffix = token === undefined ? "" : `token=${encodeURIComponent(token)}&`;
  const url = xmlText(`${serviceUrl}${rawPath}?${suffix}`);
  async function* pieces() {
    let text = "";
    const encoded = () => Buffer.from(text.replaceAll(URL_MARK, url));
    for (const part of writeCapabilities(
      version,
      datasetFacts(snapshot.tree.root.attrs).title ?? snapshot.id,
      layers,
    )) {
      text += part;
      if (text.length < PIECE_CHARS) continue;
      yield encoded();
      text = "";
    }
    yield encoded();
  }
  return {
    kind: "stream",
    contentType: WMS_TYPES[version].capabilities,
    cacheControl: snapshot.cacheControl,
    quotesAddress: true,
    isCompressible: true,
    pieces,
  };
}

async function serveMap({ context, parameters, snapshot, array, place }: LayerRequest): Promise<Reply> {
  parseFormat(parameters, "FORMAT", WMS_FORMATS.GetMap);
  const { steps, warnings } = parseSteps(parameters, place);
  const reply = await context.maps.draw(snapshot, array, parseFrame(parameters), steps, {
    ...parseStyle(parameters, "STYLES", place.categories !== undefined),
    background: parseBackground(parameters),
  });
  if (warnings.length === 0) return reply;
  // OGC 06-042, annex C.4.2.
  const warning = warnings.map((text) => `99 ${text.replace(/[^ -~]/g, "?")}`).join(", ");
  return { ...reply, headers: [...(reply.headers ?? []), ["Warning", warning]] };
}

async function serveLegend({ context, parameters, snapshot, array, place }: LayerRequest): Promise<Reply> {
  parseFormat(parameters, "FORMAT", WMS_FORMATS.GetLegendGraphic);
  const size = {
    width: readPixels(parameters, "WIDTH", LEGEND.width),
    height: readPixels(parameters, "HEIGHT", LEGEND.height),
  };
  const style = parseStyle(parameters, "STYLE", place.categories !== undefined);
  return context.maps.legend(snapshot, array, size, style);
}

async function serveFeatureInfo(asked: LayerRequest): Promise<Reply> {
  const { context, request, parameters, snapshot, array, place } = asked;
  const format = parseFormat(parameters, "INFO_FORMAT", WMS_FORMATS.GetFeatureInfo);
  const frame = parseFrame(parameters);
  const pixel = pixelFrame(frame, parsePixel(parameters, frame));
  const { steps, shown } = parseSteps(parameters, place);
  const value = await context.maps.valueAt(snapshot, array, pixel, steps, request.signal);
  const { path, attrs } = array.variable;
  const { unit = null } = variableFacts(attrs);
  const { kind, itemSize } = context.values.dataType(array, true);
  const number = value === undefined || kind !== "f" ? value : shortestFloat(value, itemSize);
  const coordinates = middleOf(pixel);
  const [longitude, latitude] = coordinates.map((each) => each.toFixed(6));
  const category = place.categories?.find((each) => each.value === value)?.meaning;
  const properties = {
    ...{ layer: path, title: place.title, value: number ?? null, units: unit },
    ...(category === undefined ? {} : { category }),
    ...Object.fromEntries(shown),
  };
  const geometry = { type: "Point", coordinates };
  const features = [{ type: "Feature", id: path, geometry, properties }];
  const lines = Object.entries({ ...properties, longitude, latitude }).map((pair) => pair.join(": "));
  const text =
    format === "text/plain"
      ? `${lines.join("\n")}\n`
      : JSON.stringify({ type: "FeatureCollection", features });
  const document = context.createDocument(text, format);
  return { kind: "document", document, cacheControl: snapshot.cacheControl };
}

/** Returns the map that is one pixel of another one. */
function pixelFrame(
  { crs, bbox: [west, south, east, north], width, height }: MapFrame,
  [column, row]: readonly [number, number],
): MapFrame {
  const [across, down] = [(east - west) / width, (south - north) / height];
  const [left, top] = [west + column * across, north + row * down];
  return { crs, bbox: [left, top + down, left + across, top], width: 1, height: 1 };
}

/** Returns the longitude and latitude of the middle of a map. */
function middleOf({ crs, bbox: [west, south, east, north] }: MapFrame): [number, number] {
  const [x, y] = [(west + east) / 2, (south + north) / 2];
  if (crs === "CRS:84") return [x, y];
  const degrees = 180 / Math.PI;
  return [(x / WEB_MERCATOR.radius) * degrees, Math.atan(Math.sinh(y / WEB_MERCATOR.radius)) * degrees];
}

/** Writes an error as an exception. A query that is wrong is 400: some programs take 404 for an empty map. */
function errorReply({ status, code, detail, parameter, query }: ErrorFacts): ErrorReply {
  const version = wmsVersion(query);
  const message = parameter === undefined ? detail : `${parameter.name}: ${detail}`;
  return {
    status: code === "invalid-query" ? 400 : Number.parseInt(status, 10),
    contentType: WMS_TYPES[version].exception,
    body: writeException(version, codeOf(version, parameter?.type), parameter?.name, message),
  };
}

/** Returns the code of an exception by the type of an error; undefined if there is none. */
function codeOf(version: WmsVersion, type: string | undefined): string | undefined {
  // Steps are checked when a map is drawn, which knows nothing of WMS.
  const named = type === "label" || type === "empty_selection" ? "InvalidDimensionValue" : type;
  const code = WMS_CODES.find((each) => each === named);
  if (version === "1.3.0") return code;
  if (code === "InvalidPoint" || code === "OperationNotSupported") return undefined;
  return code === "InvalidCRS" ? "InvalidSRS" : code;
}
