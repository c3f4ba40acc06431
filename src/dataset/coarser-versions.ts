import { levelPathsOf } from "../cf/image-data.js";
import type { DatasetSnapshot, ServedArray } from "./dataset.js";

/** An array of fewer cells, and the snapshot that it is of: the dataset, or its overviews. */
export interface CoarserVersion {
  readonly snapshot: DatasetSnapshot;
  readonly array: ServedArray;
}

/** Lists the coarser versions of an array, finest first: those in the dataset itself, else its overviews. */
export function coarserVersions(snapshot: DatasetSnapshot, base: ServedArray): CoarserVersion[] {
  const { overviews, tree, arrays } = snapshot;
  const { path, shape } = base.variable;
  const stored = levelPathsOf(path, (group) => tree.groups.get(`/${group}`)?.attrs)
    .map((each) => arrays.get(each))
    .filter((array) => array?.variable.shape.length === shape.length);
  if (stored.length > 0) return stored.map((array) => ({ snapshot, array: array! }));
  const levels: CoarserVersion[] = [];
  if (overviews === undefined) return levels;
  for (let level = 1; ; level++) {
    const array = overviews.arrays.get(`${level}/${path}`);
    if (array === undefined) return levels;
    levels.push({ snapshot: overviews, array });
  }
}
