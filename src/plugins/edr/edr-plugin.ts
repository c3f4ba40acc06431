import { createHash } from "node:crypto";
import {
  chooseMediaType,
  type ErrorFacts,
  type ErrorReply,
  exportedByteLength,
  type JsonObject,
  type Plugin,
  type PluginContext,
  packageVersion,
  type Reply,
  type Route,
  type RouteRequest,
  type StreamReply,
  stringifyJson,
  writeCsv,
  writeNetcdf,
  wrongParameter,
  ZpublishError,
} from "../../plugin-api.js";
import {
  collectionList,
  collectionOf,
  conformance,
  instanceList,
  landingPage,
  OPENAPI_TYPE,
  openApiOf,
  openCollection,
  PAGE_QUERY,
} from "./edr-metadata.js";
import {
  COLLECTION_QUERIES,
  EDR_FORMATS,
  type FormatName,
  type QueryType,
  readEdrQuery,
} from "./edr-query.js";
import { writeCoverageJson, writeEdrGeojson } from "./json-answers.js";
import { type PlannedCoverage, planCoverages } from "./plan-coverages.js";

const JSON_TYPE = "application/json";
/** Greatest body of a query: a polygon of some hundred thousand positions. */
const MAX_BODY_BYTES = 8 * 2 ** 20;
/** Memory of an answer while it is sent: values that are read ahead, and their text. */
const HELD_BYTES = 24 * 2 ** 20;

/** The plugin of OGC API - Environmental Data Retrieval 1.1 (19-086r6): datasets as collections of coverages. */
const edrPlugin = {
  name: "edr",
  version: packageVersion,
  path: "zpublish/plugins/edr",
  routes: (context) => [...documentRoutes(context), ...queryRoutes(context)],
} satisfies Plugin;
export default edrPlugin;

const COLLECTION = "/edr/collections/{dataset_id}";
const INSTANCE = `${COLLECTION}/instances/{instance}`;
const PARAMETERS = { dataset_id: "Id of the dataset", instance: "A tag, or the id of a snapshot" };

const DOCUMENTS: readonly (readonly [
  path: string,
  summary: string,
  write: (context: PluginContext, request: RouteRequest) => JsonObject | Promise<JsonObject>,
])[] = [
  ["/edr", "Landing page", landingPage],
  ["/edr/", "Landing page", landingPage],
  ["/edr/conformance", "Conformance classes", conformance],
  ["/edr/api", "Description of the API", openApiOf],
  ["/edr/collections", "Datasets as collections", collectionList],
  [COLLECTION, "A dataset as collection", collectionOf],
  [`${COLLECTION}/instances`, "Versions of a collection", instanceList],
  [INSTANCE, "A version of a collection", collectionOf],
];

function documentRoutes(context: PluginContext): Route[] {
  return DOCUMENTS.map(([path, title, write]) => {
    const summary = `${title} (OGC API - EDR)`;
    const contentType = path === "/edr/api" ? OPENAPI_TYPE : JSON_TYPE;
    const query = path === "/edr/collections" ? PAGE_QUERY : { f: PAGE_QUERY.f! };
    return {
      ...{ path, priority: "page", errors: writeError },
      operation: { summary, contentType, parameters: PARAMETERS, query, ranged: true },
      async handler(request) {
        const content = stringifyJson(await write(context, request));
        const document = context.createDocument(content, contentType);
        return { kind: "document", document, quotesAddress: true };
      },
    };
  });
}

function queryRoutes(context: PluginContext): Route[] {
  const [contentType, ...alternatives] = Object.values(EDR_FORMATS).flatMap(({ types }) => types);
  return Object.entries(COLLECTION_QUERIES).flatMap(([type, { summary, parameters: query }]) => {
    const [place] = Object.keys(query);
    const properties = Object.fromEntries(Object.keys(query).map((name) => [name, { type: "string" }]));
    const schema = { type: "object", required: [place], properties };
    const body = { description: "Parameters of the query", content: { [JSON_TYPE]: { schema } } };
    return [`${COLLECTION}/${type}`, `${INSTANCE}/${type}`].map(
      (path): Route => ({
        ...{ path, priority: "page", methods: ["GET", "POST"], errors: writeError },
        maxBodyBytes: MAX_BODY_BYTES,
        operation: {
          summary: `${summary} (OGC API - EDR)`,
          ...{ contentType: contentType!, alternatives, parameters: PARAMETERS },
          ...{ query, requestBody: body, ranged: true, isBounded: true, mayBeEmpty: true },
        },
        handler: (request) => answerQuery(context, type as QueryType, request),
      }),
    );
  });
}

