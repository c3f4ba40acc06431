import {
  assertNoColours,
  COLOUR_QUERY,
  colourTable,
  LEGEND_SIZE,
  type MapFrame,
  type MapOptions,
  type MapPlace,
  type MapSteps,
  type Plugin,
  type PluginContext,
  packageVersion,
  parseColours,
  parseQuery,
  pictureReply,
  type QueryParameter,
  type Reply,
  type Route,
  type RouteRequest,
  readInteger,
  WEB_MERCATOR,
  wrongParameter,
  ZpublishError,
} from "../../plugin-api.js";

/** A query of tiles. */
interface TileQuery extends MapOptions {
  readonly steps: MapSteps;
}

const INDEX = "isel.";

/** Parameters of tiles for the API description. */
const TILE_QUERY: Readonly<Record<string, QueryParameter>> = {
  "{dim}": {
    description:
      "Label of a dimension: a value, `nearest::8.6`, `ffill::…`, `bfill::…`; times are ISO 8601, and `time` is the axis of times whatever its name. Default: the last time, and the first step of other dimensions",
    schema: { type: "string", examples: ["2020-01-01T06:00"] },
  },
  "isel.{dim}": {
    description: "Index of a dimension, from the end if it is negative",
    schema: { type: "integer" },
  },
  range: {
    description:
      "Values of the first and the last colour: `240,310`. Default: by some values of the variable",
    schema: { type: "string", examples: ["240,310"] },
  },
  ...COLOUR_QUERY,
  interpolate: {
    description: "Whether a pixel has the value of its cell, or one between the centres of cells",
    schema: { type: "string", enum: ["nearest", "linear"], default: "nearest" },
  },
};

/** Parameters that are not about a dimension. */
const STYLE = ["range", "scale", "reversed", "interpolate"];

/** Pixels along the side of a tile. */
const TILE_PIXELS = 256;
/** Half the length of the equator in Web Mercator: the edge of its square. */
const EDGE = Math.PI * WEB_MERCATOR.radius;
const MAX_ZOOM = 30;

const PARAMETERS = { dataset_id: "Id of the dataset", var: "Path of the variable: `t2m`, `a/b/t2m`" };
const TILES = "/datasets/{dataset_id}/tiles/{var:path}";

/** The plugin of map tiles: variables in squares of Web Mercator, as web maps and GIS programs ask for them. */
const tilesPlugin = {
  name: "tiles",
  version: packageVersion,
  path: "zpublish/plugins/tiles",
  routes: (context): readonly Route[] => [tileRoute(context), ...layerRoutes(context)],
} satisfies Plugin;
export default tilesPlugin;

function tileRoute(context: PluginContext): Route {
  return {
    path: `${TILES}/{z}/{x}/{y}`,
    priority: "page",
    operation: {
      summary: "Map tile of a variable, as a PNG in Web Mercator",
      description:
        "`{z}/{x}/{y}.png` has 256 × 256 pixels, `{y}@2x.png` 512 × 512. A pixel has the value of the cell that its centre lies in; missing values are transparent. " +
        "Grids lie on the Earth by their latitudes and longitudes, also those of each cell, or by a projection that is known. " +
        "A tile is made of the coarsest overview that has as many cells as pixels; without overviews, of at most 16 chunks, or 413.",
      contentType: "image/png",
      parameters: {
        ...PARAMETERS,
        z: `Zoom, 0 to ${MAX_ZOOM}`,
        x: "Column from the west",
        y: "Row from the north, with `.png` or `@2x.png`",
      },
      query: TILE_QUERY,
      ranged: true,
      isBounded: true,
    },
    handler: (request) =>
      pictureReply(context, request, async () => {
        const frame = frameOf(request.params);
        const { place, query } = await layerOf(context, request);
        return context.maps.draw(place, frame, query.steps, query);
      }),
  };
}

/** Routes of what the tiles of a variable have in common. */
function layerRoutes(context: PluginContext): Route[] {
  const route = (
    file: string,
    contentType: string,
    summary: string,
    reply: (layer: Layer, request: RouteRequest) => Promise<Reply>,
  ): Route => ({
    path: `${TILES}/${file}`,
    priority: "page",
    operation: {
      summary,
      contentType,
      parameters: PARAMETERS,
      query: TILE_QUERY,
      ranged: contentType === "image/png",
    },
    handler: async (request) => reply(await layerOf(context, request), request),
  });
  const json = ({ place }: Layer, content: object) => ({
    kind: "document" as const,
    document: context.createDocument(JSON.stringify(content), "application/json"),
    cacheControl: place.snapshot.cacheControl,
  });
  return [
    route(
      "tilejson.json",
      "application/json",
      "TileJSON 3 of a variable: address, zooms and bounds of its tiles",
      async (layer, request) => ({ ...json(layer, tileJson(request, layer)), quotesAddress: true }),
    ),
    route(
      "legend.json",
      "application/json",
      "Colours of a variable's tiles, and what they mean",
      async (layer) => json(layer, await legendDocument(context, layer)),
    ),
    route(
      "legend.png",
      "image/png",
      "Colours of a variable's tiles as a picture, least value first",
      ({ place, query }) => context.maps.legend(place, LEGEND_SIZE, query),
    ),
  ];
}

