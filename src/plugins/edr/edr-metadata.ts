import {
  type CoordinateAxis,
  type DatasetSummary,
  type DatasetView,
  idOfVersion,
  idPageSteps,
  type JsonObject,
  labelText,
  openApiDocument,
  type PluginContext,
  packageVersion,
  parseQuery,
  type QueryParameter,
  type RouteRequest,
  readInteger,
  runCooperatively,
} from "../../plugin-api.js";
import { COLLECTION_QUERIES, CRS, EDR_FORMATS } from "./edr-query.js";
import { findParameters, type GriddedVariable, parameterOf } from "./gridded-variable.js";
import { isGregorian } from "./json-answers.js";

const FORMAT_NAMES = Object.keys(EDR_FORMATS);
/** Collections of one page, unless the query says how many; each with its parameters if its dataset is open. */
const PAGE_COLLECTIONS = 100;
const MAX_PAGE_COLLECTIONS = 1_000;
/** Labels of an axis that are listed one by one. */
const MAX_LISTED = 1_000;

/** Attempts to get a summary, each of which waits a second for it. */
const MAX_ATTEMPTS = 10;

const JSON_TYPE = "application/json";
const WKT =
  'GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563]],PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433],AXIS["Longitude",EAST],AXIS["Latitude",NORTH]]';
const GREGORIAN =
  'TIMECRS["DateTime",TDATUM["Gregorian Calendar"],CS[TemporalDateTime,1],AXIS["Time (T)",future]]';

function link(href: string, rel: string, title: string, type = JSON_TYPE) {
  return { href, rel, type, title };
}

