import { type DatasetPath, severalDatasets } from "../dataset/dataset.js";
import { COOKIE } from "../http/access/authorize.js";
import type { RequestContent, Route, RouteOperation } from "../http/router.js";

/** Name and version of the service, and the path of its datasets. */
interface ServiceInfo {
  readonly title: string;
  readonly version: string;
  readonly datasetPath: DatasetPath;
  /** Whether requests need a token. Default: not, so that the document says nothing about tokens, and shows no locks. */
  readonly needsToken?: boolean;
}

type JsonSchemaObject = Readonly<Record<string, unknown>>;

/**
 * Describes a route table as OpenAPI 3.1.
 *
 * The only server is `.`, the directory of the document: correct with any root path and behind any proxy. OpenAPI has no
 * parameters that span several segments, so only their description says it.
 */
export function openApiDocument(
  routes: readonly Route[],
  info: ServiceInfo,
): JsonSchemaObject & { readonly components: JsonSchemaObject } {
  const { needsToken = false } = info;
  const all = routes.map(pathOf);
  const redirecting = redirectingPaths(routes);
  const operationIds = new Set<string>();
  const paths: Record<string, JsonSchemaObject> = {};
  const tags = new Set<string>();
  for (const route of routes) {
    const path = route.path.replace(PARAMETER, "{$1}");
    // To OpenAPI, templates that differ only in the span of a parameter are one path: the first one describes both.
    if (Object.hasOwn(paths, path)) continue;
    const tag = tagOf(pathOf(route), all);
    tags.add(tag);
    const item = { path, tag, redirects: redirecting.has(route.path), needsToken };
    paths[path] = pathItem(route, item, operationIds);
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
    ...(needsToken && { security: [{ bearer: [] }, { query: [] }, { cookie: [] }] }),
    tags: [...tags].map((name) => ({ name })),
    paths,
    components: needsToken ? { ...COMPONENTS, securitySchemes: SECURITY_SCHEMES } : COMPONENTS,
  };
}

const DESCRIPTION =
  "Read-only access to n-dimensional datasets, as metadata and as Zarr v2 stores chunk by chunk. " +
  "Paths answer GET and HEAD (as GET, without a body) unless they say something else, and OPTIONS (CORS preflight). Any other method is answered 405.";

/** A parameter: `{name}` or `{name:path}`. */
const PARAMETER = /\{([^}:]+)(:path)?\}/g;

/** What the document says of a route besides its operation. */
interface PathFacts {
  /** In OpenAPI's notation. */
  readonly path: string;
  /** Heading. */
  readonly tag: string;
  readonly redirects: boolean;
  readonly needsToken: boolean;
}

function pathItem(route: Route, facts: PathFacts, operationIds: Set<string>): JsonSchemaObject {
  const { path, tag, redirects } = facts;
  const { summary, description, parameters: descriptions = {}, requestBody } = route.operation;
  const parameters = Array.from(route.path.matchAll(PARAMETER), ([, name, spans]) =>
    pathParameter(name as string, spans !== undefined, descriptions[name as string]),
  );
  const asked = Object.entries(route.operation.query ?? {}).map(([name, parameter]) => ({
    name,
    in: "query",
    required: false,
    ...parameter,
  }));
  const id = uniqueId(path, operationIds);
  const operations = (route.methods ?? ["GET"]).map((method) => {
    const isGet = method === "GET";
    const conditions = redirects || !isGet ? [] : conditionParameters(route.operation.ranged === true);
    // What a body holds need not be in the query.
    const inBody = isGet ? [] : Object.values(requestBody?.content ?? {}).flatMap(namesIn);
    const options = [...asked.filter(({ name }) => !inBody.includes(name)), ...conditions];
    const operation = {
      tags: [tag],
      summary,
      ...(description !== undefined && { description }),
      operationId: `${method.toLowerCase()}_${id}`,
      ...(options.length > 0 && { parameters: options }),
      ...(!isGet && requestBody !== undefined && { requestBody: bodyOf(requestBody) }),
      responses: responses(route, method, parameters, facts),
    };
    return [method.toLowerCase(), operation] as const;
  });
  return { ...(parameters.length > 0 && { parameters }), ...Object.fromEntries(operations) };
}

/** Lists the members of a body that is an object. */
function namesIn({ schema = {} }: RequestContent): readonly string[] {
  return Object.keys(schema.properties ?? {});
}

