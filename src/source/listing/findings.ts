import type { CooperativeTask } from "../../event-loop/cooperative-task.js";
import { sortCooperatively } from "../../event-loop/sort-cooperatively.js";
import { printablePath } from "../node-name.js";
import type { Findings, FoundFile, Problem } from "./file-finder.js";

/** Problems that are named. Of ten thousand broken files, no log needs more. */
const MAX_PROBLEMS = 1_000;

/** Sorts what was found, and names a bounded number of problems. */
export function* assembleFindings(
  files: readonly FoundFile[],
  problems: readonly Problem[],
): CooperativeTask<Findings> {
  const sorted = yield* sortCooperatively(files, byPath);
  const named = (yield* sortCooperatively(problems, byPath))
    .slice(0, MAX_PROBLEMS)
    .map(({ path, reason }) => ({ path: printablePath(path), reason }));
  const more = problems.length - named.length;
  if (more > 0) named.push({ path: "", reason: `${more} more problems of this kind are not named` });
  return Object.freeze({ files: Object.freeze(sorted), problems: Object.freeze(named) });
}

function byPath(a: { readonly path: string }, b: { readonly path: string }): number {
  return a.path < b.path ? -1 : a.path > b.path ? 1 : 0;
}
