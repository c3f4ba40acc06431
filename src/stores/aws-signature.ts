import { createHash, createHmac } from "node:crypto";
import { ZpublishError } from "../errors.js";

const ALGORITHM = "AWS4-HMAC-SHA256";

/** The hash of a body that is not signed: requests for objects and listings have none. */
const UNSIGNED_PAYLOAD = "UNSIGNED-PAYLOAD";

/** Keys that requests to S3 are signed with. */
export interface Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
  /** Time from which on the store refuses them; undefined if it always accepts them. */
  readonly expiration?: Date | undefined;
}

/** A request to sign. */
interface UnsignedRequest {
  readonly method: string;
  /** Its path is made by {@link encodeKey}, its query has `%20` for a space. */
  readonly url: URL;
  /** Headers of the request. Those that begin with `x-amz-` are signed. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly credentials: Credentials;
  readonly region: string;
  readonly now: Date;
}

/** A URL to sign. */
interface UnsignedUrl {
  /** As in {@link UnsignedRequest}. */
  readonly url: URL;
  readonly credentials: Credentials;
  readonly region: string;
  /** Seconds after `now` in which the URL can be fetched; S3 allows up to a week. */
  readonly seconds: number;
  readonly now: Date;
}

/**
 * Signs a request for an object or a listing (AWS Signature Version 4). Besides `Host` and `x-amz-*` it signs no header: proxies
 * may change others, such as `Accept-Encoding`.
 * @returns Headers to add, with names in lower case.
 */
export function signRequest(request: UnsignedRequest): Record<string, string> {
  const { credentials, url } = request;
  const { time, scope } = scopeOf(request);
  const added: Record<string, string> = { "x-amz-content-sha256": UNSIGNED_PAYLOAD, "x-amz-date": time };
  if (credentials.sessionToken !== undefined) added["x-amz-security-token"] = credentials.sessionToken;
  const signed = new Map([["host", url.host], ...Object.entries(added)]);
  for (const [name, value] of Object.entries(request.headers ?? {})) {
    if (/^x-amz-/i.test(name)) signed.set(name.toLowerCase(), value.trim().replace(/\s+/g, " "));
  }
  const canonical = canonicalRequest(request.method, url, canonicalQuery(url.searchParams), signed);
  const signature = sign(canonical, request, time, scope);
  const names = namesOf(signed);
  added.authorization = `${ALGORITHM} Credential=${credentials.accessKeyId}/${scope}, SignedHeaders=${names}, Signature=${signature}`;
  return added;
}

/** Signs a URL from which anyone can GET an object for some seconds. */
export function presignUrl(request: UnsignedUrl): string {
  const { credentials, url } = request;
  const { time, scope } = scopeOf(request);
  const signed = new Map([["host", url.host]]);
  const parameters = new URLSearchParams(url.searchParams);
  parameters.set("X-Amz-Algorithm", ALGORITHM);
  parameters.set("X-Amz-Credential", `${credentials.accessKeyId}/${scope}`);
  parameters.set("X-Amz-Date", time);
  parameters.set("X-Amz-Expires", String(request.seconds));
  parameters.set("X-Amz-SignedHeaders", namesOf(signed));
  if (credentials.sessionToken !== undefined) {
    parameters.set("X-Amz-Security-Token", credentials.sessionToken);
  }
  const query = canonicalQuery(parameters);
  const signature = sign(canonicalRequest("GET", url, query, signed), request, time, scope);
  return `${url.origin}${url.pathname}?${query}&X-Amz-Signature=${signature}`;
}

/**
 * Percent-encodes a key for the path of a URL: all but unreserved characters and slashes, as S3 does before it compares signatures.
 * @throws ZpublishError `unsupported` if URLs cannot express the key: they resolve `.` and `..`, even if these are encoded.
 */
export function encodeKey(key: string): string {
  const segments = key.split("/");
  if (segments.some((segment) => segment === "." || segment === "..") || !isWellFormed(key)) {
    throw new ZpublishError(
      "unsupported",
      `expected a key of well-formed text without the segments . and .., received ${JSON.stringify(key)}`,
    );
  }
  return segments.map(encodeStrictly).join("/");
}

/** Percent-encodes all but unreserved characters (RFC 3986), in names and values of queries, too. */
export function encodeStrictly(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** False if there is half of a surrogate pair, which UTF-8 cannot express. */
function isWellFormed(text: string): boolean {
  return !/\p{Surrogate}/u.test(text);
}

/** The time of a signature as `20260102T030405Z`, and the day, region and service that its key is for. */
function scopeOf({ now, region }: { readonly now: Date; readonly region: string }): {
  readonly time: string;
  readonly scope: string;
} {
  const time = now.toISOString().replace(/[-:]|\.\d+/g, "");
  return { time, scope: `${time.slice(0, 8)}/${region}/s3/aws4_request` };
}

function canonicalQuery(parameters: URLSearchParams): string {
  // Sorted encoded: the order of characters beyond ASCII is that of their bytes then.
  return [...parameters]
    .map(([name, value]) => [encodeStrictly(name), encodeStrictly(value)] as const)
    .sort(([a, x], [b, y]) => compare(a, b) || compare(x, y))
    .map(([name, value]) => `${name}=${value}`)
    .join("&");
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function namesOf(headers: ReadonlyMap<string, string>): string {
  return [...headers.keys()].sort(compare).join(";");
}

function canonicalRequest(
  method: string,
  url: URL,
  query: string,
  headers: ReadonlyMap<string, string>,
): string {
  const lines = [...headers].sort(([a], [b]) => compare(a, b)).map(([name, value]) => `${name}:${value}\n`);
  return [method, url.pathname, query, lines.join(""), namesOf(headers), UNSIGNED_PAYLOAD].join("\n");
}

function sign(
  canonical: string,
  { credentials }: { readonly credentials: Credentials },
  time: string,
  scope: string,
): string {
  let key: string | Buffer = `AWS4${credentials.secretAccessKey}`;
  for (const part of scope.split("/")) key = createHmac("sha256", key).update(part).digest();
  const hash = createHash("sha256").update(canonical).digest("hex");
  return createHmac("sha256", key).update([ALGORITHM, time, scope, hash].join("\n")).digest("hex");
}
