import type { ServedArray } from "../../dataset/dataset.js";
import { elementCount } from "../../model/chunk-grid.js";
import type { Group } from "../../model/data-tree.js";

/**
 * Chunks of an array that a listing may name. A listing names all or does not exist: GDAL takes what an existing
 * listing leaves out for absent, and so for fill values.
 */
const MAX_LISTED_CHUNKS = 10_000;

/** Entries of a group's listing: documents, then child groups and arrays with a slash behind them. */
export function groupListing(group: Group): readonly string[] {
  const nodes = [...group.childNames, ...group.variables.keys()].sort();
  return [".zattrs", ".zgroup", ".zmetadata", ...nodes.map((name) => `${name}/`)];
}

/**
 * Entries of an array's listing: documents and the key of every chunk of its grid, absent ones included
 * (asking for one of those answers 404, which is what it means); undefined where there are too many.
 */
export function arrayListing({ plan }: ServedArray): readonly string[] | undefined {
  const { gridShape } = plan.served;
  if (elementCount(gridShape) > MAX_LISTED_CHUNKS) return undefined;
  let keys: string[] = [""];
  for (const count of gridShape) {
    keys = keys.flatMap((key) =>
      Array.from({ length: count }, (_, index) => (key === "" ? `${index}` : `${key}.${index}`)),
    );
  }
  const chunkKeys = gridShape.length === 0 ? ["0"] : keys;
  return [".zarray", ".zattrs", ...chunkKeys];
}
