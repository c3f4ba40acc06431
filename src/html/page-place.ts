import type { RouteRequest } from "../http/reply.js";
import { escapeHtml } from "./markup.js";

/** Where a page is seen from: what differs between requests for the same page. */
export interface PagePlace {
  /** Absolute URL of the service as the client sees it, without a slash at its end: `https://data.example/prefix`. */
  readonly serviceUrl: string;
  /** Relative link from the page to its dataset's directory `/datasets/{id}/`: `./`, `../`, `../../`. */
  readonly up: string;
}

/** Stands for {@link PagePlace.serviceUrl} in a page that is not placed yet; escaping keeps it out of all other text. */
export const SERVICE_URL = "\ufdd0";
/** Stands for {@link PagePlace.up} in the same way. */
export const UP = "\ufdd1";

/**
 * A page made once, placed for one request.
 * @param html With {@link SERVICE_URL} and {@link UP} in it.
 */
export function placePage(html: string, place: PagePlace): string {
  return html.replaceAll(SERVICE_URL, escapeHtml(place.serviceUrl)).replaceAll(UP, escapeHtml(place.up));
}

/**
 * The place of a page below `/datasets/{dataset_id}/`.
 * @param rootPath Path prefix of the service, `""` or `/prefix`; a proxy's `X-Forwarded-Prefix` wins over it.
 */
export function placeOf(request: Pick<RouteRequest, "rawPath" | "header">, rootPath: string): PagePlace {
  return { serviceUrl: serviceUrlOf(request, rootPath), up: upOf(request.rawPath) };
}

/**
 * One `../` per slash behind `/datasets/{id}/`, as browsers resolve links: doubled slashes count, encoded ones do not.
 */
function upOf(rawPath: string): string {
  let slashes = 0;
  for (let index = 0; index < rawPath.length; index++) if (rawPath.charCodeAt(index) === 0x2f) slashes++;
  return slashes <= 3 ? "./" : "../".repeat(slashes - 3);
}

const HOST = /^(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?$/;
const PREFIX = /^(?:\/[A-Za-z0-9._~-]+){0,16}\/?$/;

/**
 * Only shown to people as an address to copy, never followed: headers that do not look like a host are ignored.
 * The first of several forwarded values is the client's.
 */
function serviceUrlOf(request: Pick<RouteRequest, "header">, rootPath: string): string {
  const host = firstMatching(HOST, request.header("x-forwarded-host"), request.header("host")) ?? "localhost";
  const scheme = firstMatching(/^https?$/, request.header("x-forwarded-proto")) ?? "http";
  const prefix = firstMatching(PREFIX, request.header("x-forwarded-prefix")) ?? rootPath;
  return `${scheme}://${host}${prefix.replace(/\/$/, "")}`;
}

function firstMatching(pattern: RegExp, ...values: readonly (string | undefined)[]): string | undefined {
  for (const value of values) {
    const first = value?.split(",", 1)[0]?.trim();
    if (first !== undefined && pattern.test(first)) return first;
  }
  return undefined;
}