/** A variable as a query asks for it. */
interface Layer {
  readonly place: MapPlace;
  readonly query: TileQuery;
}

/** @throws ZpublishError `invalid-query` if values have no such colours, or cannot be interpolated */
async function layerOf(context: PluginContext, request: RouteRequest): Promise<Layer> {
  const query = parseTileQuery(request.query);
  const { dataset_id: id, var: path } = request.params;
  const place = await context.maps.place(context.datasets.get(id!), path!);
  const cells = "nearest, since values are categories, or cells have no rows and columns of places";
  if (query.isLinear && !place.isContinuous)
    throw wrongParameter("interpolate", "not_applicable", cells, "linear");
  if (place.categories !== undefined) assertNoColours(query, "values are categories");
  return { place, query };
}

/** Returns what a tile shows. @throws ZpublishError `not-found` if there is no such tile */
function frameOf({ z, x, y }: RouteRequest["params"]): MapFrame {
  const [, row, isDouble] = /^(\d+)(@2x)?\.png$/.exec(y!) ?? [];
  const [zoom, column, line] = [z, x, row].map((text) =>
    /^(?:0|[1-9]\d{0,9})$/.test(text ?? "") ? Number(text) : Number.NaN,
  ) as [number, number, number];
  const count = 2 ** zoom;
  if (!(zoom <= MAX_ZOOM && column < count && line < count))
    throw new ZpublishError(
      "not-found",
      `Tile '${z}/${x}/${y}' not found: expected z/x/y.png or z/x/y@2x.png of Web Mercator, z at most ${MAX_ZOOM}`,
    );
  const side = (2 * EDGE) / count;
  const [west, north] = [column * side - EDGE, EDGE - line * side];
  const pixels = isDouble === undefined ? TILE_PIXELS : 2 * TILE_PIXELS;
  return {
    crs: "EPSG:3857",
    bbox: [west, north - side, west + side, north],
    width: pixels,
    height: pixels,
  };
}

/** Greatest zoom that a map asks for: beyond a pixel per cell, tiles only become larger. */
const MAX_USEFUL_ZOOM = 22;

/** Writes TileJSON 3.0.0 of a variable. */
function tileJson({ serviceUrl, rawPath, query }: RouteRequest, { place }: Layer): object {
  const [west, south, east, north] = place.extent ?? [-180, -90, 180, 90];
  const folder = rawPath.slice(0, rawPath.lastIndexOf("/"));
  const rows = place.axes[place.y]!.length;
  // Pixels of 256 per 360 degrees at zoom 0.
  const zoom = Math.ceil(Math.log2(((rows / Math.max(north - south, 1e-6)) * 360) / TILE_PIXELS));
  const { latitude } = WEB_MERCATOR;
  return {
    tilejson: "3.0.0",
    name: place.title,
    scheme: "xyz",
    tiles: [`${serviceUrl}${folder}/{z}/{x}/{y}.png${query === "" ? "" : `?${query}`}`],
    minzoom: 0,
    maxzoom: Math.min(Math.max(zoom, 0), MAX_USEFUL_ZOOM),
    bounds: [
      east > 180 ? -180 : west,
      Math.max(south, -latitude),
      Math.min(east, 180),
      Math.min(north, latitude),
    ],
  };
}

/** Writes the colours of a layer. */
async function legendDocument({ maps }: PluginContext, { place, query }: Layer): Promise<object> {
  const { units } = place.array.variable.attrs;
  const common = { title: place.title, units: typeof units === "string" ? units : null };
  if (place.categories !== undefined)
    return {
      ...common,
      categories: place.categories.map(({ meaning = null, ...each }) => ({ ...each, meaning })),
    };
  const { range = await maps.range(place), isReversed = false } = query;
  const scale = query.scale ?? (range[0] === -range[1] ? "rdbu" : "viridis");
  const table = Buffer.from(colourTable(scale, isReversed).subarray(3));
  const colours = Array.from(
    { length: table.length / 3 },
    (_, at) => `#${table.toString("hex", 3 * at, 3 * at + 3)}`,
  );
  return { ...common, range, scale, reversed: isReversed, colours };
}

/** Parses the query of tiles. Names of dimensions are not checked. @throws ZpublishError `invalid-query` */
function parseTileQuery(query: string): TileQuery {
  const values = parseQuery(query, { once: ["{dim}"] });
  const steps = new Map<string, number | string>();
  for (const [parameter, [text = ""]] of values) {
    if (STYLE.includes(parameter)) continue;
    const isIndex = parameter.startsWith(INDEX);
    const name = isIndex ? parameter.slice(INDEX.length) : parameter;
    if (steps.has(name))
      throw wrongParameter(parameter, "contradiction", `either it or 'isel.${name}'`, text);
    const [least, greatest] = [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER];
    steps.set(name, isIndex ? readInteger(parameter, text, least, greatest) : text);
  }
  const [interpolate = "nearest"] = values.get("interpolate") ?? [];
  if (interpolate !== "nearest" && interpolate !== "linear")
    throw wrongParameter("interpolate", "enum", "one of nearest, linear", interpolate);
  return { steps, ...parseColours(values), isLinear: interpolate === "linear" };
}
