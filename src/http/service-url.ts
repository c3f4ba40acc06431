/** What a request says of where the service is. */
export interface ServicePlace {
  /** `http` or `https`, as it came to this server. */
  readonly scheme: string;
  /** Empty, or begins with a slash and ends without one. */
  readonly rootPath: string;
  /** Whether what a proxy says of it counts. */
  readonly isTrusted: boolean;
  header(name: string): string | undefined;
}

const HOST = /^(?:([A-Za-z0-9._-]{1,253})|\[([0-9A-Fa-f:.]{2,45})\])(?::([0-9]{1,5}))?$/;
const PREFIX = /^(?:\/[A-Za-z0-9._~-]{1,128}){0,16}\/?$/;
const DOT_SEGMENT = /\/\.\.?(?:\/|$)/;
const DEFAULT_PORTS: Readonly<Record<string, string>> = { http: "80", https: "443" };

/**
 * The absolute URL of the service as its client sees it, without a slash at its end: `https://data.example/prefix`. Of
 * headers that do not look like what they should be, none counts. Of several forwarded values the first is the client's.
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
 * The path under which a trusted proxy publishes the service, in place of its own root path: empty, or with a slash before
 * and none behind it. Undefined where none says so.
 */
export function forwardedPrefix({ isTrusted, header }: Omit<ServicePlace, "scheme">): string | undefined {
  const prefix = isTrusted ? firstOf(header("x-forwarded-prefix")) : undefined;
  if (prefix === undefined || !PREFIX.test(prefix) || DOT_SEGMENT.test(prefix)) return undefined;
  return prefix.replace(/\/$/, "");
}

/** Without the port that the scheme has anyhow. */
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
