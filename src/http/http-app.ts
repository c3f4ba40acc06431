import { createRecentMap } from "../collections/recent-map.js";
import { ZpublishError } from "../errors.js";
import {
  type AccessOptions,
  type AccessRules,
  ASK_EACH_TIME,
  createAccessRules,
} from "./access/access-rules.js";
import type { Routing } from "./handle-request.js";
import { type Cors, createCors } from "./headers/cors.js";
import { isHeaderValue } from "./headers/header-field.js";
import type { Route } from "./routing/route.js";
import { createRouter } from "./routing/router.js";

/** What a server publishes, and how: replaced as a whole at a reload; requests in flight keep the one they began with. */
export interface HttpApp extends AccessOptions {
  readonly routes: readonly Route[];
  /** Prefix of all paths: empty (the default), or begins with a slash and ends without one. */
  readonly rootPath?: string;
  /** `*` (the default), origins separated by commas, or empty: other origins may read nothing. */
  readonly corsOrigin?: string;
  /** `Cache-Control` of replies without one. Default: `public, max-age=0, must-revalidate`. */
  readonly cacheControl?: string;
}

/** An app, checked and ready to answer. */
export interface PreparedApp {
  readonly routing: Routing;
  readonly cors: Cors;
  readonly cacheControl: string;
  readonly access: AccessRules;
}

/** Recent paths whose route is remembered: some hundred bytes each. */
const MAX_REMEMBERED_PATHS = 4_096;

/** @throws ZpublishError `invalid-config` if routes conflict, or one of them or an option is invalid. */
export function prepareApp(app: HttpApp): PreparedApp {
  const { rootPath = "", cacheControl = ASK_EACH_TIME } = app;
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
  for (const { path, priority } of app.routes) {
    // TypeScript does not check the routes of plugins.
    if (priority === "page" || priority === "chunk") continue;
    const received = JSON.stringify(priority);
    throw new ZpublishError(
      "invalid-config",
      `Route '${path}': expected priority 'page' or 'chunk', received ${received}`,
    );
  }
  const cors = createCors(app.corsOrigin ?? "*");
  return {
    routing: {
      router: createRouter(app.routes),
      rootPath,
      matches: createRecentMap(MAX_REMEMBERED_PATHS),
    },
    cors,
    cacheControl,
    access: createAccessRules(app, cors.variesByOrigin),
  };
}