async function answerQuery(context: PluginContext, type: QueryType, request: RouteRequest): Promise<Reply> {
  // Before the first `await`: a request that is cancelled meanwhile has no headers any more.
  const accept = request.header("accept");
  const query = await readEdrQuery(type, request);
  const snapshot = await openCollection(context, request);
  const f = query.parameters.get("f");
  const { name, contentType } = chooseFormat(type, f, accept);
  const { signal } = request;
  const isTable = name === "CSV" || name === "GeoJSON";
  const form = { isTable: name !== "CoverageJSON", isDecoded: name !== "NetCDF" };
  const coverages = await planCoverages({ context, snapshot, signal }, query, form);
  if (coverages.length === 0)
    return { kind: "document", status: 204, document: context.createDocument("", contentType) };
  const needed = coverages.reduce((sum, { plan }) => sum + exportedByteLength(plan, isTable), 0);
  const { maxSelectionBytes } = context;
  if (needed > maxSelectionBytes)
    throw new ZpublishError(
      "too-large",
      `Expected a selection of at most ${maxSelectionBytes} bytes (--max-selection), received one of ${needed} bytes`,
    );
  const { revision, state } = snapshot;
  const parts = [packageVersion, revision, state, type, [...query.parameters].sort(), contentType];
  const etag = `"${createHash("sha256").update(JSON.stringify(parts)).digest("base64url").slice(0, 22)}"`;
  return {
    kind: "stream",
    ...{ contentType, etag, cacheControl: snapshot.cacheControl },
    headers: [
      ...(f === undefined ? [["Vary", "Accept"] as const] : []),
      ...(name === "NetCDF" ? [["Content-Disposition", `attachment; filename="${type}.nc"`] as const] : []),
    ],
    heldByteLength: Math.min(HELD_BYTES, 2 * needed + 2 ** 20),
    ...(await bodyOf(context, name, coverages, request)),
  };
}

/** Returns the format that a query asks for, else the one that the client likes best. @throws ZpublishError `invalid-query` */
function chooseFormat(type: QueryType, f: string | undefined, accept: string | undefined) {
  const formats = Object.entries(EDR_FORMATS).filter(([name]) => name !== "GeoJSON" || type === "position");
  const all = formats.flatMap(([, { types }]) => types);
  const asked = f?.toLowerCase() ?? chooseMediaType(accept, all) ?? "covjson";
  for (const [name, { types, names }] of formats)
    if (types.includes(asked) || names.includes(asked))
      return { name: name as FormatName, contentType: types.includes(asked) ? asked : types[0]! };
  throw wrongParameter("f", "enum", `one of ${formats.map(([name]) => name).join(", ")}`, asked);
}

async function bodyOf(
  { values }: PluginContext,
  format: FormatName,
  coverages: readonly PlannedCoverage[],
  { signal, serviceUrl, rawPath }: RouteRequest,
): Promise<Pick<StreamReply, "pieces" | "byteLength" | "quotesAddress">> {
  if (format === "CoverageJSON")
    return { pieces: (_, client) => writeCoverageJson(coverages, values, client.signal) };
  const [coverage] = coverages as [PlannedCoverage];
  if (format === "GeoJSON") {
    const write = writeEdrGeojson(coverage, serviceUrl + rawPath, values);
    return { quotesAddress: true, pieces: (_, client) => write(client.signal) };
  }
  const write = format === "CSV" ? writeCsv : writeNetcdf;
  const { pieces, byteLength } = await write(coverage.plan, values, signal);
  return { byteLength, pieces: (range, client) => pieces(range, client.signal) };
}

/** Writes an error with the members of EDR and those of RFC 7807. Parameters that are wrong are 400 there. */
function writeError({ status: received, detail }: ErrorFacts): ErrorReply {
  const line = received.startsWith("422") ? "400 Bad Request" : received;
  const [status, title] = [Number(line.slice(0, 3)), line.slice(4)];
  const body = { code: `${status}`, description: detail, type: "about:blank", title, status, detail };
  return { status, contentType: JSON_TYPE, body: JSON.stringify(body) };
}
