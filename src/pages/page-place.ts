import { queryToken } from "../http/access/authorize.js";
import type { RouteRequest } from "../http/reply.js";
import { escapeHtml, PAGE_SCRIPT, trustedMarkup } from "./page.js";

/** Parts of a page that differ between requests for it. */
export interface PagePlace {
  /** Absolute URL of the service as the client sees it, without a slash at its end: `https://data.example/prefix`. */
  readonly serviceUrl: string;
  /** Relative link from the page to the root of the service: `./`, `../`, `../../`. */
  readonly root: string;
  /** Path of the page's dataset, encoded, with a slash at both ends: `/datasets/{id}/`, or `/` if it is published alone. */
  readonly datasetPath: string;
  /** Relative link from the page to {@link datasetPath}: `./`, `../`, `../../`. */
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
/** Placeholder of the token after a link's own query: `&token=…`. */
export const AND_TOKEN = "\ufdd5";
/** Placeholder of a form's field with the token. */
export const TOKEN_FIELD = "\ufdd6";
/** Placeholder of {@link PagePlace.root}. */
export const ROOT = "\ufdd3";
/** Placeholder of the absolute URL of the page's dataset, with a slash at its end. */
export const DATASET_URL = "\ufdd4";

/** Placeholder of the absolute URL of the Zarr v2 store of the page's dataset, which ends in `.zarr` unless it is published alone. */
export const STORE_URL = "\ufdd7";

/** Link of a page to {@link PAGE_SCRIPT}. */
export const PAGE_SCRIPT_LINK = trustedMarkup(`${ROOT}assets/pages/${PAGE_SCRIPT.name}${TOKEN_QUERY}`);

/** Completes a page, which is made once, for one request. */
export function placePage(html: string, place: PagePlace): string {
  return html
    .replaceAll(SERVICE_URL, escapeHtml(place.serviceUrl))
    .replaceAll(STORE_URL, escapeHtml(place.serviceUrl + storePath(place)))
    .replaceAll(DATASET_URL, escapeHtml(place.serviceUrl + place.datasetPath))
    .replaceAll(ROOT, escapeHtml(place.root))
    .replaceAll(UP, escapeHtml(place.up))
    .replaceAll(TOKEN_QUERY, escapeHtml(place.tokenQuery))
    .replaceAll(AND_TOKEN, escapeHtml(place.tokenQuery.replace("?", "&")))
    .replaceAll(TOKEN_FIELD, tokenField(place.tokenQuery));
}

function storePath({ datasetPath }: PagePlace): string {
  return datasetPath === "/" ? "/zarr" : datasetPath.replace(/\/$/, ".zarr");
}

function tokenField(query: string): string {
  const token = queryToken(query.slice(1));
  return token === undefined ? "" : `<input type="hidden" name="token" value="${escapeHtml(token)}">`;
}

/** Tells if a page depends on the address by which clients reach the service. */
export function quotesAddress(html: string): boolean {
  return [SERVICE_URL, DATASET_URL, STORE_URL].some((placeholder) => html.includes(placeholder));
}

/** Returns the place of a page. A page of the service has the dataset path `/`. */
export function placeOf(
  { rawPath, serviceUrl, query }: Pick<RouteRequest, "rawPath" | "serviceUrl" | "query">,
  datasetPath = "/",
): PagePlace {
  const token = queryToken(query);
  const tokenQuery = token === undefined ? "" : `?token=${encodeURIComponent(token)}`;
  const depth = slashesIn(rawPath);
  const up = linkUp(depth - slashesIn(datasetPath));
  return { serviceUrl, root: linkUp(depth - 1), datasetPath, up, tokenQuery };
}

function linkUp(steps: number): string {
  return "../".repeat(Math.max(0, steps)) || "./";
}

/** Counts slashes. As in browsers, doubled ones count and encoded ones do not. */
function slashesIn(path: string): number {
  return path.split("/").length - 1;
}

/** Remaining content that a page may have. */
export type PageBudget = ReturnType<typeof createPageBudget>;

/** Creates the budget of one page, so that a browser can show a tree of any size. It counts down while the page is made. */
export function createPageBudget() {
  return {
    /** Variables with details, in folds; further ones are one line each. */
    detailedVariables: 1_000,
    /** Variables; further ones are only counted. */
    variables: 5_000,
    /** Pictures. Each is fetched when it comes into view, and made by a worker unless it is cached. */
    pictures: 200,
    /** Variables with code that reads them. */
    codes: 300,
    /** Nested groups; further ones are links. */
    groups: 1_000,
    /** Links to further groups. */
    groupLinks: 5_000,
    /** Characters of attribute values, and of a single one. Longer values are whole in the JSON documents. */
    attributeChars: 4_000_000,
    attributeValueChars: 200_000,
  };
}
