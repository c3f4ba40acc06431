import { type ErrorCode, isDamage, messageOf, ZpublishError } from "../errors.js";
import type { AccessRules } from "./access/access-rules.js";
import { type Exchange, withVary, writeHead } from "./exchange.js";
import {
  ALLOWED_METHODS,
  checkLines,
  type HeaderLines,
  parseWeights,
  statusLine,
  withoutParameters,
} from "./headers.js";
import type { ErrorFacts, ErrorReply } from "./reply.js";
import { requestFields } from "./request-log.js";

/** How an error is answered. */
interface ErrorAnswer {
  /** Status line without the version. */
  readonly status: string;
  /** What the body says; undefined: the error's own message, which may be shown. */
  readonly detail?: string;
  readonly logLevel: "debug" | "warn" | "error";
  /** Seconds after which trying again may help. */
  readonly retryAfterSeconds?: number;
  /** Random seconds that are added at most, so that clients that are turned away together come again one after the other. */
  readonly retrySpreadSeconds?: number;
}

const FAILURE = { status: "500 Internal Server Error", logLevel: "error" } as const;

/**
 * The one table of errors and answers. Messages of failures stay in the log: they name files and say more about the
 * machine than a client should know.
 */
const ANSWERS: Readonly<Record<ErrorCode, ErrorAnswer>> = {
  "not-found": { status: "404 Not Found", logLevel: "debug" },
  "invalid-path": { status: "422 Unprocessable Content", logLevel: "debug" },
  "invalid-query": { status: "422 Unprocessable Content", logLevel: "debug" },
  "invalid-body": { status: "422 Unprocessable Content", logLevel: "debug" },
  "unsupported-media-type": { status: "415 Unsupported Media Type", logLevel: "debug" },
  "not-acceptable": { status: "406 Not Acceptable", logLevel: "debug" },
  "too-large": { status: "413 Content Too Large", logLevel: "debug" },
  "method-not-allowed": { status: "405 Method Not Allowed", detail: "Method Not Allowed", logLevel: "debug" },
  "precondition-failed": { status: "412 Precondition Failed", logLevel: "debug" },
  "range-not-satisfiable": { status: "416 Range Not Satisfiable", logLevel: "debug" },
  "source-unreadable": { ...FAILURE, detail: "The source of this data cannot be read" },
  "corrupt-chunk": { ...FAILURE, detail: "The stored data is corrupt" },
  "codec-failed": { ...FAILURE, detail: "The data could not be encoded or decoded" },
  "invalid-metadata": { ...FAILURE, detail: "The metadata of the source cannot be understood" },
  unsupported: { ...FAILURE, detail: "The source needs something that is not supported" },
  "invalid-config": { ...FAILURE, detail: "The server is not configured correctly" },
  internal: { ...FAILURE, detail: "Internal Server Error" },
  "source-changed": unavailable("The source of this data is being changed; try again later", "warn", 1),
  overloaded: unavailable("Too many requests at once; try again later", "warn", 1, 2),
  "url-too-long": { status: "414 URI Too Long", logLevel: "debug" },
  "headers-too-long": { status: "431 Request Header Fields Too Large", logLevel: "debug" },
  starting: unavailable("The server is starting; try again later", "debug", 1),
  unauthorized: { status: "401 Unauthorized", logLevel: "debug" },
  forbidden: { status: "403 Forbidden", logLevel: "debug" },
  "issuer-unreadable": unavailable("The token cannot be verified at the moment; try again later", "warn", 5),
  cancelled: unavailable("The request was cancelled; try again", "debug", 1),
  "timed-out": unavailable("The answer took too long; try again later", "error", 10),
  draining: unavailable("The server is shutting down; try again later", "debug", 5),
};

function unavailable(
  detail: string,
  logLevel: ErrorAnswer["logLevel"],
  retryAfterSeconds: number,
  retrySpreadSeconds = 0,
): ErrorAnswer {
  return { status: "503 Service Unavailable", detail, logLevel, retryAfterSeconds, retrySpreadSeconds };
}

/** Longest message that is shown. */
const MAX_MESSAGE_LENGTH = 2048;

