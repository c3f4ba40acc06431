import { type Dirent, lstat, readdir, realpath, type Stats, stat } from "node:fs";
import { sep } from "node:path";
import { createSlice } from "../event-loop/cooperative-task.js";
import { codeOf, type FileCalls, NoAnswerError } from "../stores/file-calls.js";
import { nameProblem } from "../zarr/stored-tree.js";
import { recordOf } from "./file-record.js";
import type { Child, Listing } from "./visited-directory.js";

/** A directory that a walk visits. */
export interface Visit {
  /** Without a leading slash; empty for the root. */
  readonly path: string;
  /** Real path. */
  readonly directory: string;
  /** The directory in which it was found, to detect links that lead back; undefined for the root. */
  readonly parent: Visit | undefined;
}

/**
 * Lists the directories in a directory, following links.
 * @param root Real path of the store.
 * @param before The listing before; returned again if nothing was added or removed.
 * @throws NoAnswerError
 */
export async function listDirectory(
  calls: FileCalls,
  visit: Visit,
  root: string,
  before: Listing | undefined,
): Promise<Listing> {
  const record = await recordOf(calls, visit.directory);
  if (before?.record === record && isPlain(before)) return before;
  let entries: Dirent[];
  try {
    entries = await calls.call<Dirent[]>((done) => readdir(visit.directory, { withFileTypes: true }, done));
  } catch (error) {
    if (error instanceof NoAnswerError) throw error;
    return { record, children: [], problem: `the directory cannot be listed (${codeOf(error)})` };
  }
  const slice = createSlice();
  const children: Child[] = [];
  for (const entry of entries) {
    if (slice.isOver()) await slice.next();
    if (!entry.isDirectory() && !entry.isSymbolicLink()) continue;
    const path = visit.path === "" ? entry.name : `${visit.path}/${entry.name}`;
    const found = entryProblem(calls, visit, entry, path);
    const problem = found instanceof Promise ? await found : found;
    if (problem !== undefined) children.push({ path, reason: problem });
    else if (entry.isDirectory()) children.push({ path, directory: `${visit.directory}/${entry.name}` });
    else {
      const followed = await followLink(calls, visit, entry, root);
      if (followed !== undefined) children.push({ path, ...followed });
    }
  }
  return { record, children };
}

/** Tells whether a listing has no problems. Others are made again, since a problem may have been solved elsewhere. */
function isPlain({ children, problem }: Listing): boolean {
  return problem === undefined && children.every((child) => "directory" in child);
}

/** Returns why an entry cannot be served under its name; undefined if it can. */
function entryProblem(
  calls: FileCalls,
  visit: Visit,
  entry: Dirent,
  path: string,
): string | undefined | Promise<string | undefined> {
  if (!entry.name.includes("\ufffd")) return nameProblem(path);
  // Node.js puts U+FFFD for what is not UTF-8, and under such a name there is no file.
  const { directory } = visit;
  return calls
    .call<Stats>((done) => lstat(`${directory}/${entry.name}`, done))
    .then(
      () => nameProblem(path),
      (error: unknown) => {
        if (error instanceof NoAnswerError) throw error;
        return "the name is no valid UTF-8";
      },
    );
}

/** Follows a link: the real path of its directory, or why it is refused; undefined if it does not lead to a directory. */
async function followLink(
  calls: FileCalls,
  visit: Visit,
  entry: Dirent,
  root: string,
): Promise<{ readonly directory: string } | { readonly reason: string } | undefined> {
  const path = `${visit.directory}/${entry.name}`;
  try {
    const directory = await calls.call<string>((done) => realpath.native(path, done));
    const found = await calls.call<Stats>((done) => stat(directory, done));
    if (!found.isDirectory()) return undefined;
    if (!directory.startsWith(root.endsWith(sep) ? root : `${root}${sep}`) && directory !== root) {
      return { reason: "it is a link that leaves the store" };
    }
    return isOnTheWay(visit, directory) ? { reason: "it is a link to a group it is in" } : { directory };
  } catch (error) {
    if (error instanceof NoAnswerError) throw error;
    return { reason: `it is a link that cannot be followed (${codeOf(error)})` };
  }
}

function isOnTheWay(visit: Visit, directory: string): boolean {
  for (let at: Visit | undefined = visit; at !== undefined; at = at.parent) {
    if (at.directory === directory) return true;
  }
  return false;
}
