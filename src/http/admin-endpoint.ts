import { createDocument } from "./create-document.js";
import { sendError } from "./error-reply.js";
import { type Exchange, withVary, writeHead } from "./exchange.js";
import { negotiateCoding } from "./representation.js";
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
  const coding = negotiateCoding(exchange.header("accept-encoding"));
  const later = async (answered: Promise<AdminAnswer>) => {
    const answer = await answered;
    const compressed =
      coding === "identity"
        ? undefined
        : await createDocument(answer.body, answer.contentType).encoded(coding);
    exchange.cork(() => send(exchange, answer, compressed, coding));
  };
  try {
    const answered = endpoint.answer();
    if (answered instanceof Promise) later(answered).catch((error: unknown) => sendError(exchange, error));
    else send(exchange, answered);
  } catch (error) {
    sendError(exchange, error);
  }
}

function send(exchange: Exchange, answer: AdminAnswer, compressed?: Uint8Array, coding = ""): void {
  const { status, contentType, body, retryAfterSeconds } = answer;
  const lines: [name: string, value: string][] = [
    ["Content-Type", contentType],
    ["Cache-Control", "no-store"],
  ];
  if (retryAfterSeconds !== undefined) lines.push(["Retry-After", String(retryAfterSeconds)]);
  if (compressed !== undefined) lines.push(["Content-Encoding", coding]);
  writeHead(exchange, status, withVary(lines, exchange.context.access.vary));
  const bytes = compressed ?? Buffer.from(body);
  if (exchange.method === "HEAD") exchange.endBodiless(bytes.byteLength);
  else exchange.endWith(bytes);
}
