import { configError } from "../config/problem.js";
import type { Route } from "../http/router.js";
import type { Plugin } from "../plugins/plugin.js";
import type { ServerConfig } from "./server-config.js";

/** Beginning of the templates of a dataset's routes. */
const DATASET = "/datasets/{dataset_id}";
/** Names in an error message; of more, there is a count. */
const MAX_NAMED = 5;
/** Route that lists datasets; clients of the list would look for them below it. */
const LIST = "/datasets";

/**
 * Returns the routes of a server that publishes one dataset alone: those below `/datasets/{dataset_id}` are at the root, and their
 * handlers get the dataset's id as before. The dataset's page takes the place of the home page. Xpublish's `SingleDatasetRest` has
 * the same paths, and no list of datasets either.
 */
export function singleRoutes(routes: readonly Route[], id: string): Route[] {
  const moved = routes
    // The root has no form without its slash, from which this one redirects.
    .filter(({ path }) => isOfDataset(path) && path !== DATASET)
    .map((route) => atRoot(route, id));
  const hasPage = moved.some(({ path }) => path === "/");
  const kept = routes.filter(({ path }) => !isOfDataset(path) && path !== LIST && !(path === "/" && hasPage));
  return [...kept, ...moved];
}

function isOfDataset(path: string): boolean {
  return path === DATASET || path.startsWith(`${DATASET}/`);
}

function atRoot(route: Route, id: string): Route {
  const path = route.path.slice(DATASET.length);
  return { ...route, path, given: { ...route.given, dataset_id: id } };
}

/**
 * Checks that a configuration has one dataset, and nothing that could publish others.
 * @throws ZpublishError `invalid-config`
 */
export function assertSingle(
  { datasets, collections, providers = [] }: Pick<ServerConfig, "datasets" | "collections" | "providers">,
  plugins: readonly Plugin[],
): void {
  const published = plugins.filter((plugin) => plugin.datasets !== undefined);
  const received = [
    ...providers.map(({ name }) => `datasets of the provider '${name}'`),
    ...published.map(({ name }) => `datasets of the plugin '${name}'`),
    ...collections.map(({ name }) => (name === "" ? "a collection" : `the collection '${name}'`)),
    ...datasets.map(({ id }) => `'${id}'`),
  ];
  if (received.length === 1 && datasets.length === 1) return;
  const most = received.slice(0, MAX_NAMED).join(", ");
  const rest = received.length > MAX_NAMED ? ` and ${received.length - MAX_NAMED} more` : "";
  throw configError([`single: expected one dataset and nothing else, received ${most || "none"}${rest}`]);
}
