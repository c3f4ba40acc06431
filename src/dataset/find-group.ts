import { ZpublishError } from "../errors.js";
import type { Group } from "../model/data-tree.js";
import { normalNodePath } from "../model/node-path.js";
import type { DatasetSnapshot } from "./dataset.js";

/**
 * Finds the group that a path names. Leading, trailing and doubled slashes do not count, so that paths from `/groups` can
 * be used verbatim. A path without segments is the root.
 * @throws ZpublishError `not-found`: `Group 'a/b' not found in dataset 'x'`.
 */
export function findGroup(snapshot: DatasetSnapshot, groupPath: string): Group {
  const path = normalNodePath(groupPath);
  const group = snapshot.tree.groups.get(`/${path}`);
  if (group === undefined) {
    throw new ZpublishError("not-found", `Group '${path}' not found in dataset '${snapshot.id}'`);
  }
  return group;
}
