import { allowsRange } from "./conditional.js";

/** What a `Range` header asks for: bytes `first` to `last` inclusive, or the last `suffix` bytes. */
export type RangeRequest = { readonly first: number; readonly last: number } | { readonly suffix: number };

/** Part of a body. */
export interface ByteRange {
  readonly start: number;
  readonly byteLength: number;
}

// Any number of digits: some clients write 2^64 - 1 for "to the end". Numbers too great to be exact are past any end.
const SINGLE_RANGE = /^bytes[ \t]*=[ \t,]*(\d*)-(\d*)[ \t,]*$/i;

/**
 * Parses a `Range` header; undefined if it is to be ignored and the whole is sent (RFC 9110 §14.2): an unknown unit,
 * several ranges, nonsense.
 */
export function parseRange(header: string): RangeRequest | undefined {
  const match = SINGLE_RANGE.exec(header);
  if (match === null) return undefined;
  const [, first = "", last = ""] = match;
  if (first === "") return last === "" ? undefined : { suffix: Number(last) };
  const range = { first: Number(first), last: last === "" ? Number.POSITIVE_INFINITY : Number(last) };
  return range.first > range.last ? undefined : range;
}

/** Returns the range that a request asks for of content with this ETag; undefined if the whole is to be sent. */
export function requestedRange(
  request: { readonly method: string; header(name: string): string | undefined },
  etag: string,
): RangeRequest | undefined {
  const header = request.method === "GET" ? request.header("range") : undefined;
  if (header === undefined) return undefined;
  const ifRange = request.header("if-range");
  return ifRange === undefined || allowsRange(ifRange, etag) ? parseRange(header) : undefined;
}

/** Returns the requested part of a body of `totalBytes`, clamped to its end; undefined if it is empty, which is answered 416. */
export function resolveRange(range: RangeRequest, totalBytes: number): ByteRange | undefined {
  if ("suffix" in range) {
    const byteLength = Math.min(range.suffix, totalBytes);
    return byteLength === 0 ? undefined : { start: totalBytes - byteLength, byteLength };
  }
  if (range.first >= totalBytes) return undefined;
  return { start: range.first, byteLength: Math.min(range.last, totalBytes - 1) - range.first + 1 };
}
