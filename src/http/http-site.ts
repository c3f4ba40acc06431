import { ZpublishError } from "../errors.js";
import { createRecentMap } from "../recent-map.js";
import type { Answering } from "./answer.js";
import { ASK_EACH_TIME } from "./ask-each-time.js";
import { type Cors, createCors } from "./cors.js";
import { isHeaderValue } from "./header-field.js";
import type { Route } from "./route.js";
import { createRouter } from "./router.js";
import { createSeenPaths } from "./seen-paths.js";
import { createSiteEdge, type EdgeOptions, type SiteEdge } from "./site-edge.js";

/** What a server has to offer, and how it says it: replaced as a whole, while requests in flight keep theirs. */
export interface HttpSite extends EdgeOptions {
  readonly routes: readonly Route[];
  /** Prefix of all paths: empty (the default), or begins with a slash and ends without one. */
  readonly rootPath?: string;
  /** `*` (the default), origins separated by commas, or empty: other origins may read nothing. */
  readonly corsOrigin?: string;
  /** `Cache-Control` of replies that say nothing of it. Default: `public, max-age=0, must-revalidate`. */
  readonly cacheControl?: string;
}

/** A site, checked and made ready to answer. */
export interface PreparedSite {
  readonly answering: Answering;
  readonly cors: Cors;
  readonly cacheControl: string;
  readonly edge: SiteEdge;
}

/** Replies that are kept for later requests of their paths: two to four kilobytes each. */
const MAX_KEPT_REPLIES = 4_096;
/** Fewer than are kept: whoever reads more paths than this one after the other asks for none of them again soon. */
const SEEN_PATHS = 2_048;

/** @throws ZpublishError `invalid-config` where routes conflict or an option is no good. */
export function prepareSite(site: HttpSite): PreparedSite {
  const { rootPath = "", cacheControl = ASK_EACH_TIME } = site;
  if (rootPath !== "" && !/^(?:\/[A-Za-z0-9\-._~]+)+$/.test(rootPath)) {
    throw new ZpublishError(
      "invalid-config",
      `Root path: expected '' or one like '/data', received '${rootPath}'`,
    );
  }
  if (!isHeaderValue(cacheControl)) {
    const received = JSON.stringify(cacheControl);
    throw new ZpublishError(
      "invalid-config",
      `Cache-Control: expected printable ASCII, received ${received}`,
    );
  }
  const cors = createCors(site.corsOrigin ?? "*");
  return {
    answering: {
      router: createRouter(site.routes),
      rootPath,
      kept: createRecentMap(MAX_KEPT_REPLIES),
      seen: createSeenPaths(SEEN_PATHS),
    },
    cors,
    cacheControl,
    edge: createSiteEdge(site, cors.variesByOrigin),
  };
}
