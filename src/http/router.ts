import { ZpublishError } from "../errors.js";
import type { ErrorFacts, ErrorReply, Reply, RouteRequest } from "./reply.js";

/** Reason why a segment is no valid string. */
type SegmentFault = "percent_encoding" | "string_unicode" | "string_control_character";

/** A request's path after percent-decoding. */
interface DecodedPath {
  /** The decoded segments, joined with slashes again: none of them contains one. Invalid segments are not decoded. */
  readonly path: string;
  /** Faults by segment; undefined if the path has none. */
  readonly faults: readonly (SegmentFault | undefined)[] | undefined;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern finds them.
const CONTROL_CHARACTER = /[\u0000-\u001f\u007f-\u009f]/;
const BROKEN_ESCAPE = /%(?![0-9A-Fa-f]{2})/;
const DOT_SEGMENT = /\/\.\.?(?:\/|$)/;
const NEEDS_DECODING = /[^\x21-\x24\x26-\x7e]/;

/** Whether decoding would leave the path as it is: printable ASCII without a percent sign. */
function isPlainPath(rawPath: string): boolean {
  return !NEEDS_DECODING.test(rawPath);
}

/** Whether a path has a segment `.` or `..`, which no route has. */
function hasDotSegment(path: string): boolean {
  return path.includes("/.") && DOT_SEGMENT.test(path);
}

/**
 * Percent-decodes a path once, segment by segment, as UTF-8.
 * @param rawPath As uWebSockets.js gives it: not normalised; raw bytes beyond ASCII are decoded already, invalid ones
 * replaced by U+FFFD.
 * @returns undefined if a segment contains an encoded slash: no name has one.
 */
function decodePath(rawPath: string): DecodedPath | undefined {
  const segments: string[] = [];
  let faults: (SegmentFault | undefined)[] | undefined;
  for (const raw of rawPath.split("/")) {
    const decoded = decodeSegment(raw);
    if (decoded.fault !== undefined) {
      faults ??= [];
      faults[segments.length] = decoded.fault;
    } else if (decoded.text.includes("/")) {
      return undefined;
    }
    segments.push(decoded.text);
  }
  return { path: segments.join("/"), faults };
}

function decodeSegment(raw: string): { readonly text: string; readonly fault?: SegmentFault } {
  if (raw.includes("\ufffd")) return { text: raw, fault: "string_unicode" };
  let text: string;
  try {
    text = decodeURIComponent(raw);
  } catch {
    return { text: raw, fault: BROKEN_ESCAPE.test(raw) ? "percent_encoding" : "string_unicode" };
  }
  return CONTROL_CHARACTER.test(text) ? { text: raw, fault: "string_control_character" } : { text };
}

/** One segment of a template: fixed text, or a parameter. */
type TemplateSegment =
  | { readonly kind: "static"; readonly text: string }
  | { readonly kind: "parameter"; readonly name: string }
  /** `ending` is the fixed text behind the parameter: `.png`, or empty. */
  | { readonly kind: "path"; readonly name: string; readonly ending: string };

const PARAMETER = /^\{([a-z][a-z0-9_]*)(:path)?\}(\.[a-z0-9]+)?$/;
/** Characters of a static segment: those that need no percent-encoding in a path. */
const STATIC = /^[A-Za-z0-9\-._~!$&'()*+,;=:@]*$/;

/**
 * Parses the template of a route, see {@link "./router.js".Route.path}. An empty static segment can only be the last
 * one: the template ends with a slash.
 * @throws ZpublishError `invalid-config`
 */
function parseTemplate(path: string): readonly TemplateSegment[] {
  if (!path.startsWith("/")) throw invalid(path, "it does not begin with a slash");
  const texts = path.slice(1).split("/");
  const names = new Set<string>();
  let paths = 0;
  return texts.map((text, index): TemplateSegment => {
    const match = PARAMETER.exec(text);
    if (match === null) {
      if (!STATIC.test(text) || text === "." || text === "..") {
        throw invalid(path, `segment '${text}' is neither plain text nor {name} nor {name:path}`);
      }
      if (text === "" && index < texts.length - 1)
        throw invalid(path, "it has an empty segment in its middle");
      return { kind: "static", text };
    }
    const name = match[1] ?? "";
    if (names.has(name)) throw invalid(path, `parameter '${name}' is there twice`);
    names.add(name);
    const ending = match[3] ?? "";
    if (ending !== "" && (match[2] === undefined || index < texts.length - 1))
      throw invalid(path, `only a {name:path} at its end may be followed by '${ending}'`);
    if (match[2] === undefined) return { kind: "parameter", name };
    paths += 1;
    if (paths > 1) throw invalid(path, "it has more than one {name:path}");
    return { kind: "path", name, ending };
  });
}

function invalid(path: string, why: string): ZpublishError {
  return new ZpublishError("invalid-config", `Route '${path}' is no valid template: ${why}`, {
    details: { path },
  });
}

/** Maximum length of a parameter, in bytes of UTF-8, slashes included. */
const MAX_PARAMETER_BYTES = 1024;
/** Characters of an invalid parameter that the answer quotes. */
const MAX_SHOWN_INPUT = 100;

/** A route, and the parameters of the path that matched it. */
export interface RouteMatch {
  readonly route: Route;
  /** By name, percent-decoded; with those that the route itself gives. */
  readonly params: Readonly<Record<string, string>>;
}

/** Finds the route of a path. */
export interface Router {
  /**
   * Matches a path.
   * @param rawPath Percent-encoded, beginning with a slash, without the query.
   * @returns undefined if no route matches, which is answered 404.
   * @throws ZpublishError `invalid-path` if a parameter is no valid string, which is answered 422.
   */
  match(rawPath: string): RouteMatch | undefined;
}

/** A route with the names of its parameters in the order of the path. */
interface Target {
  readonly route: Route;
  readonly names: readonly string[];
  /** Text behind the `{name:path}`. */
  readonly ending: string;
}

/**
 * A node in the tree of templates, whose branches are segments: read from the front in the tree of beginnings, from the back
 * in the trees of endings behind a `{name:path}`.
 */
interface Node {
  readonly statics: Map<string, Node>;
  parameter: Node | undefined;
  /** The route that ends here; in a tree of endings, the route whose ending begins here. */
  target: Target | undefined;
  /** Endings of the routes that have a `{name:path}` here. */
  endings: Node | undefined;
}

/**
 * Creates a router. It looks up a path in two trees, without a regular expression per route: from the front to where a
 * `{name:path}` begins, then from the back to where it ends.
 * @throws ZpublishError `invalid-config` if a template is malformed, or two templates differ in parameter names only.
 */
export function createRouter(routes: readonly Route[]): Router {
  const root = createNode();
  for (const route of routes) addRoute(root, route);

  // Begin and end of each parameter found so far. Shared by all requests: matching never yields.
  const bounds: number[] = [];

  function match(rawPath: string): RouteMatch | undefined {
    if (isPlainPath(rawPath)) return matchDecoded(rawPath, undefined);
    const decoded = decodePath(rawPath);
    return decoded === undefined ? undefined : matchDecoded(decoded.path, decoded);
  }

  function matchDecoded(path: string, decoded: DecodedPath | undefined): RouteMatch | undefined {
    if (path.charCodeAt(0) !== 47 || hasDotSegment(path)) return undefined;
    bounds.length = 0;
    const target = findForward(root, path, 1, bounds);
    if (target === undefined) return undefined;
    const params: Record<string, string> = { ...target.route.given };
    for (let i = 0; i < target.names.length; i += 1) {
      const name = target.names[i]!;
      const start = bounds[2 * i]!;
      const end = bounds[2 * i + 1]!;
      const value = path.slice(start, end);
      if (decoded?.faults !== undefined) refuseFaults(decoded, name, path, start, value);
      if (isTooLong(value))
        throw invalidPath(
          name,
          "string_too_long",
          `Expected at most ${MAX_PARAMETER_BYTES} bytes of UTF-8`,
          value,
        );
      params[name] = value;
    }
    return { route: target.route, params };
  }

  return { match };
}

function createNode(): Node {
  return { statics: new Map(), parameter: undefined, target: undefined, endings: undefined };
}

function addRoute(root: Node, route: Route): void {
  const segments = parseTemplate(route.path);
  const names = segments.flatMap((segment) => (segment.kind === "static" ? [] : [segment.name]));
  const pathAt = segments.findIndex((segment) => segment.kind === "path");
  let node = root;
  for (const segment of pathAt < 0 ? segments : segments.slice(0, pathAt)) node = childFor(node, segment);
  if (pathAt >= 0) {
    node.endings ??= createNode();
    node = node.endings;
    for (const segment of segments.slice(pathAt + 1).reverse()) node = childFor(node, segment);
  }
  if (node.target !== undefined) {
    const other = node.target.route.path;
    throw new ZpublishError("invalid-config", `Routes '${other}' and '${route.path}' answer the same paths`, {
      details: { path: route.path, other },
    });
  }
  node.target = { route, names, ending: segments.find((segment) => segment.kind === "path")?.ending ?? "" };
}

function childFor(node: Node, segment: TemplateSegment): Node {
  if (segment.kind !== "static") {
    node.parameter ??= createNode();
    return node.parameter;
  }
  let child = node.statics.get(segment.text);
  if (child === undefined) {
    child = createNode();
    node.statics.set(segment.text, child);
  }
  return child;
}

/**
 * Follows the segments that begin at `from`; none is left beyond the end of the path (`from > path.length`). Tries static
 * segments first, then parameters, a `{name:path}` last.
 */
function findForward(node: Node, path: string, from: number, bounds: number[]): Target | undefined {
  if (from <= path.length) {
    const slash = path.indexOf("/", from);
    const end = slash < 0 ? path.length : slash;
    const next = node.statics.get(path.slice(from, end));
    if (next !== undefined) {
      const found = findForward(next, path, end + 1, bounds);
      if (found !== undefined) return found;
    }
    if (node.parameter !== undefined && end > from) {
      bounds.push(from, end);
      const found = findForward(node.parameter, path, end + 1, bounds);
      if (found !== undefined) return found;
      bounds.length -= 2;
    }
  } else if (node.target !== undefined) {
    return node.target;
  }
  if (node.endings === undefined) return undefined;
  const at = bounds.length;
  // Its own bounds come before those of its ending, as its name does; they are known when the ending is.
  bounds.push(from, from);
  const found = findBackward(node.endings, path, from, path.length, bounds, at);
  if (found === undefined) bounds.length = at;
  return found;
}

/**
 * Follows the segments between `from` and `to` from the last one: the longest ending wins, static before parameter.
 * The rest is the `{name:path}`, with its bounds at `bounds[at]`; `to < from` if nothing is left.
 */
function findBackward(
  node: Node,
  path: string,
  from: number,
  to: number,
  bounds: number[],
  at: number,
): Target | undefined {
  if (to >= from) {
    const start = Math.max(path.lastIndexOf("/", to - 1) + 1, from);
    const next = node.statics.get(path.slice(start, to));
    if (next !== undefined) {
      const found = findBackward(next, path, from, start - 1, bounds, at);
      if (found !== undefined) return found;
    }
    if (node.parameter !== undefined && to > start) {
      // Met from the back, but named from the front.
      bounds.splice(at + 2, 0, start, to);
      const found = findBackward(node.parameter, path, from, start - 1, bounds, at);
      if (found !== undefined) return found;
      bounds.splice(at + 2, 2);
    }
  }
  const { target } = node;
  const end = Math.max(to, from) - (target?.ending.length ?? 0);
  if (target === undefined || end < from || !path.startsWith(target.ending, end)) return undefined;
  bounds[at + 1] = end;
  return target;
}

function isTooLong(value: string): boolean {
  // A character is at most three bytes per UTF-16 unit.
  return value.length * 3 > MAX_PARAMETER_BYTES && Buffer.byteLength(value, "utf8") > MAX_PARAMETER_BYTES;
}

const FAULT_MESSAGES: Readonly<Record<SegmentFault, string>> = {
  percent_encoding: "Expected two hexadecimal digits behind every percent sign",
  string_unicode: "Expected valid UTF-8",
  string_control_character: "Expected a string without control characters",
};

/** Checks the segments of a parameter. @throws ZpublishError if one is no valid string. */
function refuseFaults(decoded: DecodedPath, name: string, path: string, start: number, value: string): void {
  const first = segmentIndex(path, start);
  const last = segmentIndex(path, start + value.length);
  for (let index = first; index <= last; index += 1) {
    const fault = decoded.faults?.[index];
    if (fault !== undefined) throw invalidPath(name, fault, FAULT_MESSAGES[fault], value);
  }
}

function invalidPath(parameter: string, type: string, msg: string, value: string): ZpublishError {
  // A surrogate pair is not cut in two: strict readers refuse half of one in JSON.
  const input =
    value.length > MAX_SHOWN_INPUT
      ? `${value.slice(0, MAX_SHOWN_INPUT).replace(/[\ud800-\udbff]$/, "")}…`
      : value;
  return new ZpublishError("invalid-path", `Path parameter '${parameter}' is no valid string: ${msg}`, {
    details: { parameter, type, msg, input },
  });
}

/** Returns the index of the segment at a position; the empty one before the first slash has index 0. */
function segmentIndex(path: string, position: number): number {
  let index = 0;
  for (let slash = path.indexOf("/"); slash >= 0 && slash < position; slash = path.indexOf("/", slash + 1))
    index += 1;
  return index;
}

/**
 * One route of the service. `path` is a template: `/datasets/{dataset_id}/zarr/{group_path:path}/.zmetadata`.
 * `{name}` is exactly one non-empty segment; `{name:path}` is any number of segments, none included, empty ones
 * included; one such per template. At the end of the template it may be followed by `.ending`, with which the path has to end.
 * Static segments win over parameters, longer static endings over shorter. If there is a parameter `dataset_id`, that dataset is
 * opened, or refreshed after a time without requests, before the handler is called.
 */
export interface Route {
  readonly path: string;
  /** Parameters of the handler that are not in the path, by name. */
  readonly given?: Readonly<Record<string, string>>;
  readonly handler: (request: RouteRequest) => Reply | Promise<Reply>;
  /** Methods that are answered; `GET` stands for HEAD, too. Others are answered 405. Default: GET. */
  readonly methods?: readonly ("GET" | "POST")[];
  /** Bound of the body of a POST; a longer one is answered 413. Default 1 MiB. */
  readonly maxBodyBytes?: number;
  /**
   * Writes an error in the shape of a protocol, with a status of its own if the protocol wants another. Default: JSON, or a page for
   * browsers.
   */
  readonly errors?: (error: ErrorFacts) => ErrorReply;
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
  /** Parameters of the query by name. */
  readonly query?: Readonly<Record<string, QueryParameter>>;
  /** Further content types of the 200 answer, with the same meaning. */
  readonly alternatives?: readonly string[];
  /** Body of a POST, by content type. */
  readonly requestBody?: {
    readonly description: string;
    readonly content: Readonly<Record<string, RequestContent>>;
  };
  /** Whether ranges are useful and the answer may be 206 or 416. */
  readonly ranged?: boolean;
  /** Whether a GET may ask for more than is answered: 413. */
  readonly isBounded?: boolean;
  /** Whether there may be nothing of what is asked for: 204. */
  readonly mayBeEmpty?: boolean;
}

/** Body of a request of one content type. */
export interface RequestContent {
  /** JSON Schema; default: a text. */
  readonly schema?: Readonly<Record<string, unknown>>;
  readonly example?: unknown;
}

/** Returns the methods of a route as the header `Allow` lists them. */
export function allowedMethods({ methods = ["GET"] }: Pick<Route, "methods">): string {
  return [...methods.flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method])), "OPTIONS"].join(
    ", ",
  );
}

/** A parameter of the query. */
export interface QueryParameter {
  readonly description: string;
  /** Default false. */
  readonly required?: boolean;
  /** JSON Schema of its value. */
  readonly schema: Readonly<Record<string, unknown>>;
  /** How lists are written. Default: the parameter repeated; false: with commas. */
  readonly explode?: boolean;
  readonly style?: "form";
}
