import type { ContentCoding } from "../document.js";

/** Results by header value: clients send few different ones. */
const remembered = new Map<string, ContentCoding | "identity">();
const MAX_REMEMBERED = 200;

const MEMBER = /^([!#$%&'*+\-.^_`|~0-9a-z]+)(?:[ \t]*;[ \t]*q[ \t]*=[ \t]*([01](?:\.\d{0,3})?))?$/;

/**
 * Chooses the content coding of an answer by an `Accept-Encoding` header: the one with the greatest weight, brotli before gzip
 * before none. Without the header, or if it excludes all codings (`identity;q=0`), it is `identity`: RFC 9110 §12.5.3 permits that,
 * and it serves a client better than a 406.
 */
export function negotiateCoding(acceptEncoding: string | undefined): ContentCoding | "identity" {
  if (acceptEncoding === undefined) return "identity";
  const known = remembered.get(acceptEncoding);
  if (known !== undefined) return known;
  const coding = chooseCoding(parseWeights(acceptEncoding));
  if (acceptEncoding.length <= 200) {
    if (remembered.size >= MAX_REMEMBERED) remembered.clear();
    remembered.set(acceptEncoding, coding);
  }
  return coding;
}

/** Whether an `Accept-Encoding` header allows gzip. */
export function acceptsGzip(acceptEncoding: string | undefined): boolean {
  if (acceptEncoding === undefined) return false;
  return gzipWeight(parseWeights(acceptEncoding)) > 0;
}

function gzipWeight(weights: ReadonlyMap<string, number>): number {
  return weights.get("gzip") ?? weights.get("x-gzip") ?? weights.get("*") ?? 0;
}

function chooseCoding(weights: ReadonlyMap<string, number>): ContentCoding | "identity" {
  const others = weights.get("*") ?? 0;
  const br = weights.get("br") ?? others;
  const gzip = gzipWeight(weights);
  // Acceptable unless excluded, but preferred to named codings only if it is named too.
  const identity = weights.get("identity") ?? 0;
  if (br > 0 && br >= gzip && br >= identity) return "br";
  if (gzip > 0 && gzip >= identity) return "gzip";
  return "identity";
}

function parseWeights(header: string): Map<string, number> {
  const weights = new Map<string, number>();
  for (const member of header.split(",")) {
    const match = MEMBER.exec(member.trim().toLowerCase());
    if (match?.[1] !== undefined)
      weights.set(match[1], match[2] === undefined ? 1 : Math.min(1, Number(match[2])));
  }
  return weights;
}
