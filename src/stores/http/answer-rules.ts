import { createHash } from "node:crypto";
import { ZpublishError } from "../../errors.js";
import type { ObjectRange, ObjectVersion } from "../byte-store.js";
import type { AnswerHead } from "./exchange.js";

/** Longest object that is read whole for a part of it, if a server ignores ranges. */
export const MAX_WHOLE_BYTES = 64 * 2 ** 20;

/** Length of an object, and which of its bytes an answer has. */
export interface AnsweredBytes {
  /** Length of the body; undefined if the server does not announce it. */
  readonly byteLength: number | undefined;
  /** Undefined if the server does not announce it. */
  readonly objectByteLength: number | undefined;
  /** Part of the body to keep; undefined for all of it. */
  readonly kept?: { readonly offset: number; readonly byteLength: number };
}

/**
 * Finds out which bytes an answer of 200 or 206 has: those asked for, fewer from the same place on, or the whole object.
 * @throws ZpublishError `source-unreadable` if it has other bytes, or is a longer object than is read whole.
 */
export function answeredBytes(
  head: AnswerHead,
  range: ObjectRange | undefined,
  label: string,
): AnsweredBytes {
  assertStoredBytes(head, label);
  const announced = lengthOf(head.header("content-length"));
  if (head.status === 200) {
    if (announced === undefined && head.header("transfer-encoding") === undefined)
      throw unreadable(label, "expected a Content-Length or chunked encoding, received neither");
    const whole = { byteLength: announced, objectByteLength: announced };
    // The whole object is what was asked for, or the server does not know ranges.
    if (range === undefined || announced === undefined || isWhole(range, announced)) return whole;
    if (announced > MAX_WHOLE_BYTES) throw wholeError(label, range);
    return { ...whole, kept: keptOf(range, announced) };
  }
  const found = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(head.header("content-range") ?? "");
  if (range === undefined || found === null)
    throw unreadable(label, `expected ${describe(range)}, received a part without its Content-Range`);
  const [first, last, total] = found.slice(1).map(Number) as [number, number, number];
  const offset = "last" in range ? Math.max(0, total - range.last) : range.offset;
  const end = "last" in range ? total : Math.min(total, range.offset + range.byteLength);
  const isTail = "last" in range && last === end - 1 && first > offset;
  if ((first !== offset && !isTail) || last < first || last >= end)
    throw unreadable(label, `expected bytes ${offset}-${end - 1} of ${total}, received ${first}-${last}`);
  const answered = { byteLength: last - first + 1, objectByteLength: total };
  // The beginning of a suffix is missing: all of it is asked for by its place.
  return isTail ? { ...answered, kept: { offset: 0, byteLength: 0 } } : answered;
}

/** Returns the place of a range in a body that is the whole object. */
function keptOf(range: ObjectRange, total: number): { readonly offset: number; readonly byteLength: number } {
  return "last" in range ? { offset: total - range.last, byteLength: range.last } : range;
}

/** Returns the error for a server that ignores ranges of an object that is too long to be read whole. */
export function wholeError(label: string, range: ObjectRange): ZpublishError {
  const limit = `${MAX_WHOLE_BYTES / 2 ** 20} MiB`;
  return unreadable(
    label,
    `expected ${describe(range)} (206), received the whole object (200), above ${limit}`,
  );
}

/**
 * Asserts that an answer is about an object as it is stored.
 * @throws ZpublishError `source-unreadable` if it was compressed on its way, or is a page, such as one of a network that wants a
 * sign-in, or one that a web server sends for every path.
 */
export function assertStoredBytes(head: AnswerHead, label: string): void {
  const encoding = head.header("content-encoding");
  if (encoding !== undefined && encoding !== "identity")
    throw unreadable(label, `expected the stored bytes, received them with Content-Encoding ${encoding}`);
  if (/^(?:text\/html|application\/xhtml\+xml)\b/i.test(head.header("content-type") ?? ""))
    throw unreadable(label, "expected the stored bytes, received a page (HTML)");
}

function isWhole(range: ObjectRange, announced: number): boolean {
  return "last" in range ? announced <= range.last : range.offset === 0 && announced === range.byteLength;
}

function describe(range: ObjectRange | undefined): string {
  if (range === undefined) return "the whole object";
  if ("last" in range) return `the last ${range.last} bytes`;
  return `bytes ${range.offset}-${range.offset + range.byteLength - 1}`;
}

/** Returns the Range header of a part (RFC 9110, 14.1.2). */
export function rangeHeader(range: ObjectRange): string {
  if ("last" in range) return `bytes=-${range.last}`;
  return `bytes=${range.offset}-${range.offset + range.byteLength - 1}`;
}

/** Returns the version of an object from an answer: of its entity tag, else of its time and length, else of its length. */
export function versionOfAnswer(head: AnswerHead, byteLength: number | undefined): ObjectVersion {
  const etag = head.header("etag");
  const lastModified = head.header("last-modified");
  const length = (byteLength ?? 0).toString(36);
  // A weak tag may become strong when the object is a second old (Apache), and is the same version then.
  if (etag !== undefined)
    return { token: `e${digestOf(etag.replace(/^W\//, ""))}.${length}`, etag, lastModified };
  const time = lastModified === undefined ? Number.NaN : Date.parse(lastModified);
  if (Number.isNaN(time)) return { token: `n${length}` };
  return { token: `t${time.toString(36)}.${length}`, lastModified };
}

/** Returns the entity tag with which a request can be made conditional on a version; undefined if it has none. */
export function strongTag({ etag }: ObjectVersion): string | undefined {
  return etag?.startsWith('"') ? etag : undefined;
}

/** Tells whether another attempt may have another answer. */
export function isTransient(status: number): boolean {
  return status === 408 || status === 425 || status === 429 || (status >= 500 && status !== 501);
}

/** Parses a length in a header; undefined if there is none. */
export function lengthOf(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

/** Returns the error for an object that cannot be read, with its name. */
export function unreadable(label: string, problem: string, cause?: unknown): ZpublishError {
  return new ZpublishError("source-unreadable", `'${label}': ${problem}`, { details: { key: label }, cause });
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 20);
}
