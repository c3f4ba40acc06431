import type { DatasetRegistry } from "../dataset/dataset-registry.js";
import type { RouteRequest } from "../http/reply.js";
import type { Route } from "../http/route.js";

/** Routes that answer with a dataset's metadata, the first that is there is tried. */
const METADATA_ROUTES = ["/datasets/{dataset_id}/zarr/.zmetadata", "/datasets/{dataset_id}/info"];
/** Of so many datasets one has to work. */
const MAX_TRIED = 3;

/**
 * Has the metadata of a dataset that is open made, by the handler that answers requests for them, if they are not made.
 * @returns In a word what was found.
 * @throws What the handler throws, where it does so for several datasets.
 */
export async function tryMetadata(
  routes: readonly Route[],
  datasets: Pick<DatasetRegistry, "someOpen">,
): Promise<string> {
  const path = METADATA_ROUTES.find((wanted) => routes.some((route) => route.path === wanted));
  const route = routes.find((candidate) => candidate.path === path);
  if (route === undefined) return "none";
  let failure: unknown;
  for (const id of datasets.someOpen(MAX_TRIED)) {
    try {
      await route.handler(requestFor(route.path, id));
      return "ok";
    } catch (error) {
      failure = error;
    }
  }
  if (failure !== undefined) throw failure;
  return "none open";
}

function requestFor(template: string, id: string): RouteRequest {
  return {
    method: "GET",
    params: { dataset_id: id },
    rawPath: template.replace("{dataset_id}", encodeURIComponent(id)),
    query: "",
    serviceUrl: "http://localhost",
    header: () => undefined,
  };
}
