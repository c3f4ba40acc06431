import {
  type CoordinateAxis,
  type DatasetSummary,
  type DatasetView,
  idOfVersion,
  type JsonObject,
  labelText,
  openApiDocument,
  type PluginContext,
  packageVersion,
  parseQuery,
  type QueryParameter,
  type RouteRequest,
  readInteger,
  selectIds,
} from "../../plugin-api.js";
import { COLLECTION_QUERIES, CRS, CRS84, EDR_FORMATS, type QueryType } from "./edr-query.js";
import { describeParameters, findParameters, type GriddedVariable, isGregorian } from "./gridded-variable.js";

const FORMAT_NAMES = Object.keys(EDR_FORMATS);
const QUERY_NAMES = Object.keys(COLLECTION_QUERIES) as QueryType[];
/** Most collections of one page; each has its parameters if its dataset is open. */
const MAX_PAGE_COLLECTIONS = 1_000;
/** Labels of an axis that are listed one by one. */
const MAX_LISTED = 1_000;

/** Milliseconds that the description of a collection waits for its extent. */
const EXTENT_TIMEOUT_MS = 10_000;

const JSON_TYPE = "application/json";
const WKT =
  'GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563]],PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433],AXIS["Longitude",EAST],AXIS["Latitude",NORTH]]';
const GREGORIAN =
  'TIMECRS["DateTime",TDATUM["Gregorian Calendar"],CS[TemporalDateTime,1],AXIS["Time (T)",future]]';

function link(href: string, rel: string, title: string, type = JSON_TYPE) {
  return { href, rel, type, title };
}

/** Describes the service: links to all others. */
export function landingPage({ title }: PluginContext, { serviceUrl }: RouteRequest): JsonObject {
  const root = `${serviceUrl}/edr`;
  return {
    ...{ title, description: "Environmental data by OGC API - EDR 1.1" },
    links: [
      link(root, "self", "This document"),
      link(`${root}/api`, "service-desc", "Description of the API", OPENAPI_TYPE),
      link(`${serviceUrl}/docs`, "service-doc", "Documentation of the API", "text/html"),
      link(`${root}/conformance`, "conformance", "Conformance classes"),
      link(`${root}/collections`, "data", "Collections"),
    ],
  };
}

/** Media type of {@link openApiOf}. */
export const OPENAPI_TYPE = "application/vnd.oai.openapi+json;version=3.0";

const TEXT = { type: "string" };
/** Errors, as the plugin writes them. */
const ERROR = { type: "object", required: ["code"], properties: { code: TEXT, description: TEXT } };

/** Describes the API below `/edr`, as OpenAPI 3.0. */
export function openApiOf(
  { routes, title, datasetPath }: PluginContext,
  { serviceUrl }: RouteRequest,
): JsonObject {
  const own = routes().flatMap((route) =>
    route.path.startsWith("/edr/") ? [{ ...route, path: route.path.slice("/edr".length) }] : [],
  );
  const info = { title, version: packageVersion };
  const { components, ...api } = openApiDocument(own, { ...info, datasetPath });
  const described = { openapi: "3.0.3", info, servers: [{ url: `${serviceUrl}/edr` }] };
  const schemas = { Detail: ERROR, ValidationDetail: ERROR };
  return { ...api, ...described, components: { ...components, schemas } } as JsonObject;
}

const CLASSES = "core collections queries json geojson edr-geojson covjson oas30 instances".split(" ");

/** Lists the conformance classes. That of the core of 1.0 is there, too, for clients that look for it. */
export function conformance(): JsonObject {
  const uri = (version: string, name: string) =>
    `http://www.opengis.net/spec/ogcapi-edr-1/${version}/conf/${name}`;
  return {
    conformsTo: [
      "http://www.opengis.net/spec/ogcapi-common-1/1.0/conf/core",
      "http://www.opengis.net/spec/ogcapi-common-2/1.0/conf/collections",
      ...[...CLASSES.map((name) => uri("1.1", name)), uri("1.0", "core")],
    ],
  };
}

/** Parameters of the list of collections. */
export const PAGE_QUERY: Readonly<Record<string, QueryParameter>> = {
  limit: {
    description: "Collections of a page",
    schema: { type: "integer", minimum: 1, maximum: MAX_PAGE_COLLECTIONS, default: 100 },
  },
  after: { description: "Id before the page", schema: TEXT },
  f: { description: "Format: json", schema: TEXT },
};

/** Lists collections, a page of them: those whose datasets are open with their parameters, the others as far as they are known. */
export async function collectionList(context: PluginContext, request: RouteRequest): Promise<JsonObject> {
  const { datasets } = context;
  const query = parseQuery(request.query, { once: Object.keys(PAGE_QUERY) });
  const limit = readInteger("limit", query.get("limit")?.[0] ?? "100", 1, MAX_PAGE_COLLECTIONS);
  const after = query.get("after")?.[0] || undefined;
  const all = datasets.ids();
  const { ids, hasMore } = selectIds(all, datasets.configuredCount, { prefix: "", after, limit });
  const summaries = await context.summaries(ids);
  const url = request.serviceUrl + request.rawPath;
  const collections: JsonObject[] = [];
  for (const id of ids) {
    const own = `${url}/${encodeURIComponent(id)}`;
    collections.push(await describeCollection(context, datasets.opened(id), id, own, summaries));
  }
  const next = `${url}?limit=${limit}&after=${encodeURIComponent(ids.at(-1) ?? "")}`;
  const links = [link(url, "self", "This document"), ...(hasMore ? [link(next, "next", "Next page")] : [])];
  return { links, collections, numberMatched: all.length, numberReturned: ids.length };
}

