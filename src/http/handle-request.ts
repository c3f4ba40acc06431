import { type BoundedMap, createBoundedMap } from "../collections/bounded-map.js";
import { ZpublishError } from "../errors.js";
import type { MaybePromise } from "../event-loop/maybe-promise.js";
import { type AccessOptions, ASK_EACH_TIME, createAccessRules } from "./access/access-rules.js";
import { authorize, withoutTicket } from "./access/authorize.js";
import { locationWithSlash } from "./access/forwarded.js";
import { answerAs, currentGrant } from "./access/grants.js";
import { type AdminEndpoint, type AdminEndpoints, answerAdmin } from "./admin-endpoint.js";
import { sendError } from "./error-reply.js";
import { Exchange, type ExchangeContext, withVary, writeHead } from "./exchange.js";
import { ALLOWED_METHODS, createCors, type HeaderLines, isHeaderValue, statusLine } from "./headers.js";
import type { HttpRequest, HttpResponse } from "./listening/listener.js";
import type { RouteCounts } from "./load-limits.js";
import type { DocumentReply, RedirectReply, RenderErrorPage, Reply } from "./reply.js";
import {
  negotiateDocument,
  requestedRange,
  sendBodyReply,
  sendElsewhereReply,
  sendRepresentation,
  sendStreamReply,
} from "./representation.js";
import { allowedMethods, createRouter, type Route, type RouteMatch, type Router } from "./router.js";

/** Attempts at a request whose source changes while it is answered. */
const MAX_ATTEMPTS = 3;

/** A match, with the counts of its route. */
interface CountedMatch extends RouteMatch {
  readonly counts: RouteCounts;
}

/** How paths become handlers. */
interface Routing {
  readonly router: Router;
  /** Prefix of all paths: empty, or begins with a slash and ends without one. */
  readonly rootPath: string;
  /** Matches of recent paths, by path without the root path. */
  readonly matches: BoundedMap<CountedMatch>;
  readonly datasets: RouteDatasets | undefined;
  readonly alias: PathAlias | undefined;
}

/** Another name of paths that routes have. */
interface PathAlias {
  /** Matches paths, without the root path, that may be such names. */
  readonly pattern: RegExp;
  /**
   * Returns the path that routes have; undefined if the name is none.
   * @param match Match of the pattern.
   * @throws ZpublishError if that cannot be told now
   */
  readonly find: (match: readonly string[]) => MaybePromise<string | undefined>;
}

/** The datasets that routes are about. */
interface RouteDatasets {
  /**
   * Opens or refreshes a dataset, so that a handler finds it ready. Undefined if the request need not wait, or if there is no such
   * dataset: the handler answers for that.
   * @param staleIdentity Identity of the snapshot from which the request was answered before its source turned out to have changed:
   * that snapshot is refreshed.
   */
  ready(id: string, staleIdentity?: string): Promise<void> | undefined;
  /** Tells whether the request that is answered now may read a dataset, whether or not there is one of that id. Default: it may. */
  readonly mayRead?: ((id: string) => boolean) | undefined;
}

/**
 * Answers a GET, HEAD or POST request: path → route → dataset → handler → reply → representation.
 * @throws ZpublishError what is to be answered instead
 */
function handleRequest(exchange: Exchange, routing: Routing): void | Promise<void> {
  const rawPath = pathOf(exchange, routing);
  if (rawPath === undefined) throw new ZpublishError("not-found", "Not Found");
  if (rawPath === "") {
    sendRedirect(exchange);
    return undefined;
  }
  exchange.rawPath = rawPath;
  // No other name takes a body, which must be received at once.
  const match = exchange.method === "POST" ? undefined : routing.alias?.pattern.exec(rawPath);
  const found = match ? routing.alias?.find(match) : undefined;
  if (!(found instanceof Promise)) return handlePath(exchange, found ?? rawPath, routing);
  const pending = found.then((path) => handlePath(exchange, path ?? rawPath, routing));
  copyHead(exchange, pending);
  return pending;
}

