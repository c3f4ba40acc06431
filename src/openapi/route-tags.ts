import type { Route } from "../http/routing/route.js";

/**
 * Creates a function that returns the heading of a route: the first segment of its path (`datasets`). If several routes
 * continue after a parameter, it is the segment there (`zarr`, `groups`). `/` and its documents are `service`.
 * @param routes All routes.
 */
export function createTags(routes: readonly Route[]): (route: Route) => string {
  const below = new Map<string, number>();
  for (const { path } of routes) {
    const room = roomOf(path);
    if (room !== undefined) below.set(room, (below.get(room) ?? 0) + 1);
  }
  return ({ path }) => {
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

/** Returns `/datasets/{dataset_id}/zarr` of a longer path. */
function roomOf(path: string): string | undefined {
  return /^(\/[^/{}]+\/\{[^}]+\}\/[^/{}]+)\/./.exec(path)?.[1];
}
