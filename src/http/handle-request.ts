import type { RecentMap } from "../collections/recent-map.js";
import { ZpublishError } from "../errors.js";
import { locationWithSlash } from "./access/service-url.js";
import type { Exchange } from "./exchange.js";
import { headerField } from "./headers/header-field.js";
import { requestedRange } from "./headers/range.js";
import type { RouteCounts } from "./metrics/request-counts.js";
import { negotiateDocument } from "./negotiate-document.js";
import type { BodyReply, DocumentReply, Reply } from "./reply.js";
import { RepresentationHead } from "./representation-head.js";
import type { Route } from "./routing/route.js";
import type { RouteMatch, Router } from "./routing/router.js";
import { sendRepresentation } from "./send-representation.js";
import { writeHead } from "./write-head.js";

/** Attempts at a request whose source changes while it is answered. */
const MAX_ATTEMPTS = 3;

/** A match, with the counts of its route. */
interface CountedMatch extends RouteMatch {
  readonly counts: RouteCounts;
}

/** How paths become handlers. */
export interface Routing {
  readonly router: Router;
  /** Prefix of all paths: empty, or begins with a slash and ends without one. */
  readonly rootPath: string;
  /** Matches of recent paths, by path without the root path. */
  readonly matches: RecentMap<CountedMatch>;
}

/**
 * Answers a GET or HEAD request: path → route → handler → reply → representation.
 * @throws ZpublishError what is to be answered instead
 */
export function handleRequest(exchange: Exchange, routing: Routing): void | Promise<void> {
  const rawPath = withoutRoot(exchange.head.path, routing.rootPath);
  if (rawPath === undefined) throw new ZpublishError("not-found", "Not Found");
  if (rawPath === "") {
    sendRedirect(exchange);
    return undefined;
  }
  const { route, params, counts } = matchPath(exchange, rawPath, routing);
  exchange.counts = counts;
  exchange.priority = route.priority;
  exchange.context.load.admit(route.priority);
  exchange.rawPath = rawPath;
  exchange.params = params;
  return attempt(exchange, route.handler, MAX_ATTEMPTS);
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

/** Calls the handler and sends its reply; again if the source changed before anything was sent. */
function attempt(exchange: Exchange, handler: Route["handler"], attemptsLeft: number): void | Promise<void> {
  const again = (error: unknown): void | Promise<void> => {
    const hasChanged = error instanceof ZpublishError && error.code === "source-changed";
    if (!hasChanged || attemptsLeft <= 1 || exchange.started || exchange.over) throw error;
    const { staleIdentity } = error.details;
    exchange.staleIdentity = typeof staleIdentity === "string" ? staleIdentity : undefined;
    return attempt(exchange, handler, attemptsLeft - 1);
  };
  let pending: void | Promise<void>;
  try {
    const reply = handler(exchange);
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

function withoutRoot(path: string, rootPath: string): string | undefined {
  if (rootPath === "") return path;
  if (!path.startsWith(rootPath)) return undefined;
  const rest = path.slice(rootPath.length);
  return rest === "" || rest.startsWith("/") ? rest : undefined;
}

function isPromise<T>(value: T | Promise<T>): value is Promise<T> {
  return typeof (value as Partial<Promise<T>> | undefined)?.then === "function";
}

function sendReply(exchange: Exchange, reply: Reply): void | Promise<void> {
  switch (reply?.kind) {
    case "body":
      return sendRepresentation(exchange, bodyRepresentation(reply));
    case "document":
      return sendDocument(exchange, reply);
    case "redirect":
      sendRedirect(exchange);
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

function bodyRepresentation(reply: BodyReply) {
  return { etag: reply.etag, head: reply.head ?? new RepresentationHead(reply), content: reply };
}

function sendRedirect(exchange: Exchange): void {
  const { query, context } = exchange;
  const { cacheControl, access, rootPath } = context;
  // The client needs a prefix that a proxy took away, but not the host.
  const path = exchange.publicPrefix + exchange.head.path.slice(rootPath.length);
  const fields =
    headerField("Location", locationWithSlash(path, query)) +
    headerField("Cache-Control", access.cacheControlOfAddress(cacheControl));
  exchange.cork(() => {
    writeHead(exchange, "301 Moved Permanently", fields);
    exchange.endHead(0);
  });
}

function describe(reply: unknown): string {
  const kind = (reply as { readonly kind?: unknown } | null | undefined)?.kind;
  return kind === undefined ? String(reply) : `one of kind '${String(kind)}'`;
}
