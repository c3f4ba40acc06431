import {
  type DatasetSummary,
  type DatasetView,
  dataLinks,
  datasetFacts,
  type JsonObject,
  type Plugin,
  type PluginContext,
  packageVersion,
  parseQuery,
  plainText,
  type QueryParameter,
  type Route,
  type RouteOperation,
  type RouteRequest,
  readInteger,
  selectIds,
  stringifyJson,
} from "../../plugin-api.js";
import { type Cube, readCube } from "./cube.js";

/** Datasets to which one catalog leads; that of a server with more leads to catalogs of so many. */
const CATALOG_DATASETS = 1_000;
const MAX_COLLECTIONS = 1_000;
const JSON_TYPE = "application/json";

const LIMIT: QueryParameter = {
  description: "Maximum number of collections; a link `next` leads to others",
  schema: { type: "integer", minimum: 1, maximum: MAX_COLLECTIONS, default: 100 },
};
const AFTER: QueryParameter = {
  description: "Id of the dataset after which the list begins; it need not exist any more",
  schema: { type: "string" },
};

/**
 * The plugin of a catalog as STAC has it (SpatioTemporal Asset Catalog 1.1.0): a collection for each dataset, with an asset for each way
 * to read it. It is a static catalog, and an API of the classes Core and Collections (STAC API 1.0.0).
 */
const stacPlugin = {
  name: "stac",
  version: packageVersion,
  path: "zpublish/plugins/stac",
  routes: (context: PluginContext): readonly Route[] => {
    const route = (
      path: string,
      operation: Omit<RouteOperation, "contentType">,
      make: (context: PluginContext, request: RouteRequest) => Promise<JsonObject> | JsonObject,
    ): Route => ({
      ...{ path: `/stac${path}`, priority: "page" },
      operation: { contentType: JSON_TYPE, schema: { type: "object" }, ranged: true, ...operation },
      async handler(request) {
        const document = context.createDocument(stringifyJson(await make(context, request)), JSON_TYPE);
        return { kind: "document", document, quotesAddress: true };
      },
    });
    const summary = "STAC collections of datasets, as far as they are known without opening any";
    const parameters = { dataset_id: "Id of the dataset" };
    return [
      route("", { summary: "STAC catalog of all datasets", query: { after: AFTER } }, catalogOf),
      route("/collections", { summary, query: { limit: LIMIT, after: AFTER } }, listCollections),
      route(
        "/collections/{dataset_id}",
        { summary: "STAC collection of a dataset", parameters },
        openCollection,
      ),
    ];
  },
} satisfies Plugin;
export default stacPlugin;

/** Makes the catalog of all datasets, or of those after an id. */
function catalogOf({ datasets, title }: PluginContext, { query, serviceUrl }: RouteRequest): JsonObject {
  const [after] = parseQuery(query, { once: ["after"] }).get("after") ?? [];
  const ids = datasets.ids();
  const stac = `${serviceUrl}/stac`;
  const urlAfter = (id: string) => `${stac}?after=${encodeURIComponent(id)}`;
  const shared = { type: "Catalog", stac_version: "1.1.0", title, description: `Datasets of ${title}` };
  const asked = { prefix: "", after: after || undefined, limit: CATALOG_DATASETS };
  const children =
    after === undefined && ids.length > CATALOG_DATASETS
      ? ids.flatMap((id, at) =>
          at % CATALOG_DATASETS === 0
            ? [link("child", urlAfter(ids[at - 1] ?? ""), { title: `From ${id} on` })]
            : [],
        )
      : selectIds(ids, datasets.configuredCount, asked).ids.map((id) =>
          link("child", collectionUrl(stac, id), { title: id }),
        );
  if (after !== undefined) {
    const links = [link("self", urlAfter(after)), link("root", stac), link("parent", stac), ...children];
    return { ...shared, id: `${title} after ${after}`, links };
  }
  const openApi = { type: "application/vnd.oai.openapi+json;version=3.1" };
  return {
    ...{ ...shared, id: title },
    conformsTo: ["core", "collections"].map((name) => `https://api.stacspec.org/v1.0.0/${name}`),
    links: [
      ...[link("self", stac), link("root", stac), link("data", `${stac}/collections`)],
      link("service-desc", `${serviceUrl}/openapi.json`, openApi),
      link("service-doc", `${serviceUrl}/docs`, { type: "text/html" }),
      ...children,
    ],
  };
}

