import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { sendError } from "./error-reply.js";
import { type Exchange, writeHead } from "./exchange.js";
import { acceptsGzip, headerField } from "./headers.js";
import type { Route } from "./router.js";

/**
 * An endpoint for operators: liveness, readiness, metrics. Matched by its whole path before root path and routes; never
 * shed under load, never cached.
 */
export interface AdminEndpoint {
  /** The whole path: `/healthz`. */
  readonly path: string;
  /** Whether it is answered without a token, when the rest needs one. */
  readonly isOpen: boolean;
  answer(): AdminAnswer | Promise<AdminAnswer>;
}

/** Answer of an admin endpoint. */
interface AdminAnswer {
  /** Status line without the version. */
  readonly status: string;
  readonly contentType: string;
  readonly body: string;
  /** Seconds after which the client may ask again. */
  readonly retryAfterSeconds?: number;
}

/** By path. */
export type AdminEndpoints = ReadonlyMap<string, AdminEndpoint>;

/** A shorter answer fits a packet without compression. */
const MIN_COMPRESSED_CHARS = 1_024;

const gzipAsync = promisify(gzip);

/** The endpoints whose path no route has: a plugin's route wins. */
export function adminEndpointsBeside(
  endpoints: readonly AdminEndpoint[],
  routes: readonly Route[],
  rootPath: string,
): AdminEndpoints {
  const taken = new Set(routes.map(({ path }) => rootPath + path));
  return new Map(endpoints.filter(({ path }) => !taken.has(path)).map((each) => [each.path, each]));
}

/** Answers a GET or HEAD request of an admin endpoint. Never throws. */
export function answerAdmin(exchange: Exchange, endpoint: AdminEndpoint): void {
  exchange.counts = exchange.context.metrics.counts.of(endpoint.path);
  // Read now: the answer may come after uWebSockets.js took the request back.
  const mayCompress = acceptsGzip(exchange.header("accept-encoding"));
  try {
    const answered = endpoint.answer();
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

function send(exchange: Exchange, answer: AdminAnswer, compressed: Uint8Array | undefined): void {
  const { status, contentType, body, retryAfterSeconds } = answer;
  let fields = headerField("Content-Type", contentType) + headerField("Cache-Control", "no-store");
  if (retryAfterSeconds !== undefined) fields += headerField("Retry-After", String(retryAfterSeconds));
  if (compressed !== undefined) fields += headerField("Content-Encoding", "gzip");
  writeHead(exchange, status, fields);
  const bytes = compressed ?? Buffer.from(body);
  if (exchange.method === "HEAD") exchange.endHead(bytes.byteLength);
  else exchange.endWith(bytes);
}