function bodyOf({ description, content }: NonNullable<RouteOperation["requestBody"]>): JsonSchemaObject {
  const types = Object.entries(content).map(([type, { schema = { type: "string" }, example }]) => [
    type,
    { schema, ...(example !== undefined && { example }) },
  ]);
  return { description, required: true, content: Object.fromEntries(types) };
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
  method: "GET" | "POST",
  parameters: readonly unknown[],
  { redirects, needsToken }: PathFacts,
): JsonSchemaObject {
  const { contentType, schema, alternatives = [], isBounded, requestBody, mayBeEmpty } = route.operation;
  const isGet = method === "GET";
  const ranged = isGet && route.operation.ranged;
  const mediaType = contentType.split(";", 1)[0] as string;
  const others = alternatives.map((type) => [type, { schema: defaultSchema(type) }]);
  const content = {
    [mediaType]: { schema: schema ?? defaultSchema(mediaType) },
    ...Object.fromEntries(others),
  };
  const answers: [string, JsonSchemaObject][] = redirects
    ? [["301", reference("MovedPermanently")]]
    : [["200", { description: "OK", headers: OK_HEADERS, content }]];
  if (!redirects) {
    if (mayBeEmpty) answers.push(["204", { description: "Nothing is there" }]);
    if (ranged) {
      const headers = { ...OK_HEADERS, "Content-Range": { $ref: "#/components/headers/Content-Range" } };
      const part = { [mediaType]: { schema: { type: "string", format: "binary" } } };
      answers.push(["206", { description: "The requested part", headers, content: part }]);
    }
    if (isGet && route.priority === "chunk") answers.push(["302", reference("Found")]);
    if (isGet) answers.push(["304", reference("NotModified")]);
  }
  const mayLack = parameters.length > 0 || route.given !== undefined;
  if (needsToken) answers.push(["401", reference("Unauthorized")]);
  if (needsToken && mayLack) answers.push(["403", reference("Forbidden")]);
  if (mayLack) answers.push(["404", reference("NotFound")]);
  answers.push(["405", reference("MethodNotAllowed")]);
  if (!redirects) {
    if (isGet) answers.push(["412", reference("PreconditionFailed")]);
    if (!isGet || isBounded) answers.push(["413", reference("TooLarge")]);
    if (!isGet && requestBody !== undefined) answers.push(["415", reference("UnsupportedMediaType")]);
    if (ranged) answers.push(["416", reference("RangeNotSatisfiable")]);
  }
  if (parameters.length > 0 || route.operation.query !== undefined)
    answers.push([invalidStatus(route), reference("InvalidPath")]);
  answers.push(["500", reference("InternalError")], ["503", reference("Unavailable")]);
  return Object.fromEntries(answers);
}

/** Returns the status of wrong parameters, which a protocol may have its own of. */
function invalidStatus({ errors, path }: Route): string {
  const unknown = { reason: undefined, parameter: undefined, datasetId: undefined };
  const request = { path, detail: "", requestId: "", root: "", query: "" };
  const error = errors?.({
    ...unknown,
    ...request,
    status: "422 Unprocessable Content",
    code: "invalid-query",
  });
  return `${error?.status ?? 422}`;
}

const OK_HEADERS = {
  ETag: { $ref: "#/components/headers/ETag" },
  "Cache-Control": { $ref: "#/components/headers/Cache-Control" },
  "Accept-Ranges": { $ref: "#/components/headers/Accept-Ranges" },
};

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

