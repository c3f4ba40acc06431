/**
 * The path of a node without leading, trailing and doubled slashes: `a/b` of `/a//b/`, empty for the root. So Zarr stores
 * normalise keys, and so what `/groups` lists can be used as it is.
 */
export function normalNodePath(path: string): string {
  // Most are; a chunk's path passes here with every request.
  if (!path.startsWith("/") && !path.endsWith("/") && !path.includes("//")) return path;
  return path
    .split("/")
    .filter((segment) => segment !== "")
    .join("/");
}

/** Last segment of a node's path: `b` of `/a/b` and of `a/b`; empty for the root. */
export function nodeName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
