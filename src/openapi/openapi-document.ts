import type { DatasetPath } from "../dataset/dataset.js";
import type { Route } from "../http/router.js";
import { COMPONENTS } from "./openapi-components.js";
import { createTags } from "./route-tags.js";

/** Name and version of the service, and the path of its datasets. */
export interface ServiceInfo {
  readonly title: string;
  readonly version: string;
  readonly datasetPath: DatasetPath;
}

type JsonSchemaObject = Readonly<Record<string, unknown>>;

/**
 * Describes a route table as OpenAPI 3.1.
 *
 * The only server is `.`, the directory of the document: correct with any root path and behind any proxy. OpenAPI has no
 * parameters that span several segments, so only their description says it.
 */
export function openApiDocument(routes: readonly Route[], info: ServiceInfo): JsonSchemaObject {
  const tagOf = createTags(routes);
  const redirecting = redirectingPaths(routes);
  const operationIds = new Set<string>();
  const paths: Record<string, JsonSchemaObject> = {};
  const tags = new Set<string>();
  for (const route of routes) {
    const path = route.path.replace(PARAMETER, "{$1}");
    // To OpenAPI, templates that differ only in the span of a parameter are one path: the first one describes both.
    if (Object.hasOwn(paths, path)) continue;
    const tag = tagOf(route);
    tags.add(tag);
    paths[path] = pathItem(route, path, tag, redirecting.has(route.path), operationIds);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: info.title,
      version: info.version,
      description: `${DESCRIPTION} A dataset's Zarr URL is \`${info.datasetPath("{dataset_id}").slice(1)}zarr\`.`,
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: ".", description: "The origin of this document" }],
    // The document is the same whether the server asks for a token or not.
    security: [{}, { bearer: [] }, { query: [] }],
    tags: [...tags].map((name) => ({ name })),
    paths,
    components: COMPONENTS,
  };
}

const DESCRIPTION =
  "Read-only access to n-dimensional datasets, as metadata and as Zarr v2 stores chunk by chunk. " +
  "Every path answers GET, HEAD and OPTIONS (CORS preflight), any other method 405.";

/** A parameter: `{name}` or `{name:path}`. */
const PARAMETER = /\{([^}:]+)(:path)?\}/g;

function pathItem(
  route: Route,
  path: string,
  tag: string,
  redirects: boolean,
  operationIds: Set<string>,
): JsonSchemaObject {
  const { summary, description, parameters: descriptions = {} } = route.operation;
  const parameters = Array.from(route.path.matchAll(PARAMETER), ([, name, spans]) =>
    pathParameter(name as string, spans !== undefined, descriptions[name as string]),
  );
  const shared = { tags: [tag], summary, ...(description !== undefined && { description }) };
  const identifier = uniqueId(path, operationIds);
  const conditions = redirects ? [] : conditionParameters(route.operation.ranged === true);
  const asked = Object.entries(route.operation.query ?? {}).map(([name, parameter]) => ({
    name,
    in: "query",
    required: false,
    ...parameter,
  }));
  const options = [...asked, ...conditions];
  return {
    ...(parameters.length > 0 && { parameters }),
    get: {
      ...shared,
      operationId: `get_${identifier}`,
      ...(options.length > 0 && { parameters: options }),
      responses: responses(route, parameters, redirects, true),
    },
    head: {
      ...shared,
      summary: `${summary} (headers only)`,
      operationId: `head_${identifier}`,
      ...(options.length > 0 && { parameters: options }),
      responses: responses(route, parameters, redirects, false),
    },
  };
}

function pathParameter(
  name: string,
  spansSegments: boolean,
  description: string | undefined,
): JsonSchemaObject {
  const spans = "May span several segments: its slashes are not percent-encoded.";
  const text = spansSegments ? [description, spans].filter(Boolean).join(". ") : description;
  return {
    name,
    in: "path",
    required: true,
    ...(text !== undefined && { description: text }),
    schema: { type: "string", ...(!spansSegments && { minLength: 1 }), maxLength: 1024 },
  };
}

