import { workThrough } from "../event-loop/work-through.js";
import type { FileCalls } from "../stores/file-calls.js";
import { recordOf } from "./file-record.js";
import { documentNames } from "./node-documents.js";
import { type VisitedDirectory, watchedDocuments } from "./visited-directory.js";

/** Directories that are checked at a time. */
const CONCURRENCY = 16;

/**
 * Checks all directories and metadata documents of a store, and returns the directories in which something changed.
 * @throws NoAnswerError
 */
export async function findChanges(
  calls: FileCalls,
  visited: Iterable<VisitedDirectory>,
): Promise<ReadonlySet<VisitedDirectory>> {
  const changed = new Set<VisitedDirectory>();
  await workThrough(visited, CONCURRENCY, async (directory) => {
    if (await hasChanged(calls, directory)) changed.add(directory);
  });
  return changed;
}

async function hasChanged(calls: FileCalls, visited: VisitedDirectory): Promise<boolean> {
  const { directory, listing, records } = visited;
  if (listing !== undefined && (await recordOf(calls, directory)) !== listing.record) return true;
  for (const name of watchedDocuments(visited)) {
    const record = await recordOf(calls, `${directory}/${name}`);
    if (record !== records[documentNames.indexOf(name)]) return true;
  }
  return false;
}