/** Returns the dataset of a request, or its version. */
export function openCollection(
  { datasets }: PluginContext,
  { params: { dataset_id: id, instance } }: RouteRequest,
): DatasetView | Promise<DatasetView> {
  return instance === undefined ? datasets.get(id!) : datasets.open(`${id}@${instance}`);
}

/** Describes the collection or instance of a request. */
export async function collectionOf(context: PluginContext, request: RouteRequest): Promise<JsonObject> {
  const { params, serviceUrl, rawPath } = request;
  const snapshot = await openCollection(context, request);
  return describeCollection(context, snapshot, params.instance ?? params.dataset_id!, serviceUrl + rawPath);
}

/** Lists the tags of a collection, and the snapshots that its branches end in. Nothing is opened for it. */
export async function instanceList(context: PluginContext, request: RouteRequest): Promise<JsonObject> {
  const { params, signal, serviceUrl, rawPath } = request;
  const { id, versions } = context.datasets.get(params.dataset_id!);
  const url = serviceUrl + rawPath;
  const instances = new Map<string, JsonObject>();
  for (const version of (await versions?.list(signal)) ?? []) {
    const name = idOfVersion("", version).slice(1);
    if (version.kind === "snapshot" || instances.has(name)) continue;
    const opened = context.datasets.opened(idOfVersion(id, version));
    const described = await describeCollection(context, opened, name, `${url}/${encodeURIComponent(name)}`);
    instances.set(name, { ...described, title: `${version.kind} ${version.name}, ${version.time}` });
  }
  return { links: [link(url, "self", "This document")], instances: [...instances.values()] };
}

/** @param snapshot Undefined if it is not open. @param known What is known of it; default: what is known of an open one after a while. */
async function describeCollection(
  { values, summaries }: PluginContext,
  snapshot: DatasetView | undefined,
  id: string,
  url: string,
  known?: ReadonlyMap<string, DatasetSummary>,
): Promise<JsonObject> {
  const described = known ?? (snapshot && (await summaries([snapshot.id], EXTENT_TIMEOUT_MS)));
  const summary = described?.get(snapshot?.id ?? id);
  const parameters = snapshot && (await findParameters(values, snapshot));
  const names = parameters?.length === 0 ? [] : QUERY_NAMES;
  const instances = {
    ...link(`${url}/instances`, "data", "Versions of the collection"),
    variables: { query_type: "instances" },
  };
  const hasInstances = snapshot?.versions !== undefined && snapshot.version === undefined;
  return {
    ...{ id, title: summary?.title || id },
    links: [
      link(url, "self", "This document"),
      link(url, "collection", "The collection"),
      ...names.map((name) => link(`${url}/${name}`, "data", name)),
    ],
    extent: extentOf(summary, parameters ?? []),
    data_queries: {
      ...Object.fromEntries(names.map((name) => [name, { link: queryLink(`${url}/${name}`, name) }])),
      ...(hasInstances && { instances: { link: instances } }),
    },
    ...{ crs: CRS, output_formats: FORMAT_NAMES },
    parameter_names: describeParameters(parameters ?? []),
  };
}

function queryLink(url: string, name: QueryType): JsonObject {
  const { summary: description } = COLLECTION_QUERIES[name];
  return {
    ...link(url, "data", name),
    variables: {
      ...{ title: name, description, query_type: name },
      output_formats: name === "position" ? FORMAT_NAMES : FORMAT_NAMES.filter((each) => each !== "GeoJSON"),
      default_output_format: FORMAT_NAMES[0]!,
      crs_details: CRS.map((crs) => ({ crs, wkt: WKT })),
      ...(name === "cube" ? { height_units: [] } : {}),
    },
  };
}

/** Describes the extent of a dataset, as far as it is known. */
function extentOf(summary: DatasetSummary | undefined, parameters: readonly GriddedVariable[]): JsonObject {
  const { extent, period, calendar } = summary ?? {};
  const others = new Map<string, CoordinateAxis>();
  for (const { name, axis } of parameters.flatMap(({ axes }) => axes))
    if (!/^[xyt]$/.test(name) && !others.has(name) && axis.length > 0) others.set(name, axis);
  const isUsual = calendar === undefined || isGregorian(calendar);
  const time = (text: string) => (isUsual && text.includes("T") ? `${text}Z` : text);
  const trs = isUsual ? GREGORIAN : GREGORIAN.replace("Gregorian Calendar", `${calendar} calendar`);
  const z = others.get("z");
  const { dim = "", units = "1" } = z ?? {};
  const reference = "https://cfconventions.org/";
  const custom = [...others].filter(([id]) => id !== "z");
  return {
    ...(extent && {
      spatial: { bbox: [[extent.west, extent.south, extent.east, extent.north]], crs: CRS84 },
    }),
    ...(period && { temporal: { interval: [period.map(time)], trs } }),
    ...(z && { vertical: { ...labelsOf(z), vrs: `VERTCS["${dim}",VDATUM["${dim}"],UNIT["${units}",1.0]]` } }),
    ...(custom.length > 0 && {
      custom: custom.map(([id, axis]) => ({ id, ...labelsOf(axis), reference })),
    }),
  };
}

/** Lists the labels of an axis: its ends, and all if they are few. */
function labelsOf(axis: CoordinateAxis): JsonObject {
  const { values, length } = axis;
  const ends = [labelText(axis, 0), labelText(axis, length - 1)];
  const isTurned = typeof values?.[0] !== "string" && Number(ends[0]) > Number(ends[1]);
  const all = length > MAX_LISTED ? undefined : Array.from({ length }, (_, at) => labelText(axis, at));
  return { interval: [isTurned ? ends.reverse() : ends], ...(all && { values: all }) };
}