/** Components of the OpenAPI document that its operations refer to: headers, header parameters, error answers. */
const COMPONENTS = {
  schemas: {
    Detail: {
      type: "object",
      required: ["detail"],
      properties: { detail: { type: "string", example: "Dataset 'x' not found" } },
    },
    ValidationDetail: {
      type: "object",
      required: ["detail"],
      properties: {
        detail: {
          type: "array",
          items: {
            type: "object",
            required: ["type", "loc", "msg", "input"],
            properties: {
              type: { type: "string" },
              loc: {
                type: "array",
                items: { type: "string" },
                example: ["path", "dataset_id"],
              },
              msg: { type: "string" },
              input: { type: "string" },
            },
          },
        },
      },
    },
  },
  headers: {
    ETag: {
      description: "Strong; the same on every instance with the same Node.js on the same kind of machine",
      schema: { type: "string" },
    },
    "Cache-Control": { schema: { type: "string" } },
    "Accept-Ranges": { schema: { type: "string", enum: ["bytes"] } },
    "Content-Range": { schema: { type: "string" } },
    Allow: { schema: { type: "string", example: "GET, HEAD, OPTIONS" } },
    "WWW-Authenticate": { schema: { type: "string" } },
    Location: { schema: { type: "string" } },
    "Retry-After": { description: "Seconds", schema: { type: "string" } },
  },
  parameters: {
    IfNoneMatch: headerParameter("If-None-Match", "Answers 304 if one of these ETags is current"),
    IfMatch: headerParameter("If-Match", "Answers 412 if none of these ETags is current"),
    Range: headerParameter("Range", "One range of bytes: `bytes=0-99`, `bytes=100-`, `bytes=-100`"),
    IfRange: headerParameter("If-Range", "An ETag: unless it is current, the whole body is answered"),
  },
  responses: {
    MovedPermanently: {
      description: "Redirect to the same path with a slash at the end",
      headers: headers("Location"),
    },
    Found: {
      description:
        "Redirect to the chunk in its own store, if the operator has configured that; never for ranges or with `Prefer: respond-direct`",
      headers: headers("Location", "Cache-Control"),
    },
    NotModified: {
      description: "The client's representation is current",
      headers: headers("ETag", "Cache-Control"),
    },
    ...errorResponse("Unauthorized", "The request has no valid token", "Detail", "WWW-Authenticate"),
    ...errorResponse("Forbidden", "The token is for other datasets", "Detail", "WWW-Authenticate"),
    ...errorResponse("NotFound", "No such dataset, group, variable or chunk", "Detail"),
    ...errorResponse("MethodNotAllowed", "For any method but those of `Allow`", "Detail", "Allow"),
    ...errorResponse("PreconditionFailed", "If-Match names no current ETag", "Detail"),
    ...errorResponse("TooLarge", "The body, or what is asked for, is larger than allowed", "Detail"),
    ...errorResponse("UnsupportedMediaType", "The body is of another content type", "Detail"),
    ...errorResponse("RangeNotSatisfiable", "The range begins after the end", "Detail", "Content-Range"),
    ...errorResponse(
      "InvalidPath",
      "A parameter of the path, the query or the body is not valid",
      "ValidationDetail",
    ),
    ...errorResponse("InternalError", "The source is unreadable or corrupt, or a codec failed", "Detail"),
    ...errorResponse(
      "Unavailable",
      "The server is starting, shutting down or overloaded, the answer took too long, or the source kept changing",
      "Detail",
      "Retry-After",
    ),
  },
};

/** How clients send their token. */
const SECURITY_SCHEMES = {
  bearer: { type: "http", scheme: "bearer", description: "The token in the header `Authorization`" },
  query: {
    type: "apiKey",
    in: "query",
    name: "token",
    description: "The token in the query, for clients that cannot send headers",
  },
  cookie: { type: "apiKey", in: "cookie", name: COOKIE, description: "As POST /session sets it" },
};

function headerParameter(name: string, description: string) {
  return { name, in: "header", required: false, description, schema: { type: "string" } };
}

function headers(...names: readonly string[]) {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

/** Describes the answer to an error. */
function errorResponse(name: string, description: string, schema: string, ...headerNames: readonly string[]) {
  const content = { "application/json": { schema: { $ref: `#/components/schemas/${schema}` } } };
  return {
    [name]: { description, ...(headerNames.length > 0 && { headers: headers(...headerNames) }), content },
  };
}

/** A path below a dataset, or another parameter: `/datasets/{dataset_id}/zarr`. */
const BELOW = /^\/[^/{}]+\/\{[^}]+\}\/([^/{}]+)/;

/**
 * Returns the heading of a path: the first segment (`datasets`) or, if several paths continue below it, the one behind the parameter
 * (`zarr`, `groups`). The heading of `/` and its documents is `service`.
 */
function tagOf(path: string, all: readonly string[]): string {
  const [start, name] = BELOW.exec(path) ?? [];
  const below = all.filter((other) => other.startsWith(`${start}/`) && other.length > `${start}/`.length);
  if (name !== undefined && below.length > 1) return name;
  const [, first = "", second] = path.split("/");
  if (first === "datasets") return first;
  return second === undefined || first === "docs" || first === "assets" ? "service" : first;
}

/** Returns the path of a route as on a server of several datasets, so that the headings are the same. */
function pathOf({ path, given }: Route): string {
  return given?.dataset_id === undefined ? path : severalDatasets("{dataset_id}") + path.slice(1);
}