/** Describes the service: links to all others. @param root Absolute URL of `/edr`. */
export function landingPage(root: string, serviceUrl: string, title: string): JsonObject {
  return {
    title,
    description: "Environmental data by OGC API - EDR 1.1",
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

/** Describes the API below `/edr`, as OpenAPI 3.0. @param root Absolute URL of `/edr`. */
export function openApiOf({ routes, title, datasetPath }: PluginContext, root: string): JsonObject {
  const own = routes().flatMap((route) =>
    route.path.startsWith("/edr/") ? [{ ...route, path: route.path.slice("/edr".length) }] : [],
  );
  const info = { title, version: packageVersion };
  const { components, ...api } = openApiDocument(own, { ...info, datasetPath });
  const described = { openapi: "3.0.3", info, servers: [{ url: root }] };
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
    schema: { type: "integer", minimum: 1, maximum: MAX_PAGE_COLLECTIONS, default: PAGE_COLLECTIONS },
  },
  after: { description: "Id before the page", schema: TEXT },
  f: { description: "Format: json", schema: TEXT },
};

/** Lists collections, a page of them: those whose datasets are open with their parameters, the others as far as they are known. */
export async function collectionList(
  context: PluginContext,
  root: string,
  request: RouteRequest,
): Promise<JsonObject> {
  const { datasets } = context;
  const query = parseQuery(request.query, { once: Object.keys(PAGE_QUERY) });
  const limit = readInteger(
    "limit",
    query.get("limit")?.[0] ?? `${PAGE_COLLECTIONS}`,
    1,
    MAX_PAGE_COLLECTIONS,
  );
  const listed = { filter: "", after: query.get("after")?.[0] ?? "", limit };
  const ids = datasets.ids();
  const page = await runCooperatively(idPageSteps(ids, datasets.configuredCount, listed));
  const summaries = await context.summaries(page.ids);
  const collections: JsonObject[] = [];
  for (const id of page.ids) {
    const url = `${root}/collections/${encodeURIComponent(id)}`;
    collections.push(await describeCollection(context, datasets.opened(id), id, url, summaries.get(id)));
  }
  const next = new URLSearchParams({ limit: `${limit}`, after: page.next ?? "" });
  const links = [
    link(`${root}/collections`, "self", "This document"),
    ...(page.next === undefined ? [] : [link(`${root}/collections?${next}`, "next", "Next page")]),
  ];
  return { links, collections, numberMatched: ids.length, numberReturned: collections.length };
}

/** Describes the collection of an open dataset. @param url Of the collection. */
export async function collectionOf(
  context: PluginContext,
  snapshot: DatasetView,
  id: string,
  url: string,
): Promise<JsonObject> {
  return describeCollection(context, snapshot, id, url, await summaryOf(context, snapshot.id));
}

/** Returns the summary of an open dataset, which may be in the making. */
async function summaryOf({ summaries }: PluginContext, id: string): Promise<DatasetSummary | undefined> {
  for (let attempt = 1; ; attempt++) {
    const found = (await summaries([id])).get(id);
    if (found !== undefined || attempt === MAX_ATTEMPTS) return found;
  }
}

/** Lists the tags of a collection, and the snapshots that its branches end in. Nothing is opened for it. @param url Of the list. */
export async function instanceList(
  context: PluginContext,
  snapshot: DatasetView,
  url: string,
  signal: AbortSignal,
): Promise<JsonObject> {
  const { id } = snapshot;
  const instances = new Map<string, JsonObject>();
  for (const version of (await snapshot.versions?.list(signal)) ?? []) {
    if (version.kind === "snapshot") continue;
    const name = idOfVersion("", version).slice(1);
    if (instances.has(name)) continue;
    const own = `${url}/${encodeURIComponent(name)}`;
    const opened = context.datasets.opened(idOfVersion(id, version));
    const summary = opened && (await summaryOf(context, opened.id));
    const described = await describeCollection(context, opened, name, own, summary);
    instances.set(name, { ...described, title: `${version.kind} ${version.name}, ${version.time}` });
  }
  return { links: [link(url, "self", "This document")], instances: [...instances.values()] };
}

async function describeCollection(
  context: PluginContext,
  snapshot: DatasetView | undefined,
  id: string,
  url: string,
  summary: DatasetSummary | undefined,
): Promise<JsonObject> {
  const parameters = snapshot && (await findParameters(context.values, snapshot));
  const hasQueries = parameters === undefined || parameters.length > 0;
  const queries = Object.entries(COLLECTION_QUERIES).map(([name, { summary: description }]) => [
    name,
    { link: queryLink(`${url}/${name}`, name, description) },
  ]);
  const instances = {
    link: {
      ...link(`${url}/instances`, "data", "Versions of the collection"),
      variables: { query_type: "instances" },
    },
  };
  return {
    id,
    title: summary?.title || id,
    links: [
      link(url, "self", "This document"),
      link(url, "collection", "The collection"),
      ...(hasQueries
        ? Object.keys(COLLECTION_QUERIES).map((name) => link(`${url}/${name}`, "data", name))
        : []),
    ],
    extent: extentOf(summary, parameters ?? []),
    data_queries: {
      ...(hasQueries ? Object.fromEntries(queries) : {}),
      ...(snapshot?.versions && snapshot.version === undefined ? { instances } : {}),
    },
    crs: CRS,
    output_formats: FORMAT_NAMES,
    parameter_names: Object.fromEntries(
      (parameters ?? []).map((each) => [each.array.variable.path, parameterOf(each)]),
    ),
  };
}

function queryLink(url: string, name: string, description: string): JsonObject {
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
  for (const { axes } of parameters)
    for (const { name, axis } of axes)
      if (!/^[xyt]$/.test(name) && !others.has(name) && axis.length > 0) others.set(name, axis);
  const z = others.get("z");
  others.delete("z");
  const isUsual = calendar === undefined || isGregorian(calendar);
  const time = (text: string) => (isUsual && text.includes("T") ? `${text}Z` : text);
  const { dim = "", units = "1" } = z ?? {};
  return {
    ...(extent && {
      spatial: {
        bbox: [[extent.west, extent.south, extent.east, extent.north]],
        crs: "http://www.opengis.net/def/crs/OGC/1.3/CRS84",
      },
    }),
    ...(period && {
      temporal: {
        interval: [period.map(time)],
        trs: isUsual ? GREGORIAN : GREGORIAN.replace("Gregorian Calendar", `${calendar} calendar`),
      },
    }),
    ...(z && { vertical: { ...labelsOf(z), vrs: `VERTCS["${dim}",VDATUM["${dim}"],UNIT["${units}",1.0]]` } }),
    ...(others.size > 0 && {
      custom: Array.from(others, ([id, axis]) => ({
        id,
        ...labelsOf(axis),
        reference: "https://cfconventions.org/",
      })),
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