function conditionParameters(ranged: boolean): JsonSchemaObject[] {
  const names = ranged ? ["IfNoneMatch", "IfMatch", "Range", "IfRange"] : ["IfNoneMatch", "IfMatch"];
  return names.map((name) => ({ $ref: `#/components/parameters/${name}` }));
}

function responses(
  route: Route,
  parameters: readonly unknown[],
  redirects: boolean,
  body: boolean,
): JsonSchemaObject {
  const { contentType, schema, ranged } = route.operation;
  const mediaType = contentType.split(";", 1)[0] as string;
  const content = body && { content: { [mediaType]: { schema: schema ?? defaultSchema(mediaType) } } };
  const answers: [string, JsonSchemaObject][] = redirects
    ? [["301", reference("MovedPermanently")]]
    : [["200", { description: "OK", headers: OK_HEADERS, ...content }]];
  if (!redirects) {
    if (ranged) {
      const headers = { ...OK_HEADERS, "Content-Range": { $ref: "#/components/headers/Content-Range" } };
      answers.push(["206", { description: "The requested part", headers, ...partOf(body, mediaType) }]);
    }
    if (body && route.priority === "chunk") answers.push(["302", reference("Found")]);
    answers.push(["304", reference("NotModified")]);
  }
  const suffix = body ? "" : "Head";
  answers.push(["401", reference(`Unauthorized${suffix}`)]);
  if (parameters.length > 0 || route.given !== undefined)
    answers.push(["404", reference(`NotFound${suffix}`)]);
  answers.push(["405", reference(`MethodNotAllowed${suffix}`)]);
  if (!redirects) {
    answers.push(["412", reference(`PreconditionFailed${suffix}`)]);
    if (ranged) answers.push(["416", reference(`RangeNotSatisfiable${suffix}`)]);
  }
  if (parameters.length > 0 || route.operation.query !== undefined)
    answers.push(["422", reference(`InvalidPath${suffix}`)]);
  answers.push(["500", reference(`InternalError${suffix}`)], ["503", reference(`Unavailable${suffix}`)]);
  return Object.fromEntries(answers);
}

const OK_HEADERS = {
  ETag: { $ref: "#/components/headers/ETag" },
  "Cache-Control": { $ref: "#/components/headers/Cache-Control" },
  "Accept-Ranges": { $ref: "#/components/headers/Accept-Ranges" },
};

function partOf(body: boolean, mediaType: string): JsonSchemaObject {
  return body ? { content: { [mediaType]: { schema: { type: "string", format: "binary" } } } } : {};
}

function defaultSchema(mediaType: string): JsonSchemaObject {
  if (mediaType === "application/json") return {};
  return mediaType.startsWith("text/") ? { type: "string" } : { type: "string", format: "binary" };
}

function reference(response: string): JsonSchemaObject {
  return { $ref: `#/components/responses/${response}` };
}

function uniqueId(path: string, taken: Set<string>): string {
  const base = path.replace(/[^A-Za-z0-9]+/g, "_").replace(/^_|_$/g, "") || "root";
  let id = path.endsWith("/") && path !== "/" ? `${base}_slash` : base;
  for (let count = 2; taken.has(id); count++) id = `${base}_${count}`;
  taken.add(id);
  return id;
}

/** Returns the paths that only redirect to the same path with a slash: the table has that one, too. */
function redirectingPaths(routes: readonly Route[]): ReadonlySet<string> {
  const directories = new Set<string>();
  for (const { path } of routes) {
    if (path.endsWith("/") && path !== "/")
      directories.add(path.replace(/\{[^}]+:path\}\/$/, "").slice(0, -1));
  }
  return new Set(routes.map(({ path }) => path).filter((path) => directories.has(path)));
}