/** Answers a request for a path of a route. @throws ZpublishError as {@link handleRequest} */
function handlePath(exchange: Exchange, path: string, routing: Routing): void | Promise<void> {
  const { route, params, counts } = matchPath(exchange, path, routing);
  exchange.counts = counts;
  exchange.route = route;
  const { dataset_id: id } = params;
  if (id !== undefined && routing.datasets?.mayRead?.(id) === false)
    throw new ZpublishError("forbidden", `The token is not for dataset '${id}'`);
  checkMethod(exchange, route);
  exchange.context.load.admit(route.priority);
  if (exchange.method === "POST") receiveBody(exchange, route);
  exchange.params = params;
  return attempt(exchange, route, routing.datasets, MAX_ATTEMPTS);
}

/** Default of {@link Route.maxBodyBytes}. */
const DEFAULT_BODY_BYTES = 2 ** 20;

function receiveBody(exchange: Exchange, { maxBodyBytes = DEFAULT_BODY_BYTES }: Route): void {
  exchange.receive(maxBodyBytes, (error) => sendError(exchange, error, true));
}

/** @throws ZpublishError `method-not-allowed` */
function checkMethod({ method }: Exchange, route: Route): void {
  const { methods } = route;
  if (methods === undefined ? method !== "POST" : methods.includes(method === "HEAD" ? "GET" : method))
    return;
  throw new ZpublishError("method-not-allowed", `Method ${method} is not allowed`, {
    details: { allow: allowedMethods(route) },
  });
}

/** @throws ZpublishError `not-found` if no route has such a path */
function matchPath({ context }: Exchange, rawPath: string, { router, matches }: Routing): CountedMatch {
  const known = matches.get(rawPath);
  if (known !== undefined) return known;
  const found = router.match(rawPath);
  if (found === undefined) throw new ZpublishError("not-found", "Not Found");
  const match = { ...found, counts: context.metrics.counts.of(found.route.path) };
  matches.set(rawPath, match);
  return match;
}

/**
 * Prepares the dataset, calls the handler and sends its reply; again if the source changed before anything was sent. A dataset whose
 * source is another one now is refreshed first.
 */
function attempt(
  exchange: Exchange,
  route: Route,
  datasets: RouteDatasets | undefined,
  attemptsLeft: number,
  staleIdentity?: string,
): void | Promise<void> {
  const again = (error: unknown): void | Promise<void> => {
    const hasChanged = error instanceof ZpublishError && error.code === "source-changed";
    if (!hasChanged || attemptsLeft <= 1 || exchange.started || exchange.over) throw error;
    const { staleIdentity } = error.details;
    const identity = typeof staleIdentity === "string" ? staleIdentity : undefined;
    return attempt(exchange, route, datasets, attemptsLeft - 1, identity);
  };
  let pending: void | Promise<void>;
  try {
    const id = exchange.params.dataset_id;
    const ready = id === undefined ? undefined : datasets?.ready(id, staleIdentity);
    const reply = ready === undefined ? route.handler(exchange) : ready.then(() => route.handler(exchange));
    pending = isPromise(reply)
      ? reply.then((settled) => sendReply(exchange, settled))
      : sendReply(exchange, reply);
  } catch (error) {
    return again(error);
  }
  if (pending === undefined) return undefined;
  // uWebSockets.js takes its request back when this returns.
  copyHead(exchange, pending);
  return pending.catch(again);
}

function copyHead(exchange: Exchange, pending: Promise<void>): void {
  try {
    exchange.head.copy(exchange.context.maxHeaderBytes);
  } catch (error) {
    // The request is answered with this error; another one later is of no use to it.
    pending.catch(() => undefined);
    throw error;
  }
}

/** Returns the path that routes match: without the root path, and without a ticket. Undefined if it is outside of the root path. */
function pathOf({ head: { path }, prefix }: Exchange, { rootPath }: Routing): string | undefined {
  const before = rootPath.length + prefix.length;
  if (before === 0) return path;
  if (!path.startsWith(rootPath)) return undefined;
  const rest = path.slice(before);
  return rest === "" || rest.startsWith("/") ? rest : undefined;
}

