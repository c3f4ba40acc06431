import type { JsonObject } from "../../plugin-api.js";
import { COLLECTION_QUERIES, CRS, EDR_FORMATS, type QueryType } from "./edr-query.js";

const TEXT = { type: "string" };
const BOX = (count: number) => ({
  type: "array",
  items: { type: "number" },
  minItems: count,
  maxItems: count,
});

/** Parameters that all queries have. */
const COMMON: Readonly<Record<string, string>> = {
  "parameter-name": "Names of parameters, with commas between them. Default: all",
  datetime:
    "`2020-01-01T00:00Z`, several with commas, or a period: `a/b`, `../b`, `a/..`. A date is the whole day. Default: all",
  z: "Level `850`, several `850,500`, a range `100/850`, `../850`, or `R3/100/50`. Default: all",
  crs: `Coordinate reference system, of longitudes before latitudes: ${CRS.join(", ")}`,
  f: `Format: ${Object.keys(EDR_FORMATS).join(", ")}. GeoJSON is for positions. Default: by \`Accept\`, else CoverageJSON`,
};
const TYPES = Object.values(EDR_FORMATS).flatMap(({ types }) => types);
/** Media type of the description of the API. */
export const OPENAPI_TYPE = "application/vnd.oai.openapi+json;version=3.0";

/** Describes the API below `/edr`, as OpenAPI 3.0. @param root Absolute URL of `/edr`. */
export function edrOpenapi(root: string, title: string, version: string): JsonObject {
  const collection = "/collections/{collectionId}";
  const instance = `${collection}/instances/{instanceId}`;
  const page = [
    queryParameter("limit", "Collections of a page"),
    queryParameter("after", "Id before the page"),
  ];
  const documents: [path: string, summary: string, parameters?: JsonObject[]][] = [
    ["/", "Landing page"],
    ["/conformance", "Conformance classes"],
    ["/collections", "Collections", page],
    [collection, "A collection"],
    [`${collection}/instances`, "Versions of a collection"],
    [instance, "A version of a collection"],
  ];
  const queries = [collection, instance].flatMap((below) =>
    (Object.keys(COLLECTION_QUERIES) as QueryType[]).map(
      (type) => [`${below}/${type}`, queryPath(type)] as const,
    ),
  );
  const paths = [
    ...documents.map(([path, summary, own = []]) => [path, documentPath(summary, own)] as const),
    ...queries,
  ].map(([path, operations]) => {
    const names = Array.from(path.matchAll(/\{(\w+)\}/g), ([, name = ""]) => name);
    const parameters = names.map((name) => ({ name, in: "path", required: true, schema: TEXT }));
    return [path, { parameters, ...operations }];
  });
  return {
    ...{ openapi: "3.0.3", info: { title, version }, servers: [{ url: root }] },
    paths: Object.fromEntries(paths),
  };
}

function documentPath(summary: string, own: readonly JsonObject[]): JsonObject {
  const parameters = [...own, queryParameter("f", "Format: json")];
  return { get: { summary, parameters, responses: responsesOf(["application/json"], summary) } };
}

function queryPath(type: QueryType): JsonObject {
  const { summary, coords } = COLLECTION_QUERIES[type];
  const place = type === "cube" ? "bbox" : "coords";
  const parameters = [
    {
      ...queryParameter(place, coords, type === "cube" ? { oneOf: [BOX(4), BOX(6)] } : TEXT),
      required: true,
    },
    ...Object.entries(COMMON).map(([name, description]) => queryParameter(name, description)),
  ];
  const responses = { 204: { description: "No data there" }, ...responsesOf(TYPES, summary) };
  const properties = Object.fromEntries([place, ...Object.keys(COMMON)].map((name) => [name, TEXT]));
  const schema = { type: "object", required: [place], properties };
  const requestBody = { required: true, content: { "application/json": { schema } } };
  return { get: { summary, parameters, responses }, post: { summary, requestBody, responses } };
}

function queryParameter(name: string, description: string, schema: JsonObject = TEXT): JsonObject {
  return { name, in: "query", required: false, style: "form", explode: false, description, schema };
}

function responsesOf(types: readonly string[], description: string): JsonObject {
  const error = { type: "object", required: ["code"], properties: { code: TEXT, description: TEXT } };
  const answer = { description: "Error", content: { "application/json": { schema: error } } };
  const errors = [400, 404, 413, 415, 500, 503].map((status) => [`${status}`, answer]);
  return {
    200: { description, content: Object.fromEntries(types.map((type) => [type, { schema: {} }])) },
    ...Object.fromEntries(errors),
  };
}
