import type { DatasetRegistry } from "../dataset/dataset-registry.js";
import type { Route } from "../http/routing/route.js";

/**
 * Wraps a route so that its handler finds the dataset of `dataset_id` open and refreshed, and is called later if that takes time.
 * The handler answers for a dataset that does not exist.
 */
export function withReadyDataset(route: Route, datasets: Pick<DatasetRegistry, "ready">): Route {
  if (!route.path.includes("{dataset_id}")) return route;
  const { handler } = route;
  return {
    ...route,
    handler(request) {
      const pending = datasets.ready(request.params.dataset_id as string);
      return pending === undefined ? handler(request) : pending.then(() => handler(request));
    },
  };
}