function isPromise<T>(value: T | Promise<T>): value is Promise<T> {
  return typeof (value as Partial<Promise<T>> | undefined)?.then === "function";
}

function sendReply(exchange: Exchange, reply: Reply): void | Promise<void> {
  switch (reply?.kind) {
    case "body":
      return sendBodyReply(exchange, reply);
    case "elsewhere":
      return sendElsewhereReply(exchange, reply);
    case "document":
      return sendDocument(exchange, reply);
    case "stream":
      return sendStreamReply(exchange, reply);
    case "redirect":
      sendRedirect(exchange, reply.to);
      return undefined;
    default:
      throw new ZpublishError("internal", `Expected a reply of the handler, received ${describe(reply)}`);
  }
}

function sendDocument(exchange: Exchange, reply: DocumentReply): void | Promise<void> {
  const range = requestedRange(exchange, reply.document.etag) ?? null;
  const variant = negotiateDocument(exchange, reply, range !== null);
  return isPromise(variant)
    ? variant.then((compressed) => sendRepresentation(exchange, compressed, range))
    : sendRepresentation(exchange, variant, range);
}

function sendRedirect(exchange: Exchange, to: RedirectReply["to"] = "with-slash"): void {
  const { query, context } = exchange;
  const { cacheControl, access, rootPath } = context;
  // The client needs a prefix that a proxy took away, but not the host.
  const path = exchange.publicPrefix + exchange.head.path.slice(rootPath.length + exchange.prefix.length);
  const { url, status } = to === "with-slash" ? { url: locationWithSlash(path, query), status: 301 } : to;
  const lines = [
    ["Location", url],
    ["Cache-Control", access.cacheControlOfAddress(cacheControl)],
  ] as const;
  exchange.cork(() => {
    writeHead(exchange, statusLine(status), withVary(lines, access.vary));
    exchange.endBodiless(0);
  });
}

function describe(reply: unknown): string {
  const kind = (reply as { readonly kind?: unknown } | null | undefined)?.kind;
  return kind === undefined ? String(reply) : `one of kind '${String(kind)}'`;
}

/** What requests are answered with. */
interface DispatchContext {
  /** Undefined while the server starts: only admin endpoints are answered. */
  readonly routing: Routing | undefined;
  readonly admin: AdminEndpoints;
  /** Limits of the server, which may change. */
  readonly limits: {
    /** Bytes of path and query; a longer one is answered 414. */
    readonly maxUrlBytes: number;
  };
}

/** An app with what its requests share. */
export interface RunningApp {
  readonly routing: Routing;
  readonly dispatching: DispatchContext;
  readonly context: ExchangeContext;
}

/** Returns the function that a listener calls with each request: it is answered by the app of that moment. */
export function answerWith(current: { readonly app: RunningApp }) {
  return (res: HttpResponse, req: HttpRequest): void => {
    const { context, dispatching } = current.app;
    const method = req.getCaseSensitiveMethod();
    const exchange = new Exchange(res, req, context, method === "HEAD" || method === "POST" ? method : "GET");
    dispatch(exchange, method, dispatching);
    exchange.detach();
  };
}

