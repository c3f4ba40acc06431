import { ZpublishError } from "../errors.js";
import type { RecentMap } from "../recent-map.js";
import { deliverBody } from "./deliver-body.js";
import { deliverDocument } from "./deliver-document.js";
import type { Exchange } from "./exchange.js";
import { headerField } from "./header-field.js";
import { locationWithSlash } from "./redirect.js";
import type { Reply } from "./reply.js";
import type { RouteCounts } from "./request-counts.js";
import type { Route } from "./route.js";
import type { Router } from "./router.js";
import type { SeenPaths } from "./seen-paths.js";

/** How often a request is begun, where its source changes under it. */
const MAX_ATTEMPTS = 3;

/** What a server answers requests with. */
export interface Answering {
  readonly router: Router;
  /** Empty, or begins with a slash and ends without one. */
  readonly rootPath: string;
  /** Replies that may be current still, by path as it came. */
  readonly kept: RecentMap<KeptReply>;
  /** What was asked for lately: only what is asked for again is kept, so that a reader of all chunks leaves nothing behind. */
  readonly seen: SeenPaths;
}

/** A reply, with what it takes to give it again. */
interface KeptReply {
  readonly weight: Route["weight"];
  readonly counts: RouteCounts;
  readonly reply: Reply & { isCurrent(): boolean };
}

/**
 * Finds the route of a GET or HEAD request, calls its handler and delivers the reply; or delivers the one of an earlier
 * request of the same path, if it is current.
 * @throws ZpublishError what is to be answered instead
 */
export function answer(exchange: Exchange, answering: Answering): void | Promise<void> {
  const { kept } = answering;
  const { fullPath } = exchange;
  const known = kept.get(fullPath);
  if (known?.reply.isCurrent()) {
    exchange.counts = known.counts;
    admit(exchange, known.weight);
    exchange.isRepeated = true;
    const pending = deliver(exchange, known.reply);
    if (pending === undefined) return undefined;
    keepHeaders(exchange, pending);
    // Whatever it was that changed: from the beginning.
    return pending.catch((error: unknown) => {
      kept.delete(fullPath);
      if (!mayBeginAgain(exchange, error)) throw error;
      return answerAnew(exchange, answering);
    });
  }
  if (known !== undefined) kept.delete(fullPath);
  return answerAnew(exchange, answering);
}

function answerAnew(exchange: Exchange, { router, rootPath, kept, seen }: Answering): void | Promise<void> {
  const rawPath = withoutRoot(exchange.fullPath, rootPath);
  if (rawPath === undefined) throw new ZpublishError("not-found", "Not Found");
  if (rawPath === "") {
    redirect(exchange);
    return undefined;
  }
  const match = router.match(rawPath);
  if (match === undefined) throw new ZpublishError("not-found", "Not Found");
  const { weight, handler, path } = match.route;
  const counts = exchange.context.watch.counts.of(path);
  exchange.counts = counts;
  admit(exchange, weight);
  exchange.rawPath = rawPath;
  exchange.params = match.params;
  const keep = (reply: Reply) => {
    const { fullPath } = exchange;
    if (isReusable(reply) && seen.note(fullPath)) kept.set(fullPath, { weight, counts, reply });
  };
  return handle(exchange, handler, keep, MAX_ATTEMPTS);
}

function admit(exchange: Exchange, weight: Route["weight"]): void {
  exchange.weight = weight;
  exchange.context.load.admit(weight);
}

function isReusable(reply: Reply): reply is KeptReply["reply"] {
  return reply?.kind !== "redirect" && reply?.isCurrent !== undefined;
}

/** Whether a failure says that the source has changed, before anything was sent. */
function mayBeginAgain(exchange: Exchange, error: unknown): boolean {
  const changed = error instanceof ZpublishError && error.code === "source-changed";
  return changed && !exchange.started && !exchange.over;
}

/** Calls the handler and delivers its reply; again where the source has changed before anything was sent. */
function handle(
  exchange: Exchange,
  handler: Route["handler"],
  keep: (reply: Reply) => void,
  attempts: number,
): void | Promise<void> {
  const again = (error: unknown): void | Promise<void> => {
    if (attempts <= 1 || !mayBeginAgain(exchange, error)) throw error;
    return handle(exchange, handler, keep, attempts - 1);
  };
  try {
    return callHandler(exchange, handler, keep)?.catch(again);
  } catch (error) {
    return again(error);
  }
}

function callHandler(
  exchange: Exchange,
  handler: Route["handler"],
  keep: (reply: Reply) => void,
): void | Promise<void> {
  const reply = handler(exchange);
  let pending: void | Promise<void>;
  if (isPromise(reply)) {
    pending = Promise.resolve(reply).then((settled) => {
      keep(settled);
      return deliverLater(exchange, settled);
    });
  } else {
    keep(reply);
    pending = deliver(exchange, reply);
  }
  // uWebSockets.js takes its request back when this returns.
  if (pending !== undefined) keepHeaders(exchange, pending);
  return pending;
}

function keepHeaders(exchange: Exchange, pending: Promise<void>): void {
  try {
    exchange.keepHeaders();
  } catch (error) {
    // It is answered now; what comes of it later is nobody's.
    pending.catch(() => undefined);
    throw error;
  }
}

/** Outside of uWebSockets.js's own callback, what is written has to be corked. */
function deliverLater(exchange: Exchange, reply: Reply): void | Promise<void> {
  let delivered: () => void | Promise<void> = () => undefined;
  exchange.cork(() => {
    // What is thrown must not cross native code.
    try {
      const pending = deliver(exchange, reply);
      delivered = () => pending;
    } catch (error) {
      delivered = () => {
        throw error;
      };
    }
  });
  return delivered();
}

function withoutRoot(path: string, rootPath: string): string | undefined {
  if (rootPath === "") return path;
  if (!path.startsWith(rootPath)) return undefined;
  const rest = path.slice(rootPath.length);
  return rest === "" || rest.startsWith("/") ? rest : undefined;
}

function isPromise(reply: Reply | Promise<Reply>): reply is Promise<Reply> {
  return typeof (reply as Partial<Promise<Reply>> | undefined)?.then === "function";
}

function deliver(exchange: Exchange, reply: Reply): void | Promise<void> {
  switch (reply?.kind) {
    case "body":
      return deliverBody(exchange, reply);
    case "document":
      return deliverDocument(exchange, reply);
    case "redirect":
      redirect(exchange);
      return undefined;
    default:
      throw new ZpublishError("internal", `Expected a reply of the handler, received ${describe(reply)}`);
  }
}

function redirect(exchange: Exchange): void {
  const { query, context } = exchange;
  const { cacheControl, edge, rootPath } = context;
  // Where a proxy took a prefix away, the client needs it. The host is the client's own affair.
  const path = exchange.publicPrefix + exchange.fullPath.slice(rootPath.length);
  const fields =
    headerField("Location", locationWithSlash(path, query)) +
    headerField("Cache-Control", edge.cacheControlOfAddress(cacheControl));
  exchange.cork(() => {
    exchange.writeHead("301 Moved Permanently", fields);
    exchange.endHead(0);
  });
}

function describe(reply: unknown): string {
  const kind = (reply as { readonly kind?: unknown } | null | undefined)?.kind;
  return kind === undefined ? String(reply) : `one of kind '${String(kind)}'`;
}
