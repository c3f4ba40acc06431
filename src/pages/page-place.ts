import type { RouteRequest } from "../http/reply.js";
import { escapeHtml } from "./markup.js";

/** Parts of a page that differ between requests for it. */
export interface PagePlace {
  /** Absolute URL of the service as the client sees it, without a slash at its end: `https://data.example/prefix`. */
  readonly serviceUrl: string;
  /** Relative link from the page to its dataset's directory `/datasets/{id}/`: `./`, `../`, `../../`. */
  readonly up: string;
}

/** Placeholder of {@link PagePlace.serviceUrl} in a page that is not placed yet. Escaping removes it from all other text. */
export const SERVICE_URL = "\ufdd0";
/** Placeholder of {@link PagePlace.up}. */
export const UP = "\ufdd1";

/**
 * Completes a page, which is made once, for one request.
 * @param html Page with {@link SERVICE_URL} and {@link UP}.
 */
export function placePage(html: string, place: PagePlace): string {
  return html.replaceAll(SERVICE_URL, escapeHtml(place.serviceUrl)).replaceAll(UP, escapeHtml(place.up));
}

/** Returns the place of a page below `/datasets/{dataset_id}/`. */
export function placeOf({ rawPath, serviceUrl }: Pick<RouteRequest, "rawPath" | "serviceUrl">): PagePlace {
  return { serviceUrl, up: upOf(rawPath) };
}

/** Returns a `../` per slash behind `/datasets/{id}/`. As in browsers, doubled slashes count and encoded ones do not. */
function upOf(rawPath: string): string {
  let slashes = 0;
  for (let index = 0; index < rawPath.length; index++) if (rawPath.charCodeAt(index) === 0x2f) slashes++;
  return slashes <= 3 ? "./" : "../".repeat(slashes - 3);
}
