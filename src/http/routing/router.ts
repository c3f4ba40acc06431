import { ZpublishError } from "../../errors.js";
import {
  type DecodedPath,
  decodePath,
  hasDotSegment,
  isPlainPath,
  type SegmentFault,
} from "./decode-path.js";
import type { Route } from "./route.js";
import { parseTemplate, type TemplateSegment } from "./route-template.js";

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
        throw tooLong(name, decoded === undefined ? value : rawValue(decoded, path, start, value));
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
    if (fault !== undefined)
      throw invalidPath(name, fault, FAULT_MESSAGES[fault], rawValue(decoded, path, start, value));
  }
}

function tooLong(name: string, input: string): ZpublishError {
  return invalidPath(
    name,
    "string_too_long",
    `Expected at most ${MAX_PARAMETER_BYTES} bytes of UTF-8`,
    input,
  );
}

function invalidPath(parameter: string, type: string, msg: string, raw: string): ZpublishError {
  // A surrogate pair is not cut in two: strict readers refuse half of one in JSON.
  const input =
    raw.length > MAX_SHOWN_INPUT ? `${raw.slice(0, MAX_SHOWN_INPUT).replace(/[\ud800-\udbff]$/, "")}…` : raw;
  return new ZpublishError("invalid-path", `Path parameter '${parameter}' is no valid string: ${msg}`, {
    details: { parameter, type, msg, input },
  });
}

/** Returns the parameter as the client sent it: the decoded path has the same segments as the raw one. */
function rawValue(decoded: DecodedPath, path: string, start: number, value: string): string {
  const first = segmentIndex(path, start);
  return decoded.rawSegments.slice(first, segmentIndex(path, start + value.length) + 1).join("/");
}

/** Returns the index of the segment at a position; the empty one before the first slash has index 0. */
function segmentIndex(path: string, position: number): number {
  let index = 0;
  for (let slash = path.indexOf("/"); slash >= 0 && slash < position; slash = path.indexOf("/", slash + 1))
    index += 1;
  return index;
}