/** Returns the detail of an error's answer, which names nothing of the machine; undefined is an unexpected error. */
export function publicDetail(error: ZpublishError | undefined): string {
  const answer = ANSWERS[error?.code ?? "internal"] ?? ANSWERS.internal;
  return answer.detail ?? shown(error?.message ?? "");
}

/** Returns why a dataset cannot be opened, in words about its content; undefined if they might say more about the machine. */
export function publicReason(error: ZpublishError): string | undefined {
  const { reason } = error.details;
  return typeof reason === "string" && isDamage(error) ? shown(reason) : undefined;
}

/** Errors about one parameter, of the path, the query or the body. */
const PARAMETER_CODES: ReadonlySet<ErrorCode> = new Set(["invalid-path", "invalid-query", "invalid-body"]);

/** As pydantic writes it, which is what users of Xpublish know. */
function parameterDetail({ code, message, details }: ZpublishError): object {
  const place = code.slice("invalid-".length);
  const { parameter = place, type = "string_type", msg = message, input = "" } = details;
  return { type, loc: [place, parameter], msg, input };
}

/** JSON.stringify escapes what is not valid Unicode, so that the body is valid UTF-8 whatever the message holds. */
function shown(message: string): string {
  return message.length > MAX_MESSAGE_LENGTH ? `${message.slice(0, MAX_MESSAGE_LENGTH)}…` : message;
}

/**
 * Answers with an error, whatever was thrown, and logs it. Drops the connection instead if an answer has begun. Never throws.
 * @param closeConnection Whether the connection ends with the answer.
 */
export function sendError(exchange: Exchange, thrown: unknown, closeConnection = false): void {
  const { log, access, metrics, errorPage } = exchange.context;
  const error =
    thrown instanceof ZpublishError
      ? thrown
      : new ZpublishError("internal", messageOf(thrown), { cause: thrown });
  // A client that has disconnected does not count as rejected.
  if (exchange.over && (error.code === "overloaded" || error.code === "cancelled")) return;
  const answer = ANSWERS[error.code] ?? ANSWERS.internal;
  // The body names the request's id, for the log to have it too.
  const hasId = answer.logLevel === "error";
  const { logs } = metrics;
  const { code, message } = error;
  if (code === "overloaded") {
    logs.rejections[exchange.route?.priority ?? "page"] += 1;
    logs.rejected(message, () => log.warn({ code, rejected: 1 }, `requests rejected: ${message}`));
  } else if (log.isLevelEnabled(answer.logLevel)) {
    const fields = { ...requestFields(exchange), code, ...(hasId ? { err: thrown } : {}) };
    if (answer.logLevel === "debug") log.debug(fields, message);
    else logs.failed(message, () => log[answer.logLevel](fields, message));
  }
  if (exchange.over) return;
  if (exchange.started) {
    exchange.drop();
    return;
  }
  if (answer.status.startsWith("5")) exchange.isNamed = true;
  if (answer.status.startsWith("5") && access.accessLogShare > 0) exchange.noteForLog();
  const own = ownReply(exchange, error, answer) ?? pageReply(exchange, error, answer);
  const detail = PARAMETER_CODES.has(code) ? [parameterDetail(error)] : publicDetail(error);
  const { body, contentType, headers, status } = own ?? {
    body: JSON.stringify(hasId ? { detail, id: exchange.id } : { detail }),
    contentType: "application/json",
  };
  const bytes = typeof body === "string" ? Buffer.from(body, "utf8") : body;
  const varying = withVary(
    linesOf(error, answer, access),
    errorPage === undefined || exchange.route?.errors !== undefined ? "" : "Accept",
    access.vary,
  );
  const lines: HeaderLines = [["Content-Type", contentType], ...varying, ...(headers ?? [])];
  exchange.cork(() => {
    writeHead(exchange, status === undefined ? answer.status : statusLine(status), lines);
    if (exchange.method === "HEAD") exchange.endBodiless(bytes.byteLength);
    else if (closeConnection) exchange.endAndClose(bytes);
    else exchange.endWith(bytes);
  });
}

