import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Exchange } from "./exchange.js";
import { headerField } from "./header-field.js";
import { acceptsGzip } from "./negotiate.js";
import type { Route } from "./route.js";
import { sendError } from "./send-error.js";

/**
 * What those who run a server ask of it: whether it lives, whether it is ready, how it fares. Found by its whole path,
 * before root path and routes; never turned away under load, and kept by nobody.
 */
export interface Operation {
  /** Whole, as it comes: `/healthz`. */
  readonly path: string;
  /** Whether it is answered to those without a token, where others need one. */
  readonly isOpen: boolean;
  answer(): OperationAnswer | Promise<OperationAnswer>;
}

export interface OperationAnswer {
  /** Status line without the version. */
  readonly status: string;
  readonly contentType: string;
  readonly body: string;
  /** Seconds after which asking again may help. */
  readonly retryAfterSeconds?: number;
}

/** By path. */
export type Operations = ReadonlyMap<string, Operation>;

/** A shorter answer fits a packet anyhow. */
const MIN_COMPRESSED_CHARS = 1_024;

const gzipAsync = promisify(gzip);

/**
 * The operations that are answered beside routes: those whose path is not a route's own template already, so that none is
 * in the way of a plugin.
 */
export function operationsBeside(
  operations: readonly Operation[],
  routes: readonly Route[],
  rootPath: string,
): Operations {
  const taken = new Set(routes.map(({ path }) => rootPath + path));
  return new Map(operations.filter(({ path }) => !taken.has(path)).map((each) => [each.path, each]));
}

/** Answers a GET or HEAD request with an operation. Never throws. */
export function answerOperation(exchange: Exchange, operation: Operation): void {
  exchange.counts = exchange.context.watch.counts.of(operation.path);
  // Where it has to be waited for, the request is read before that.
  const mayCompress = acceptsGzip(exchange.header("accept-encoding"));
  try {
    const answered = operation.answer();
    if (!(answered instanceof Promise)) {
      send(exchange, answered, undefined);
      return;
    }
    const later = async () => {
      const answer = await answered;
      const isLong = mayCompress && answer.body.length >= MIN_COMPRESSED_CHARS;
      const compressed = isLong ? await gzipAsync(answer.body, { level: 1 }) : undefined;
      exchange.cork(() => send(exchange, answer, compressed));
    };
    later().catch((error: unknown) => sendError(exchange, error));
  } catch (error) {
    sendError(exchange, error);
  }
}

function send(exchange: Exchange, answer: OperationAnswer, compressed: Uint8Array | undefined): void {
  const { status, contentType, body, retryAfterSeconds } = answer;
  let fields = headerField("Content-Type", contentType) + headerField("Cache-Control", "no-store");
  if (retryAfterSeconds !== undefined) fields += headerField("Retry-After", String(retryAfterSeconds));
  if (compressed !== undefined) fields += headerField("Content-Encoding", "gzip");
  exchange.writeHead(status, fields);
  const bytes = compressed ?? Buffer.from(body);
  if (exchange.method === "HEAD") exchange.endHead(bytes.byteLength);
  else exchange.endWith(bytes);
}
