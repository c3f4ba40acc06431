import { ZpublishError } from "../errors.js";
import { deliverBody } from "./deliver-body.js";
import { deliverDocument } from "./deliver-document.js";
import type { Exchange } from "./exchange.js";
import { headerField } from "./header-field.js";
import { locationWithSlash } from "./redirect.js";
import type { Reply } from "./reply.js";
import type { Route } from "./route.js";
import type { Router } from "./router.js";

/** How often a request is begun, where its source changes under it. */
const MAX_ATTEMPTS = 3;

/**
 * Finds the route of a GET or HEAD request, calls its handler and delivers the reply.
 * @param rootPath Empty, or begins with a slash and ends without one.
 * @throws ZpublishError what is to be answered instead
 */
export function answer(exchange: Exchange, router: Router, rootPath: string): void | Promise<void> {
  const { load, draining } = exchange.context;
  const rawPath = withoutRoot(exchange.fullPath, rootPath);
  if (rawPath === undefined) throw new ZpublishError("not-found", "Not Found");
  if (rawPath === "") {
    redirect(exchange);
    return;
  }
  const match = router.match(rawPath);
  if (match === undefined) throw new ZpublishError("not-found", "Not Found");
  const { weight, handler } = match.route;
  // Chunks are answered to the end: several clients take an error for absence, and read fill values.
  if (draining && weight === "page") throw new ZpublishError("draining", "The server is shutting down");
  load.admit(weight);
  exchange.rawPath = rawPath;
  exchange.params = match.params;
  return handle(exchange, handler, MAX_ATTEMPTS);
}

/** Calls the handler and delivers its reply; again where the source has changed before anything was sent. */
function handle(exchange: Exchange, handler: Route["handler"], attempts: number): void | Promise<void> {
  const again = (error: unknown): void | Promise<void> => {
    const changed = error instanceof ZpublishError && error.code === "source-changed";
    if (!changed || attempts <= 1 || exchange.started || exchange.over) throw error;
    return handle(exchange, handler, attempts - 1);
  };
  try {
    return callHandler(exchange, handler)?.catch(again);
  } catch (error) {
    return again(error);
  }
}

function callHandler(exchange: Exchange, handler: Route["handler"]): void | Promise<void> {
  const reply = handler(exchange);
  const pending = isPromise(reply)
    ? Promise.resolve(reply).then((settled) => deliverLater(exchange, settled))
    : deliver(exchange, reply);
  // uWebSockets.js takes its request back when this returns.
  if (pending !== undefined) exchange.keepHeaders();
  return pending;
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
      return;
    default:
      throw new ZpublishError("internal", `Expected a reply of the handler, received ${describe(reply)}`);
  }
}

function redirect(exchange: Exchange): void {
  const { fullPath, query, context } = exchange;
  const fields =
    headerField("Location", locationWithSlash(fullPath, query)) +
    headerField("Cache-Control", context.cacheControl);
  exchange.cork(() => {
    exchange.writeHead("301 Moved Permanently", fields);
    exchange.endHead(0);
  });
}

function describe(reply: unknown): string {
  const kind = (reply as { readonly kind?: unknown } | null | undefined)?.kind;
  return kind === undefined ? String(reply) : `one of kind '${String(kind)}'`;
}
