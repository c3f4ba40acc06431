import { ZpublishError } from "../../errors.js";

/** Visible ASCII: valid as the value of a header and in a log line. */
const REQUEST_ID = /^[\x21-\x7e]{1,128}$/;

/** Headers that contain secrets; ids are written to logs and answers. */
const SECRET = new Set(["authorization", "cookie", "proxy-authorization"]);

/** Whether an id from a balancer or client can be used: at most 128 visible ASCII characters. */
export function isRequestId(text: string): boolean {
  return REQUEST_ID.test(text);
}

/** Checks the name of the header of request ids. @throws ZpublishError `invalid-config` if that header contains secrets. */
export function checkRequestIdHeader(name: string): void {
  if (!SECRET.has(name)) return;
  throw new ZpublishError(
    "invalid-config",
    `Header of request ids: expected one such as 'x-request-id', received '${name}', which is never logged`,
  );
}

/** Position of a request in a distributed trace. */
export interface TraceParent {
  /** 32 hexadecimal digits, lower case. */
  readonly traceId: string;
  /** Id of the caller's span, 16 hexadecimal digits. */
  readonly parentId: string;
}

/** Version, trace id, parent id, flags, and what later versions may put behind them. */
const FORMAT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const MAX_LENGTH = 512;

/**
 * Parses a `traceparent` header (W3C Trace Context, level 1, §3.2): version 00 strictly, later ones as far as they agree with it.
 * @returns undefined if the header is not valid, and so is to be ignored.
 */
export function parseTraceParent(header: string): TraceParent | undefined {
  if (header.length > MAX_LENGTH) return undefined;
  const match = FORMAT.exec(header);
  if (match === null) return undefined;
  const [, version = "", traceId = "", parentId = "", , rest] = match;
  if (version === "ff" || (version === "00" && rest !== undefined)) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(parentId)) return undefined;
  return { traceId, parentId };
}
