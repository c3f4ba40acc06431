import { queryToken } from "../http/access/authorize.js";
import type { RouteRequest } from "../http/reply.js";
import { escapeHtml } from "./markup.js";

/** Parts of a page that differ between requests for it. */
export interface PagePlace {
  /** Absolute URL of the service as the client sees it, without a slash at its end: `https://data.example/prefix`. */
  readonly serviceUrl: string;
  /** Relative link from the page to its dataset's directory `/datasets/{id}/`: `./`, `../`, `../../`. */
  readonly up: string;
  /**
   * Empty, or the query of the page's links, `?token=…`, if the page was asked for with a token in its query: a browser sends that
   * token with no other request by itself.
   */
  readonly tokenQuery: string;
}

/** Placeholder of {@link PagePlace.serviceUrl} in a page that is not placed yet. Escaping removes it from all other text. */
export const SERVICE_URL = "\ufdd0";
/** Placeholder of {@link PagePlace.up}. */
export const UP = "\ufdd1";
/** Placeholder of {@link PagePlace.tokenQuery}, at the end of links that have no query otherwise. */
export const TOKEN_QUERY = "\ufdd2";

/**
 * Completes a page, which is made once, for one request.
 * @param html Page with {@link SERVICE_URL}, {@link UP} and {@link TOKEN_QUERY}.
 */
export function placePage(html: string, place: PagePlace): string {
  return html
    .replaceAll(SERVICE_URL, escapeHtml(place.serviceUrl))
    .replaceAll(UP, escapeHtml(place.up))
    .replaceAll(TOKEN_QUERY, escapeHtml(place.tokenQuery));
}

/** Returns the place of a page below `/datasets/{dataset_id}/`. */
export function placeOf({
  rawPath,
  serviceUrl,
  query,
}: Pick<RouteRequest, "rawPath" | "serviceUrl" | "query">): PagePlace {
  const token = queryToken(query);
  const tokenQuery = token === undefined ? "" : `?token=${encodeURIComponent(token)}`;
  return { serviceUrl, up: upOf(rawPath), tokenQuery };
}

/** Returns a `../` per slash behind `/datasets/{id}/`. As in browsers, doubled slashes count and encoded ones do not. */
function upOf(rawPath: string): string {
  let slashes = 0;
  for (let index = 0; index < rawPath.length; index++) if (rawPath.charCodeAt(index) === 0x2f) slashes++;
  return slashes <= 3 ? "./" : "../".repeat(slashes - 3);
}
