import type { CooperativeTask } from "../event-loop/cooperative-task.js";
import { sortCooperatively } from "../event-loop/sort-cooperatively.js";
import { printablePath } from "../zarr/stored-tree.js";
import type { Findings, FoundFile, Problem } from "./file-finder.js";

/** Problems that are named. Of ten thousand broken files, no log needs more. */
const MAX_PROBLEMS = 1_000;

/**
 * Sorts what was found, and names a bounded number of problems.
 * @param before Findings of the look before, whose list of files is used again if it has the same.
 */
export function* assembleFindings(
  files: readonly FoundFile[],
  problems: readonly Problem[],
  before: Findings | undefined,
): CooperativeTask<Findings> {
  const sorted = yield* sortCooperatively(files, byPath);
  const isSame =
    before?.files.length === files.length && sorted.every((file, index) => file === before.files[index]);
  const named = (yield* sortCooperatively(problems, byPath))
    .slice(0, MAX_PROBLEMS)
    .map(({ path, reason }) => ({ path: printablePath(path), reason }));
  const more = problems.length - named.length;
  if (more > 0) named.push({ path: "", reason: `${more} more problems of this kind are not named` });
  return Object.freeze({
    files: isSame ? before.files : Object.freeze(sorted),
    problems: Object.freeze(named),
  });
}

function byPath(a: { readonly path: string }, b: { readonly path: string }): number {
  return a.path < b.path ? -1 : a.path > b.path ? 1 : 0;
}
