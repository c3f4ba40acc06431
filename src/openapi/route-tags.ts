import { severalDatasets } from "../dataset/dataset.js";
import type { Route } from "../http/router.js";

/**
 * Creates a function that returns the heading of a route: the first segment of its path (`datasets`). If several routes
 * continue after a parameter, it is the segment there (`zarr`, `groups`). `/` and its documents are `service`.
 * @param routes All routes.
 */
export function createTags(routes: readonly Route[]): (route: Route) => string {
  const below = new Map<string, number>();
  for (const path of routes.map(pathOf)) {
    const room = roomOf(path);
    if (room !== undefined) below.set(room, (below.get(room) ?? 0) + 1);
  }
  return (route) => {
    const path = pathOf(route);
    const room = roomOf(path) ?? (below.has(path) ? path : undefined);
    if (room !== undefined && (below.get(room) as number) > 1) return room.split("/").at(-1) as string;
    const [, first = "", second] = path.split("/");
    return second === undefined
      ? first === "datasets"
        ? first
        : "service"
      : first === "docs"
        ? "service"
        : first;
  };
}

/** Returns the path of a route, of a dataset alone as that of one among several: the headings are the same. */
function pathOf({ path, given }: Route): string {
  return given?.dataset_id === undefined ? path : severalDatasets("{dataset_id}") + path.slice(1);
}

/** Returns `/datasets/{dataset_id}/zarr` of a longer path. */
function roomOf(path: string): string | undefined {
  return /^(\/[^/{}]+\/\{[^}]+\}\/[^/{}]+)\/./.exec(path)?.[1];
}
