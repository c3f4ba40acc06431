import { ZpublishError } from "../errors.js";
import { type Answering, answer } from "./answer.js";
import { authorize } from "./authorize.js";
import { ALLOWED_METHODS } from "./cors.js";
import type { Exchange } from "./exchange.js";
import { headerField } from "./header-field.js";
import { answerOperation, type Operations } from "./operation.js";
import { sendError } from "./send-error.js";

/** What requests are answered with. */
export interface Responding {
  /** Undefined: there is no site yet, and only operations are answered. */
  readonly answering: Answering | undefined;
  readonly operations: Operations;
  /** One of a method that is not allowed whose body is longer has its connection closed, not its body read away. */
  readonly maxRequestBodyBytes: number;
  /** Of path and query; a longer one is answered 414. */
  readonly maxUrlBytes: number;
}

/** Answers a request by its method: every one, at once or later. Never throws. @param method As it came. */
export function respond(exchange: Exchange, method: string, responding: Responding): void {
  try {
    if (hasSeveralLengths(exchange)) {
      exchange.methodLabel = "other";
      exchange.context.log.debug({ path: exchange.fullPath }, "several Content-Length: connection dropped");
      // Not even answered: what came with it would be, too.
      exchange.drop();
    } else if (method === "GET" || method === "HEAD") {
      read(exchange, responding);
    } else if (method === "OPTIONS") {
      exchange.methodLabel = "OPTIONS";
      const { preflight } = exchange.context.cors;
      exchange.writeHead("204 No Content", headerField("Allow", ALLOWED_METHODS) + preflight);
      exchange.endBodiless();
    } else {
      exchange.methodLabel = "other";
      const error = new ZpublishError("method-not-allowed", `Method ${method} is not allowed`);
      sendError(exchange, error, isLongBody(exchange, responding.maxRequestBodyBytes));
    }
  } catch (error) {
    sendError(exchange, error);
  }
}

function read(exchange: Exchange, { operations, answering, maxUrlBytes }: Responding): void {
  const { length } = exchange.fullPath;
  if (length > maxUrlBytes || length + exchange.query.length > maxUrlBytes) {
    throw new ZpublishError("url-too-long", `Path and query: expected at most ${maxUrlBytes} bytes`);
  }
  const operation = operations.get(exchange.fullPath);
  const { tokens } = exchange.context.edge;
  if (tokens !== undefined && operation?.isOpen !== true) authorize(exchange, tokens);
  if (operation !== undefined) {
    answerOperation(exchange, operation);
    return;
  }
  if (answering === undefined) throw new ZpublishError("starting", "The server is starting");
  const pending = answer(exchange, answering);
  pending?.catch((error: unknown) => sendError(exchange, error));
}

/**
 * Whether it is not certain where the request ends (RFC 9112 §6.3). uWebSockets.js goes by the first length: what a proxy before it,
 * going by another, takes for a body would be answered as a request of its own. (An empty first one cannot be told from none; proxies
 * refuse it.)
 */
function hasSeveralLengths(exchange: Exchange): boolean {
  return exchange.header("content-length") !== undefined && exchange.countHeader("content-length") > 1;
}

function isLongBody(exchange: Exchange, maxBytes: number): boolean {
  return (
    exchange.header("transfer-encoding") !== undefined ||
    Number(exchange.header("content-length") ?? 0) > maxBytes
  );
}
