/**
 * What can go wrong, named once. Which HTTP status a code answers, and whether its message may be shown,
 * is settled in `http/error-reply.ts`: nothing here or below knows HTTP.
 */
export type ErrorCode =
  /** The thing asked for does not exist: a dataset, group, variable, route or chunk. */
  | "not-found"
  /** A path parameter is no valid string. Details: `parameter`, `type`, `input`. */
  | "invalid-path"
  /** A parameter of the query is not as expected. Details: `parameter`, `type`, `input`. */
  | "invalid-query"
  /** The body of a request is not as expected. Details: `parameter`, `type`, `input`. */
  | "invalid-body"
  | "unsupported-media-type"
  /** None of the content types that can be made is accepted. */
  | "not-acceptable"
  /** More is asked for, or sent, than is allowed; the message has both numbers. */
  | "too-large"
  | "method-not-allowed"
  | "precondition-failed"
  /** Details: `byteLength`. */
  | "range-not-satisfiable"
  /** The operator's configuration is wrong. */
  | "invalid-config"
  /** A location holds no dataset, or its metadata cannot be understood. */
  | "invalid-metadata"
  /** Understood, but not servable as asked. */
  | "unsupported"
  /** The source exists but cannot be read. */
  | "source-unreadable"
  /** The source changed between two looks at it; the request may be begun again. */
  | "source-changed"
  /** Stored bytes are not what the metadata promises. */
  | "corrupt-chunk"
  /** A codec failed for another reason than its input. */
  | "codec-failed"
  /** A hard limit is reached; may be tried again. */
  | "overloaded"
  | "draining"
  /** Not ready yet; may be tried again. */
  | "starting"
  /** Path and query are longer than is allowed. */
  | "url-too-long"
  /** The headers of a request that has to wait are longer than may be kept. */
  | "headers-too-long"
  /** Asked for without a credential that lets one read. Details: `wasGiven`. */
  | "unauthorized"
  /** Asked for with a credential that lets one read other things. */
  | "forbidden"
  /** Whether a JWT is valid cannot be told now; may be tried again. */
  | "issuer-unreadable"
  /** No request waits for the result any more. */
  | "cancelled"
  /** An answer did not begin in time; may be tried again. */
  | "timed-out"
  | "internal";

/** Plain data that goes with an error; survives structured clone and JSON. */
export type ErrorDetails = Readonly<Record<string, string | number | boolean | null>>;

/** An error as plain data: what a worker returns instead of throwing (piscina loses class and fields). */
export interface ErrorData {
  readonly code: ErrorCode;
  readonly message: string;
  readonly details: ErrorDetails;
}

/** The one error class of zpublish. Messages say what was expected and what was received. */
export class ZpublishError extends Error {
  override readonly name = "ZpublishError";
  readonly code: ErrorCode;
  readonly details: ErrorDetails;

  constructor(
    code: ErrorCode,
    message: string,
    options: { readonly details?: ErrorDetails; readonly cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.details = options.details ?? {};
  }
}

/** The error as data; anything that is not a ZpublishError becomes `internal`. */
export function errorToData(error: unknown): ErrorData {
  if (error instanceof ZpublishError) {
    return { code: error.code, message: error.message, details: error.details };
  }
  return { code: "internal", message: error instanceof Error ? error.message : String(error), details: {} };
}

/** The opposite of {@link errorToData}. */
export function errorFromData(data: ErrorData): ZpublishError {
  return new ZpublishError(data.code, data.message, { details: data.details });
}

/** The message of anything thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** True if a system error means that a file or directory does not exist; false if it cannot be accessed. */
export function isMissing(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code;
  return code === "ENOENT" || code === "ENOTDIR";
}

/** Tells whether an error says that a file is damaged, half written or of another kind, and not that it could not be read. */
export function isDamage({ code }: Pick<ZpublishError, "code">): boolean {
  return code === "invalid-metadata" || code === "unsupported";
}
