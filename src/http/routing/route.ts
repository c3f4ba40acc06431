import type { Reply, RouteRequest } from "../reply.js";

/**
 * One route of the service. `path` is a template: `/datasets/{dataset_id}/zarr/{group_path:path}/.zmetadata`.
 * `{name}` is exactly one non-empty segment; `{name:path}` is any number of segments, none included, empty ones
 * included; one such per template. At the end of the template it may be followed by `.ending`, with which the path has to end.
 * Static segments win over parameters, longer static endings over shorter.
 */
export interface Route {
  readonly path: string;
  /** Parameters of the handler that are not in the path, by name. */
  readonly given?: Readonly<Record<string, string>>;
  readonly handler: (request: RouteRequest) => Reply | Promise<Reply>;
  /** `page` is shed before `chunk` under load. */
  readonly priority: "page" | "chunk";
  /** Its entry in the OpenAPI document. */
  readonly operation: RouteOperation;
}

/** What the OpenAPI document says about a route. */
export interface RouteOperation {
  readonly summary: string;
  readonly description?: string;
  /** Content type of the 200 answer. */
  readonly contentType: string;
  /** JSON Schema of the 200 answer, for JSON. */
  readonly schema?: Readonly<Record<string, unknown>>;
  /** Parameter name → description. */
  readonly parameters?: Readonly<Record<string, string>>;
  /** Parameters of the query by name; none is required. */
  readonly query?: Readonly<Record<string, QueryParameter>>;
  /** Whether ranges are useful and the answer may be 206 or 416. */
  readonly ranged?: boolean;
}

/** A parameter of the query. */
export interface QueryParameter {
  readonly description: string;
  /** JSON Schema of its value. */
  readonly schema: Readonly<Record<string, unknown>>;
}
