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
