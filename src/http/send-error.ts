import { messageOf, ZpublishError } from "../errors.js";
import { errorReply } from "./error-reply.js";
import type { Exchange } from "./exchange.js";
import { ALLOWED_METHODS } from "./headers/cors.js";
import { headerField } from "./headers/header-field.js";
import { requestFields } from "./metrics/access-log.js";
import { writeHead } from "./write-head.js";

/**
 * Answers with an error, whatever was thrown, and logs it. Drops the connection instead if an answer has begun. Never throws.
 * @param closeConnection Whether the connection ends with the answer.
 */
export function sendError(exchange: Exchange, thrown: unknown, closeConnection = false): void {
  const { log, access, metrics } = exchange.context;
  const error =
    thrown instanceof ZpublishError
      ? thrown
      : new ZpublishError("internal", messageOf(thrown), { cause: thrown });
  // A client that has disconnected does not count as rejected.
  if (exchange.over && (error.code === "overloaded" || error.code === "cancelled")) return;
  const reply = errorReply(error, () => exchange.id);
  if (error.code === "overloaded") metrics.rejections.note(error.message, exchange.priority);
  else if (log.isLevelEnabled(reply.logLevel)) {
    const fields = { ...requestFields(exchange), code: error.code };
    if (reply.logLevel === "debug") log.debug(fields, error.message);
    else
      metrics.failures.note(reply.logLevel, reply.hasId ? { ...fields, err: thrown } : fields, error.message);
  }
  if (exchange.over) return;
  if (exchange.started) {
    exchange.drop();
    return;
  }
  if (reply.status.startsWith("5")) {
    exchange.isNamed = true;
    if (access.accessLogShare > 0) exchange.noteForLog();
  }
  let fields = headerField("Content-Type", "application/json");
  // Caches must revalidate: an absent chunk may be written, a failure may pass, and a 404 without this header may be stored
  // by heuristics.
  fields += headerField("Cache-Control", access.cacheControlOf("no-cache"));
  if (reply.retryAfterSeconds !== undefined)
    fields += headerField("Retry-After", String(reply.retryAfterSeconds));
  if (error.code === "method-not-allowed") fields += headerField("Allow", ALLOWED_METHODS);
  if (error.code === "range-not-satisfiable") {
    fields += headerField("Content-Range", `bytes */${error.details.byteLength ?? 0}`);
  }
  if (error.code === "unauthorized") fields += headerField("WWW-Authenticate", challenge(error));
  const body = Buffer.from(reply.body, "utf8");
  exchange.cork(() => {
    writeHead(exchange, reply.status, fields);
    if (exchange.method === "HEAD") exchange.endHead(body.byteLength);
    else if (closeConnection) exchange.endAndClose(body);
    else exchange.endWith(body);
  });
}

/** Returns the challenge. A client that sent no token gets no error code (RFC 6750 §3). */
function challenge(error: ZpublishError): string {
  const scheme = 'Bearer realm="zpublish"';
  return error.details.wasGiven === true ? `${scheme}, error="invalid_token"` : scheme;
}

/** Creates the error that is answered 416. */
export function rangeNotSatisfiable(byteLength: number): ZpublishError {
  return new ZpublishError(
    "range-not-satisfiable",
    `The range is not satisfiable: expected one that begins within ${byteLength} bytes`,
    { details: { byteLength } },
  );
}