/** Answers a request by its method, at once or later. Never throws. @param method As it came. */
function dispatch(exchange: Exchange, method: string, context: DispatchContext): void {
  try {
    if (hasSeveralLengths(exchange)) {
      exchange.methodLabel = "other";
      exchange.context.log.debug(
        { path: withoutTicket(exchange.head.path) },
        "several Content-Length: connection dropped",
      );
      // Without an answer: what came behind it would be answered, too.
      exchange.drop();
    } else if (method === "GET" || method === "HEAD" || (method === "POST" && takesPost(exchange, context))) {
      handleKnown(exchange, context);
    } else if (method === "OPTIONS") {
      exchange.methodLabel = "OPTIONS";
      const { cors, access } = exchange.context;
      const methods = methodsOf(exchange, context.routing);
      const lines: HeaderLines = [["Allow", methods], ...cors.preflight(methods)];
      writeHead(exchange, "204 No Content", withVary(lines, access.vary));
      exchange.endBodiless();
    } else {
      exchange.methodLabel = "other";
      const allow = methodsOf(exchange, context.routing);
      const details = { allow };
      const error = new ZpublishError("method-not-allowed", `Method ${method} is not allowed`, { details });
      sendError(exchange, error, isLongBody(exchange));
    }
  } catch (error) {
    sendError(exchange, error, exchange.method === "POST" && isLongBody(exchange));
  }
}

/** Tells whether a POST is answered: by its route, or because the server is starting. */
function takesPost(exchange: Exchange, { routing }: DispatchContext): boolean {
  return routing === undefined || methodsOf(exchange, routing).includes("POST");
}

/** Methods that a path answers, as `Allow` lists them. */
function methodsOf(exchange: Exchange, routing: Routing | undefined): string {
  const route = routing && routeOf(exchange, routing);
  return route ? allowedMethods(route) : ALLOWED_METHODS;
}

/** Returns the route of a path; undefined if none has it, or it is no valid one. */
function routeOf(exchange: Exchange, routing: Routing): Route | undefined {
  try {
    return routing.router.match(pathOf(exchange, routing) ?? "")?.route;
  } catch {
    return undefined;
  }
}

function handleKnown(exchange: Exchange, { admin, routing, limits }: DispatchContext): void {
  const { maxUrlBytes } = limits;
  const { length } = exchange.head.path;
  if (length > maxUrlBytes || length + exchange.query.length > maxUrlBytes) {
    throw new ZpublishError("url-too-long", `Path and query: expected at most ${maxUrlBytes} bytes`);
  }
  const endpoint = admin.get(exchange.head.path);
  const { credentials } = exchange.context.access;
  if (credentials === undefined || endpoint?.isOpen === true) {
    answerKnown(exchange, endpoint, routing);
    return;
  }
  const grant = authorize(exchange, credentials);
  if (!(grant instanceof Promise)) {
    answerAs(grant, () => answerKnown(exchange, endpoint, routing));
    return;
  }
  const pending = grant.then((found) => {
    // It may have been refused meanwhile.
    if (!exchange.over && !exchange.started) answerAs(found, () => answerKnown(exchange, endpoint, routing));
  });
  pending.catch((error: unknown) => sendError(exchange, error));
  // A body must be received at once.
  const route = exchange.method === "POST" && routing !== undefined ? routeOf(exchange, routing) : undefined;
  if (route !== undefined) receiveBody(exchange, route);
  copyHead(exchange, pending);
}

/** Answers an authorized request. @throws ZpublishError as {@link handleRequest} */
function answerKnown(
  exchange: Exchange,
  endpoint: AdminEndpoint | undefined,
  routing: Routing | undefined,
): void {
  if (endpoint !== undefined) {
    // What it tells is about all datasets.
    if (!endpoint.isOpen && currentGrant() !== undefined)
      throw new ZpublishError("forbidden", "The token is for some datasets, expected one for all");
    answerAdmin(exchange, endpoint);
    return;
  }
  if (routing === undefined) throw new ZpublishError("starting", "The server is starting");
  handleRequest(exchange, routing)?.catch((error: unknown) => sendError(exchange, error));
}

/**
 * True if the request's end is ambiguous (RFC 9112 §6.3). uWebSockets.js goes by the first length; a proxy before it may go
 * by another, and what it takes for a body would be answered as a request. (An empty first length looks like none;
 * proxies refuse it.)
 */
function hasSeveralLengths(exchange: Exchange): boolean {
  return exchange.header("content-length") !== undefined && exchange.head.countHeader("content-length") > 1;
}

