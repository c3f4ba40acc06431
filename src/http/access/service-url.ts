/** What a request says about the URL of the service. */
export interface ServicePlace {
  /** `http` or `https`, as the request came to this server. */
  readonly scheme: string;
  /** Empty, or begins with a slash and ends without one. */
  readonly rootPath: string;
  /** Whether a trusted proxy sent the request, so that its headers are believed. */
  readonly isTrusted: boolean;
  header(name: string): string | undefined;
}

const HOST = /^(?:([A-Za-z0-9._-]{1,253})|\[([0-9A-Fa-f:.]{2,45})\])(?::([0-9]{1,5}))?$/;
const PREFIX = /^(?:\/[A-Za-z0-9._~-]{1,128}){0,16}\/?$/;
const DOT_SEGMENT = /\/\.\.?(?:\/|$)/;
const DEFAULT_PORTS: Readonly<Record<string, string>> = { http: "80", https: "443" };

/**
 * Returns the absolute URL of the service as the client sees it, without a slash at its end: `https://data.example/prefix`.
 * Malformed headers are ignored. Of several forwarded values the first is the client's.
 */
export function serviceUrlOf(place: ServicePlace): string {
  const { isTrusted, header } = place;
  const forwarded = isTrusted ? firstOf(header("x-forwarded-proto"))?.toLowerCase() : undefined;
  const scheme = forwarded === "http" || forwarded === "https" ? forwarded : place.scheme;
  const host =
    (isTrusted ? hostOf(header("x-forwarded-host"), scheme) : undefined) ??
    hostOf(header("host"), scheme) ??
    "localhost";
  return `${scheme}://${host}${forwardedPrefix(place) ?? place.rootPath}`;
}

/**
 * Returns the path under which a trusted proxy publishes the service, in place of its own root path: empty, or with a slash before
 * it and none behind it. Undefined if no proxy names one.
 */
export function forwardedPrefix({ isTrusted, header }: Omit<ServicePlace, "scheme">): string | undefined {
  const prefix = isTrusted ? firstOf(header("x-forwarded-prefix")) : undefined;
  if (prefix === undefined || !PREFIX.test(prefix) || DOT_SEGMENT.test(prefix)) return undefined;
  return prefix.replace(/\/$/, "");
}

/** Returns host and port, without the default port of the scheme; undefined if the header is malformed. */
function hostOf(value: string | undefined, scheme: string): string | undefined {
  const match = HOST.exec(firstOf(value) ?? "");
  if (match === null) return undefined;
  const [, name, address, port] = match;
  const host = name ?? `[${address}]`;
  if (port === undefined) return host;
  const number = Number(port);
  if (number < 1 || number > 65_535) return undefined;
  return String(number) === DEFAULT_PORTS[scheme] ? host : `${host}:${number}`;
}

function firstOf(value: string | undefined): string | undefined {
  return value?.split(",", 1)[0]?.trim();
}

/**
 * Returns the location of a path with a slash behind it: the same path on the same host, in printable ASCII.
 * @param path As it came, root path included; `query` without its question mark.
 */
export function locationWithSlash(path: string, query: string): string {
  const target = query === "" ? `${path}/` : `${path}/?${query}`;
  // `//host/…` and `/\host/…` would lead to another host: browsers take a backslash for a slash.
  const local = target.startsWith("//") ? `/.${target}` : target;
  return local.replace(/[^\x21-\x7e]+|[\\"<>^`{|}#]/g, (unsafe) => encodeURIComponent(unsafe));
}
