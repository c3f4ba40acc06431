import type { IncomingHttpHeaders } from "node:http";

/** An object of an origin. */
export interface OriginObject {
  readonly bytes: Uint8Array;
  /** With quotes; undefined: the origin sends none, and ignores conditions on it. */
  readonly etag?: string | undefined;
  /** As it is sent; undefined: as for `etag`. */
  readonly lastModified?: string | undefined;
}

/** An answer before it is sent. */
export interface OriginAnswer {
  readonly status: number;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

const NOTHING = new Uint8Array();

/** Answers a request for an object as RFC 9110 says: conditions, then one range. */
export function serveObject(object: OriginObject, requested: IncomingHttpHeaders): OriginAnswer {
  const { bytes, etag, lastModified } = object;
  const headers = {
    "accept-ranges": "bytes",
    ...(etag === undefined ? {} : { etag }),
    ...(lastModified === undefined ? {} : { "last-modified": lastModified }),
  };
  const status = conditionStatus(object, requested);
  if (status !== undefined) return { status, headers, body: NOTHING };
  const type = { ...headers, "content-type": "application/octet-stream" };
  const range = rangeOf(object, requested);
  if (range === undefined) return { status: 200, headers: type, body: bytes };
  const [start, end] = range;
  if (start >= end) {
    return {
      status: 416,
      headers: { ...headers, "content-range": `bytes */${bytes.byteLength}` },
      body: NOTHING,
    };
  }
  return {
    status: 206,
    headers: { ...type, "content-range": `bytes ${start}-${end - 1}/${bytes.byteLength}` },
    body: bytes.subarray(start, end),
  };
}

function conditionStatus(
  { etag, lastModified }: OriginObject,
  requested: IncomingHttpHeaders,
): 304 | 412 | undefined {
  const ifMatch = requested["if-match"];
  if (etag !== undefined && ifMatch !== undefined) {
    if (ifMatch !== "*" && (etag.startsWith("W/") || !tagsOf(ifMatch).includes(etag))) return 412;
  } else if (isLater(lastModified, requested["if-unmodified-since"])) {
    return 412;
  }
  const ifNoneMatch = requested["if-none-match"];
  if (etag !== undefined && ifNoneMatch !== undefined) {
    const opaque = (tag: string) => tag.replace(/^W\//, "");
    return ifNoneMatch === "*" || tagsOf(ifNoneMatch).map(opaque).includes(opaque(etag)) ? 304 : undefined;
  }
  const since = requested["if-modified-since"];
  return since !== undefined && lastModified !== undefined && !isLater(lastModified, since) ? 304 : undefined;
}

function tagsOf(header: string): string[] {
  return header.split(",").map((tag) => tag.trim());
}

function isLater(time: string | undefined, than: string | undefined): boolean {
  return time !== undefined && than !== undefined && Date.parse(time) > Date.parse(than);
}

/** First byte and the one behind the last; undefined if the whole object is to be sent. */
function rangeOf(object: OriginObject, requested: IncomingHttpHeaders): [number, number] | undefined {
  const condition = requested["if-range"];
  if (condition !== undefined && condition !== object.etag && condition !== object.lastModified)
    return undefined;
  const [, first, last] = /^bytes=(\d*)-(\d*)$/.exec(requested.range ?? "") ?? [];
  if (first === undefined || last === undefined || first + last === "") return undefined;
  const length = object.bytes.byteLength;
  if (first === "") return [Math.max(0, length - Number(last)), last === "0" ? 0 : length];
  if (last !== "" && Number(last) < Number(first)) return undefined;
  return [Number(first), last === "" ? length : Math.min(length, Number(last) + 1)];
}