/**
 * Longest body of a refused request that is read and ignored, so that the client gets to read the answer. With a longer one, the
 * connection is closed.
 */
const MAX_IGNORED_BYTES = 16 * 2 ** 20;

function isLongBody(exchange: Exchange): boolean {
  return (
    exchange.header("transfer-encoding") !== undefined ||
    Number(exchange.header("content-length") ?? 0) > MAX_IGNORED_BYTES
  );
}

/** What a server publishes, and how: replaced as a whole at a reload; requests in flight keep the one they began with. */
export interface HttpApp extends AccessOptions {
  readonly routes: readonly Route[];
  /** The datasets that routes are about. Default: none has to be prepared. */
  readonly datasets?: RouteDatasets;
  /** Another name of some paths. Default: there is none. */
  readonly alias?: PathAlias;
  /** Prefix of all paths: empty (the default), or begins with a slash and ends without one. */
  readonly rootPath?: string;
  /** `*` (the default), origins separated by commas, or empty: other origins may read nothing. */
  readonly corsOrigin?: string;
  /** `Cache-Control` of replies without one. Default: `public, max-age=0, must-revalidate`. */
  readonly cacheControl?: string;
  /** Renders errors for browsers. Default: they get JSON. */
  readonly errorPage?: RenderErrorPage | undefined;
}

/** Checks what TypeScript does not check in routes of plugins. @throws ZpublishError `invalid-config` */
function checkRoute({ path, priority, methods, maxBodyBytes }: Route): void {
  const check = (what: string, value: unknown, isValid: boolean) => {
    if (isValid) return;
    throw new ZpublishError(
      "invalid-config",
      `Route '${path}': expected ${what}, received ${JSON.stringify(value)}`,
    );
  };
  check("priority 'page' or 'chunk'", priority, priority === "page" || priority === "chunk");
  const areKnown = methods?.every((method) => method === "GET" || method === "POST") ?? true;
  check("methods 'GET', 'POST' or both", methods, areKnown && methods?.length !== 0);
  const isBound = maxBodyBytes === undefined || (Number.isSafeInteger(maxBodyBytes) && maxBodyBytes > 0);
  check("a number of bytes as maxBodyBytes", maxBodyBytes, isBound);
}

/** Recent paths whose route is remembered: some hundred bytes each. */
const MAX_REMEMBERED_PATHS = 4_096;

/** Checks an app and makes it ready to answer. @throws ZpublishError `invalid-config` if routes conflict, or one of them or an option is invalid. */
export function prepareApp(
  app: HttpApp,
): Pick<RunningApp, "routing"> & Pick<ExchangeContext, "cors" | "cacheControl" | "access" | "errorPage"> {
  const { rootPath = "", cacheControl = ASK_EACH_TIME } = app;
  if (rootPath !== "" && !/^(?:\/[A-Za-z0-9\-._~]+)+$/.test(rootPath)) {
    throw new ZpublishError(
      "invalid-config",
      `Root path: expected '' or one like '/data', received '${rootPath}'`,
    );
  }
  if (!isHeaderValue(cacheControl)) {
    const received = JSON.stringify(cacheControl);
    throw new ZpublishError(
      "invalid-config",
      `Cache-Control: expected printable ASCII, received ${received}`,
    );
  }
  for (const route of app.routes) checkRoute(route);
  const cors = createCors(app.corsOrigin ?? "*", [
    ["X-Content-Type-Options", "nosniff"],
    // A page would otherwise send the token or ticket in its address to the sites it links to.
    ...(app.credentials === undefined ? [] : [["Referrer-Policy", "no-referrer"] as const]),
  ]);
  return {
    routing: {
      router: createRouter(app.routes),
      rootPath,
      matches: createBoundedMap({ maxEntries: MAX_REMEMBERED_PATHS }),
      datasets: app.datasets,
      alias: app.alias,
    },
    cors,
    cacheControl,
    access: createAccessRules(app, cors.variesByOrigin),
    errorPage: app.errorPage,
  };
}
