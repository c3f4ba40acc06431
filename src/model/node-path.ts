/**
 * Strips leading, trailing and doubled slashes from a node's path: `a/b` for `/a//b/`, empty for the root. Zarr stores
 * normalise keys so, and paths that `/groups` lists can be used verbatim.
 */
export function normalNodePath(path: string): string {
  // Most paths are normal, and every request for a chunk passes here.
  if (!path.startsWith("/") && !path.endsWith("/") && !path.includes("//")) return path;
  return path
    .split("/")
    .filter((segment) => segment !== "")
    .join("/");
}

/** Returns the last segment of a node's path: `b` for `/a/b` and `a/b`, empty for the root. */
export function nodeName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
