import type { ServedArray } from "../../dataset/dataset.js";
import type { CooperativeTask } from "../../event-loop/cooperative-task.js";
import { sortCooperatively } from "../../event-loop/sort-cooperatively.js";
import { elementCount } from "../../model/chunk-grid.js";
import type { Group } from "../../model/data-tree.js";

/**
 * Maximum of chunks in an array's listing. A longer one does not exist: GDAL takes chunks that a listing leaves out for absent,
 * and so for fill values.
 */
const MAX_LISTED_CHUNKS = 10_000;

/** Lists a group: documents, then child groups and arrays with a slash at the end. */
export function* groupListing(group: Group): CooperativeTask<readonly string[]> {
  const entries = [".zattrs", ".zgroup", ".zmetadata"];
  const names = [...group.childNames, ...group.variables.keys()];
  for (const name of yield* sortCooperatively(names, compareNames)) {
    yield;
    entries.push(`${name}/`);
  }
  return entries;
}

/** Compares by UTF-16 code units. */
function compareNames(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/**
 * Lists an array: documents and the key of every chunk of its grid, including absent ones, which are answered 404. Undefined if
 * there are too many.
 */
export function arrayListing({ plan }: ServedArray): CooperativeTask<readonly string[]> | undefined {
  const { gridShape } = plan.served;
  return elementCount(gridShape) > MAX_LISTED_CHUNKS ? undefined : chunkEntries(gridShape);
}

function* chunkEntries(gridShape: readonly number[]): CooperativeTask<readonly string[]> {
  let keys: string[] = [""];
  for (const count of gridShape) {
    yield;
    keys = keys.flatMap((key) =>
      Array.from({ length: count }, (_, index) => (key === "" ? `${index}` : `${key}.${index}`)),
    );
  }
  const chunkKeys = gridShape.length === 0 ? ["0"] : keys;
  return [".zarray", ".zattrs", ...chunkKeys];
}
