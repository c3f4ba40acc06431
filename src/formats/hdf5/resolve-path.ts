import type { Hdf5Dataset, Hdf5Group } from "./hdf5-model.js";

/** Maximum number of links to follow for one path, those of soft links on the way included. */
const MAX_STEPS = 1000;

/** Targets of soft links, by group and name. */
export type SoftLinks = Map<Hdf5Group, Map<string, string>>;

/** Object at the end of a path. */
type Found =
  | { readonly kind: "group"; readonly group: Hdf5Group }
  | { readonly kind: "dataset"; readonly dataset: Hdf5Dataset };

/**
 * Finds the object of a path, through soft links.
 * @param start Group that a path without a leading slash begins at.
 * @param steps Count of the links that were followed.
 * @returns Undefined if the path leads nowhere, or in circles.
 */
export function resolvePath(
  root: Hdf5Group,
  start: Hdf5Group,
  path: string,
  softLinks: SoftLinks,
  steps = { count: 0 },
): Found | undefined {
  let found: Found | undefined = { kind: "group", group: path.startsWith("/") ? root : start };
  for (const name of path.split("/")) {
    if (name === "" || name === ".") continue;
    steps.count += 1;
    if (found?.kind !== "group" || steps.count > MAX_STEPS) return undefined;
    const group: Hdf5Group = found.group;
    const dataset = group.datasets.get(name);
    const child = group.groups.get(name);
    const target = softLinks.get(group)?.get(name);
    if (dataset !== undefined) found = { kind: "dataset", dataset };
    else if (child !== undefined) found = { kind: "group", group: child };
    else found = target === undefined ? undefined : resolvePath(root, group, target, softLinks, steps);
  }
  return found;
}