function link(rel: string, href: string, more: JsonObject = {}): JsonObject {
  return { rel, href, type: JSON_TYPE, ...more };
}

function collectionUrl(stac: string, id: string): string {
  return `${stac}/collections/${encodeURIComponent(id)}`;
}

async function listCollections(context: PluginContext, request: RouteRequest): Promise<JsonObject> {
  const { query, serviceUrl } = request;
  const values = parseQuery(query, { once: ["limit", "after"] });
  const limit = readInteger("limit", values.get("limit")?.[0] ?? "100", 1, MAX_COLLECTIONS);
  const after = values.get("after")?.[0] || undefined;
  const all = context.datasets.ids();
  const { ids, hasMore } = selectIds(all, context.datasets.configuredCount, { prefix: "", after, limit });
  const summaries = await context.summaries(ids);
  const url = `${serviceUrl}/stac/collections`;
  const urlAfter = (id: string) => `${url}?limit=${limit}&after=${encodeURIComponent(id)}`;
  return {
    collections: ids.map((id) => collectionOf(context, serviceUrl, id, summaries.get(id))),
    links: [
      link("self", urlAfter(after ?? "")),
      link("root", `${serviceUrl}/stac`),
      ...(hasMore ? [link("next", urlAfter(ids.at(-1)!))] : []),
    ],
    ...{ numberMatched: all.length, numberReturned: ids.length },
  };
}

async function openCollection(context: PluginContext, request: RouteRequest): Promise<JsonObject> {
  const { params, serviceUrl } = request;
  const snapshot = context.datasets.get(params.dataset_id as string);
  const { id } = snapshot;
  const cube = await readCube(context.values, snapshot);
  return collectionOf(context, serviceUrl, id, (await context.summaries([id])).get(id), { snapshot, cube });
}

/** Identifiers of SPDX that have a version, as licences of data do: `CC-BY-4.0`. */
const SPDX = /^[A-Za-z][\w+]*(?:-[A-Za-z][\w+]*)*-\d+(?:\.\d+)+$/;

/** Describes a dataset, which need not be open. */
function collectionOf(
  context: PluginContext,
  serviceUrl: string,
  id: string,
  summary: DatasetSummary | undefined,
  open?: { readonly snapshot: DatasetView; readonly cube: Cube },
): JsonObject {
  const {
    description,
    keywords,
    license = "",
    creator,
    ...facts
  } = datasetFacts(open?.snapshot.tree.root.attrs ?? {});
  const stac = `${serviceUrl}/stac`;
  const title = facts.title ?? plainText(summary?.title) ?? id;
  const { west, south, east, north } = summary?.extent ?? { west: -180, south: -90, east: 180, north: 90 };
  // Clients take dates for those of the usual calendar.
  const [from, to] = (summary?.calendar === undefined && summary?.period) || [];
  const url = serviceUrl + context.datasetPath(encodeURIComponent(id));
  const html = { type: "text/html" };
  const extensions = ["zarr/v1.1.0", "xarray-assets/v1.0.0"];
  if (open !== undefined) extensions.push("datacube/v2.2.0");
  if (open?.cube.projection !== undefined) extensions.push("projection/v2.0.0");
  const maps = mapLinks(context, url, summary);
  if (maps.length > 0) extensions.push("web-map-links/v1.2.0");
  return {
    ...{ type: "Collection", stac_version: "1.1.0", id, title, description: description ?? title },
    stac_extensions: extensions.map((name) => `https://stac-extensions.github.io/${name}/schema.json`),
    ...(keywords.length > 0 && { keywords }),
    license: SPDX.test(license) ? license : "other",
    ...(creator !== undefined && { providers: [{ name: creator, roles: ["producer"] }] }),
    extent: {
      spatial: { bbox: [[west, south, east, north]] },
      temporal: { interval: [[instantOf(from), instantOf(to)]] },
    },
    ...open?.cube.fields,
    links: [
      ...[link("self", collectionUrl(stac, id)), link("root", stac), link("parent", stac)],
      link("alternate", url, html),
      ...(/^https?:\/\/\S+$/.test(license) ? [link("license", license, html)] : []),
      ...maps,
    ],
    assets: assetsOf(context, url, id, summary, open?.cube.projection),
  };
}

