import { ZpublishError } from "../errors.js";

/** Names and values of headers. */
export type HeaderLines = readonly (readonly [name: string, value: string])[];

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const VALUE = /^[\t\x20-\x7e]*$/;

/** Whether a text is valid as the value of a header: printable ASCII. */
export function isHeaderValue(value: string): boolean {
  return VALUE.test(value);
}

/**
 * Returns a header line with the line break before it, to be appended to others.
 * @throws ZpublishError `internal` if name or value contains characters that would break the answer: uWebSockets.js does not
 * check them.
 */
export function headerField(name: string, value: string): string {
  if (!TOKEN.test(name) || !isHeaderValue(value)) {
    throw new ZpublishError(
      "internal",
      `Header ${JSON.stringify(name)} cannot be sent: expected printable ASCII, received ${JSON.stringify(value)}`,
    );
  }
  return `\r\n${name}: ${value}`;
}

/** Joins what one answer depends on with what all answers of the app depend on, as a `Vary` header lists it. */
export function joinVary(own: string, ofApp: string): string {
  return own === "" || ofApp === "" ? own + ofApp : `${own}, ${ofApp}`;
}

/** Content codings of the compressed forms of a document. */
export type ContentCoding = "br" | "gzip";

/** Immutable bytes to be sent often, with their ETag and, once a client accepts them, their compressed forms. */
export interface Document {
  readonly contentType: string;
  readonly bytes: Uint8Array;
  /** Strong, quoted, computed from the content: the same on every instance. */
  readonly etag: string;
  /**
   * Returns the compressed form, made at the first call and kept; undefined if compression does not pay (up to 1 KiB, or no
   * gain). Never rejects.
   */
  encoded(coding: ContentCoding): Promise<Uint8Array | undefined>;
  /** Returns the compressed form if it is made already; undefined if compression does not pay, null if it is not made yet. */
  encodedNow(coding: ContentCoding): Uint8Array | undefined | null;
}

/** Methods that are answered, as `Allow` lists them. */
export const ALLOWED_METHODS = "GET, HEAD, OPTIONS";
const ALLOWED_HEADERS = "Range, If-None-Match, If-Match, Authorization";
const EXPOSED_HEADERS =
  "Content-Range, Content-Length, Content-Encoding, ETag, Accept-Ranges, Link, Server-Timing, X-Request-Id";
const PREFLIGHT_MAX_AGE_SECONDS = 86_400;

/** Header lines that let pages of other origins read the answers. */
export interface Cors {
  /** Returns the lines of every answer to a request with this `Origin` header, each with its line break before it. */
  fields(origin: string | undefined): string;
  /** Lines of the answer to a preflight request, besides those of every answer. */
  readonly preflight: string;
  /** Whether answers depend on the request's origin, and `Vary` has to name it. */
  readonly variesByOrigin: boolean;
}

/**
 * Prepares the header lines, once per app.
 * @param corsOrigin `*`, one origin, several separated by commas (each is answered with itself), or empty if no other origin may read.
 * @throws ZpublishError `invalid-config`
 */
export function createCors(corsOrigin: string): Cors {
  const origins = corsOrigin
    .split(",")
    .map((origin) => origin.trim())
    .filter((origin) => origin !== "");
  for (const origin of origins) checkOrigin(origin, origins.length);
  const exposed =
    headerField("Access-Control-Expose-Headers", EXPOSED_HEADERS) +
    headerField("Cross-Origin-Resource-Policy", "cross-origin");
  const allowing = new Map(
    origins.map((origin) => [origin, headerField("Access-Control-Allow-Origin", origin) + exposed]),
  );
  const only = origins.length <= 1 ? (allowing.get(origins[0] ?? "") ?? exposed) : undefined;
  return {
    fields: (origin) => only ?? allowing.get(origin ?? "") ?? exposed,
    preflight:
      headerField("Access-Control-Allow-Methods", ALLOWED_METHODS) +
      headerField("Access-Control-Allow-Headers", ALLOWED_HEADERS) +
      headerField("Access-Control-Max-Age", String(PREFLIGHT_MAX_AGE_SECONDS)),
    variesByOrigin: origins.length > 0 && origins[0] !== "*",
  };
}

function checkOrigin(origin: string, count: number): void {
  const valid =
    origin === "*" ? count === 1 : origin === "null" || /^[a-z][a-z0-9+.-]*:\/\/[^/\s,]+$/i.test(origin);
  if (!valid) {
    throw new ZpublishError(
      "invalid-config",
      `CORS origin: expected '*' or origins such as 'https://example.org' separated by commas, received '${origin}'`,
    );
  }
}

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
