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

/** The place of a page below `/datasets/{dataset_id}/`. */
export function placeOf({ rawPath, serviceUrl }: Pick<RouteRequest, "rawPath" | "serviceUrl">): PagePlace {
  return { serviceUrl, up: upOf(rawPath) };
}

/**
 * One `../` per slash behind `/datasets/{id}/`, as browsers resolve links: doubled slashes count, encoded ones do not.
 */
function upOf(rawPath: string): string {
  let slashes = 0;
  for (let index = 0; index < rawPath.length; index++) if (rawPath.charCodeAt(index) === 0x2f) slashes++;
  return slashes <= 3 ? "./" : "../".repeat(slashes - 3);
}
