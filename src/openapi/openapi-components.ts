/** Components of the OpenAPI document that its operations refer to: headers, header parameters, error answers. */
export const COMPONENTS = {
  schemas: {
    Detail: {
      type: "object",
      required: ["detail"],
      properties: { detail: { type: "string", examples: ["Dataset 'x' not found"] } },
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
                examples: [
                  ["path", "dataset_id"],
                  ["query", "size"],
                ],
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
    "Accept-Ranges": { schema: { type: "string", const: "bytes" } },
    "Content-Range": { schema: { type: "string" } },
    Allow: { schema: { type: "string", const: "GET, HEAD, OPTIONS" } },
    "WWW-Authenticate": { schema: { type: "string" } },
    Location: { schema: { type: "string" } },
    "Retry-After": { description: "Seconds", schema: { type: "string" } },
  },
  parameters: {
    IfNoneMatch: headerParameter("If-None-Match", "Answers 304 if one of these ETags is current"),
    IfMatch: headerParameter("If-Match", "Answers 412 if none of these ETags is current"),
    Range: headerParameter("Range", "One range of bytes: `bytes=0-99`, `bytes=100-`, `bytes=-100`"),
    IfRange: headerParameter("If-Range", "An ETag: if it is not current, the whole is answered"),
  },
  securitySchemes: {
    bearer: { type: "http", scheme: "bearer", description: "A token, if the server asks for one" },
    query: {
      type: "apiKey",
      in: "query",
      name: "token",
      description: "The same, for clients that cannot send headers",
    },
  },
  responses: {
    MovedPermanently: {
      description: "To the same path with a slash at the end",
      headers: headers("Location"),
    },
    Found: {
      description:
        "To the chunk in its own store, if the operator has clients fetch it there. Not for a range, nor with `Prefer: respond-direct`",
      headers: headers("Location", "Cache-Control"),
    },
    NotModified: {
      description: "The client's representation is current",
      headers: headers("ETag", "Cache-Control"),
    },
    ...errorResponse(
      "Unauthorized",
      "The server asks for a token, and received no valid one",
      "Detail",
      "WWW-Authenticate",
    ),
    ...errorResponse("NotFound", "No such dataset, group, variable or chunk", "Detail"),
    ...errorResponse(
      "MethodNotAllowed",
      "For any other method than GET, HEAD and OPTIONS",
      "Detail",
      "Allow",
    ),
    ...errorResponse("PreconditionFailed", "If-Match names no current ETag", "Detail"),
    ...errorResponse("RangeNotSatisfiable", "The range begins after the end", "Detail", "Content-Range"),
    ...errorResponse(
      "InvalidPath",
      "A parameter of the path is no valid string, or one of the query not as expected",
      "ValidationDetail",
    ),
    ...errorResponse("InternalError", "The source is unreadable or corrupt, or a codec failed", "Detail"),
    ...errorResponse(
      "Unavailable",
      "Starting, shutting down or at a hard limit; no worker, no answer in time, or a source that kept changing",
      "Detail",
      "Retry-After",
    ),
  },
};

function headerParameter(name: string, description: string) {
  return { name, in: "header", required: false, description, schema: { type: "string" } };
}

function headers(...names: readonly string[]) {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

/** Describes an error as GET answers it, and under `…Head` as HEAD does, without a body. */
function errorResponse(name: string, description: string, schema: string, ...headerNames: readonly string[]) {
  const answer = { description, ...(headerNames.length > 0 && { headers: headers(...headerNames) }) };
  const content = { "application/json": { schema: { $ref: `#/components/schemas/${schema}` } } };
  return { [name]: { ...answer, content }, [`${name}Head`]: answer };
}
