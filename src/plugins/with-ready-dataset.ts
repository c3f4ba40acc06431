import type { DatasetRegistry } from "../dataset/dataset-registry.js";
import type { Route } from "../http/route.js";

/**
 * A route whose handler finds the dataset of its `dataset_id` open and fresh. Where there is something to wait for, it
 * is called later; a dataset that does not exist is the handler's affair.
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