/** Writes the error as the route's protocol does; undefined if it has no shape of its own. */
function ownReply(exchange: Exchange, error: ZpublishError, answer: ErrorAnswer): ErrorReply | undefined {
  const write = exchange.route?.errors;
  if (write === undefined) return undefined;
  try {
    const reply = write(factsOf(exchange, error, answer));
    // Checked here: an answer in JSON is better than none.
    if (reply.status !== undefined) statusLine(reply.status);
    checkLines([["Content-Type", reply.contentType], ...(reply.headers ?? [])]);
    if (typeof reply.body !== "string" && !(reply.body instanceof Uint8Array))
      throw new TypeError(`expected a text or bytes as body, received ${typeof reply.body}`);
    return reply;
  } catch (failure) {
    const fields = { ...requestFields(exchange), err: failure };
    exchange.context.log.error(
      fields,
      `the error could not be written as its route does: ${messageOf(failure)}`,
    );
    return undefined;
  }
}

/** Renders the page about an error; undefined if the client gets JSON. */
function pageReply(exchange: Exchange, error: ZpublishError, answer: ErrorAnswer): ErrorReply | undefined {
  const { errorPage } = exchange.context;
  if (errorPage === undefined || !exchange.isReadable || !prefersPage(exchange.header("accept")))
    return undefined;
  exchange.isNamed = true;
  const { html, headers } = errorPage(factsOf(exchange, error, answer));
  return { body: html, contentType: "text/html; charset=utf-8", headers };
}

function factsOf(exchange: Exchange, error: ZpublishError, { status }: ErrorAnswer): ErrorFacts {
  return {
    ...{ status, code: error.code, detail: publicDetail(error), reason: publicReason(error) },
    parameter: PARAMETER_CODES.has(error.code)
      ? { name: String(error.details.parameter), type: String(error.details.type) }
      : undefined,
    requestId: exchange.id,
    datasetId: exchange.params.dataset_id,
    root: linkToRoot(exchange),
    path: exchange.rawPath,
    query: exchange.isReadable ? exchange.query : "",
  };
}

/**
 * Tells whether `Accept` asks for a page, as browsers do when someone opens an address: it names `text/html`, and does not prefer JSON.
 * Programs send a range such as any type, which is no preference.
 */
export function prefersPage(accept: string | undefined): boolean {
  if (accept === undefined || !/text\/html/i.test(accept)) return false;
  const weights = parseWeights(withoutParameters(accept));
  const page = weights.get("text/html") ?? 0;
  const json = weights.get("application/json");
  return page > 0 && (json === undefined || page > json);
}

/** Returns a relative link from the requested path to the root of the service, which a proxy may have under a prefix of its own. */
function linkToRoot({ head, prefix, context }: Exchange): string {
  const rootPath = context.rootPath + prefix;
  const isInside = head.path.startsWith(`${rootPath}/`);
  const path = isInside ? head.path.slice(rootPath.length) : head.path;
  const up = "../".repeat(path.split("/").length - 2);
  return isInside ? up || "./" : `${up || "./"}${rootPath.slice(1)}/`;
}

function linesOf(error: ZpublishError, answer: ErrorAnswer, access: AccessRules): HeaderLines {
  const { retryAfterSeconds, retrySpreadSeconds = 0 } = answer;
  const lines: [name: string, value: string][] = [
    // Caches must revalidate: an absent chunk may be written, a failure may pass, and a 404 without this header may be stored
    // by heuristics.
    ["Cache-Control", access.cacheControlOf("no-cache")],
  ];
  if (retryAfterSeconds !== undefined) {
    const spread = Math.floor(Math.random() * (retrySpreadSeconds + 1));
    lines.push(["Retry-After", String(retryAfterSeconds + spread)]);
  }
  if (error.code === "method-not-allowed")
    lines.push(["Allow", String(error.details.allow ?? ALLOWED_METHODS)]);
  if (error.code === "range-not-satisfiable")
    lines.push(["Content-Range", `bytes */${error.details.byteLength ?? 0}`]);
  if (error.code === "unauthorized" || error.code === "forbidden")
    lines.push(["WWW-Authenticate", challenge(error)]);
  return lines;
}

/** Returns the challenge. A client that sent no token gets no error code (RFC 6750 §3). */
function challenge(error: ZpublishError): string {
  const scheme = 'Bearer realm="zpublish"';
  if (error.code === "forbidden") return `${scheme}, error="insufficient_scope"`;
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