/** Writes a time of a coverage as RFC 3339 has it, in years from 1 to 9999; null for others. */
function instantOf(text = ""): string | null {
  const date = new Date(text.includes("T") ? `${text}Z` : text);
  const written = Number.isNaN(date.getTime()) ? "" : date.toISOString();
  return /^(?!0000)\d{4}-/.test(written) ? written.replace(".000Z", "Z") : null;
}

/**
 * Returns links to maps of the variable that stands for a dataset, as the extension Web Map Links 1.2 has them. Dimensions have defaults, so
 * that none is given.
 */
function mapLinks(
  { plugins }: PluginContext,
  url: string,
  summary: DatasetSummary | undefined,
): JsonObject[] {
  const { picture } = summary ?? {};
  if (!picture?.hasMaps) return [];
  const { path } = picture.variable;
  const tiles = `${url}tiles/${encodedPath(path)}`;
  const type = "image/png";
  const links: Readonly<Record<string, readonly JsonObject[]>> = {
    tiles: [link("tilejson", `${tiles}/tilejson.json`), link("xyz", `${tiles}/{z}/{x}/{y}.png`, { type })],
    wms: [link("wms", `${url}wms`, { type, "wms:layers": [path], "wms:transparent": true })],
  };
  return plugins().flatMap(({ name }) => links[name] ?? []);
}

/** Encodes the path of a variable in a URL. */
function encodedPath(path: string): string {
  return path.split("/").map(encodeURIComponent).join("/");
}

/** Returns an asset for each way to read a dataset. @param url That of the dataset. */
function assetsOf(
  { plugins, datasets, datasetPath }: PluginContext,
  url: string,
  id: string,
  summary: DatasetSummary | undefined,
  projection: JsonObject | undefined,
): JsonObject {
  const names = new Set(plugins().map(({ name }) => name));
  const store = datasetPath("") === "/" ? `${url}zarr` : url.replace(/\/$/, ".zarr");
  const fileType = datasets.offersFile(id)
    ? (summary?.file?.contentType ?? "application/octet-stream")
    : undefined;
  const zarr = (version: 2 | 3) => ({
    ...{ "zarr:node_type": "group", "zarr:zarr_format": version, "zarr:consolidated": true },
    "xarray:open_kwargs": { engine: "zarr", consolidated: true },
    ...projection,
  });
  const more: Readonly<Record<string, JsonObject>> = {
    ...{ zarr: zarr(2), zarr3: zarr(3), opendap: { "xarray:open_kwargs": { engine: "netcdf4" } } },
  };
  const assets = dataLinks({ id, url, store, plugins: names, fileType }).map(
    ({ plugin, role, ...asset }): [string, JsonObject] => [
      plugin,
      { ...asset, roles: [role], ...more[plugin] },
    ],
  );
  const picture = summary?.picture && encodedPath(summary.picture.variable.path);
  const thumbnail = { href: `${url}thumbnail/${picture}.png`, type: "image/png", roles: ["thumbnail"] };
  if (picture !== undefined && names.has("thumbnail")) assets.push(["thumbnail", thumbnail]);
  const tiles = { href: `${url}tiles/${picture}/tilejson.json`, type: JSON_TYPE, roles: ["visual"] };
  if (summary?.picture?.hasMaps && names.has("tiles")) assets.push(["tiles", tiles]);
  return Object.fromEntries(assets);
}
