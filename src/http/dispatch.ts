import { ZpublishError } from "../errors.js";
import { authorize } from "./access/authorize.js";
import { type AdminEndpoints, answerAdmin } from "./admin-endpoint.js";
import type { Exchange } from "./exchange.js";
import { handleRequest, type Routing } from "./handle-request.js";
import { ALLOWED_METHODS } from "./headers/cors.js";
import { headerField } from "./headers/header-field.js";
import { sendError } from "./send-error.js";
import { writeHead } from "./write-head.js";

/** What requests are answered with. */
export interface DispatchContext {
  /** Undefined while the server starts: only admin endpoints are answered. */
  readonly routing: Routing | undefined;
  readonly admin: AdminEndpoints;
  /** A request of another method with a longer body has its connection closed instead of its body read. */
  readonly maxRequestBodyBytes: number;
  /** Bytes of path and query; a longer one is answered 414. */
  readonly maxUrlBytes: number;
}

/** Answers a request by its method, at once or later. Never throws. @param method As it came. */
export function dispatch(exchange: Exchange, method: string, context: DispatchContext): void {
  try {
    if (hasSeveralLengths(exchange)) {
      exchange.methodLabel = "other";
      exchange.context.log.debug({ path: exchange.head.path }, "several Content-Length: connection dropped");
      // Without an answer: what came behind it would be answered, too.
      exchange.drop();
    } else if (method === "GET" || method === "HEAD") {
      handleGet(exchange, context);
    } else if (method === "OPTIONS") {
      exchange.methodLabel = "OPTIONS";
      const { preflight } = exchange.context.cors;
      writeHead(exchange, "204 No Content", headerField("Allow", ALLOWED_METHODS) + preflight);
      exchange.endBodiless();
    } else {
      exchange.methodLabel = "other";
      const error = new ZpublishError("method-not-allowed", `Method ${method} is not allowed`);
      sendError(exchange, error, isLongBody(exchange, context.maxRequestBodyBytes));
    }
  } catch (error) {
    sendError(exchange, error);
  }
}

function handleGet(exchange: Exchange, { admin, routing, maxUrlBytes }: DispatchContext): void {
  const { length } = exchange.head.path;
  if (length > maxUrlBytes || length + exchange.query.length > maxUrlBytes) {
    throw new ZpublishError("url-too-long", `Path and query: expected at most ${maxUrlBytes} bytes`);
  }
  const endpoint = admin.get(exchange.head.path);
  const { tokens } = exchange.context.access;
  if (tokens !== undefined && endpoint?.isOpen !== true) authorize(exchange, tokens);
  if (endpoint !== undefined) {
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

function isLongBody(exchange: Exchange, maxBytes: number): boolean {
  return (
    exchange.header("transfer-encoding") !== undefined ||
    Number(exchange.header("content-length") ?? 0) > maxBytes
  );
}
