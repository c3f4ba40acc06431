import type { CooperativeTask } from "../event-loop/cooperative-task.js";
import { sortCooperatively } from "../event-loop/sort-cooperatively.js";
import type { StoreSettings } from "../stores/byte-store.js";
import { printablePath } from "../zarr/stored-tree.js";

/** Finds files and Zarr stores below a folder of this machine or a prefix of a bucket, again and again, with little work if little has changed. */
export interface FileFinder {
  /** The folder or prefix: an absolute path, or a URL that ends with a slash. For messages. */
  readonly root: string;
  /**
   * Looks once; calls are not to overlap. What has not changed since the last look is not read again.
   * @throws ZpublishError `source-unreadable` if the root cannot be listed; `invalid-config` if it is of a kind that cannot be.
   */
  look(signal?: AbortSignal): Promise<Findings>;
  /** Returns the location of a file, as `openSource` takes it. */
  locationOf(path: string): string;
}

/** The result of one look. */
export interface Findings {
  /**
   * Sorted by path in UTF-16 code units. The same array object as before if all are. Folders that cannot be read have the files that
   * they had.
   */
  readonly files: readonly FoundFile[];
  /** Folders and files that cannot be used, each with the reason: not readable, a loop of links, a name that cannot be served. */
  readonly problems: readonly PathProblem[];
}

/** A folder or file that cannot be used. */
export interface PathProblem {
  /** Relative to the root; empty for the root, or for several together. */
  readonly path: string;
  readonly reason: string;
}

/** A file, or a directory that is a Zarr store. */
export interface FoundFile {
  /** Relative to the root, with `/` between its parts, without a slash at the end. */
  readonly path: string;
  /** True for a directory that is a Zarr store. */
  readonly isStore: boolean;
  /**
   * Identifies the content of a file, such as its size and modification time; of a store the modification times of its root documents.
   * Undefined if the finder was not asked for versions.
   */
  readonly version?: string;
}

/** Options of a finder. */
export interface FileFinderOptions {
  /** Absolute path of a directory, or a URL `s3://bucket/prefix/`. */
  readonly root: string;
  /** Patterns of paths relative to the root, as picomatch reads them. Default: files and stores of all known formats. */
  readonly include?: readonly string[] | undefined;
  /** Patterns of paths that are left out, folders with everything below them included. */
  readonly exclude?: readonly string[] | undefined;
  /** Whether to tell versions, which takes a look at every file each time. Default false. */
  readonly withVersions?: boolean;
  /** How buckets are reached. Default: as AWS's own programs do. */
  readonly stores?: readonly StoreSettings[] | undefined;
}

/** Problems that are named. Of ten thousand broken files, no log needs more. */
const MAX_PROBLEMS = 1_000;

/** A folder, prefix or group below a root, as it was found last. */
export interface Branch<B> {
  /** Relative to the root, without slash at the end; empty for the root. */
  readonly path: string;
  content: BranchContent<B>;
  /** Why it could not be read in the last look; undefined if it could. */
  failure: string | undefined;
}

/** The content of a branch. */
export interface BranchContent<B> {
  readonly below: readonly B[];
  /** Files and stores, in any order. */
  readonly files: readonly FoundFile[];
  readonly problems: readonly PathProblem[];
}

/** The content of a branch without anything. */
export const NO_CONTENT: BranchContent<never> = Object.freeze({ below: [], files: [], problems: [] });

/** Returns the path of what is in a branch. Joined, since a concatenated string retains all its parts. */
export function childPath({ path }: { readonly path: string }, name: string): string {
  return path === "" ? name : [path, name].join("/");
}

/** Sets the state of a branch after a look. @returns True if it is another one. */
export function updateBranch<B>(
  branch: Branch<B>,
  next: BranchContent<B>,
  failure: string | undefined,
): boolean {
  const { content } = branch;
  const isSame =
    content === next ||
    (isSameItems(content.below, next.below, (a, b) => a === b) &&
      isSameItems(content.files, next.files, isSameFile) &&
      isSameItems(content.problems, next.problems, isSameProblem));
  if (isSame && branch.failure === failure) return false;
  if (!isSame) branch.content = next;
  branch.failure = failure;
  return true;
}

function isSameItems<T>(a: readonly T[], b: readonly T[], isSame: (a: T, b: T) => boolean): boolean {
  return a.length === b.length && a.every((item, index) => isSame(item, b[index]!));
}

function isSameFile(a: FoundFile, b: FoundFile): boolean {
  return a === b || (a.path === b.path && a.isStore === b.isStore && a.version === b.version);
}

function isSameProblem(a: PathProblem, b: PathProblem): boolean {
  return a.path === b.path && a.reason === b.reason;
}

/**
 * Gathers what is in all branches, sorted, with a bounded number of problems.
 * @param before Findings of the look before, whose list of files is used again if it has the same.
 */
export function* gatherFindings<B extends Branch<B>>(
  top: B,
  before: Findings | undefined,
): CooperativeTask<Findings> {
  const files: FoundFile[] = [];
  const problems: PathProblem[] = [];
  const branches = [top];
  for (let branch = branches.pop(); branch !== undefined; branch = branches.pop()) {
    yield;
    const { path, content, failure } = branch;
    if (failure !== undefined) problems.push({ path, reason: failure });
    for (const file of content.files) {
      files.push(file);
      if (files.length % 512 === 0) yield;
    }
    for (const problem of content.problems) problems.push(problem);
    for (const below of content.below) branches.push(below);
  }
  return yield* assembleFindings(files, problems, before);
}

/** Sorts what was found, and names a bounded number of problems. @param before As for {@link gatherFindings}. */
export function* assembleFindings(
  files: readonly FoundFile[],
  problems: readonly PathProblem[],
  before: Findings | undefined,
): CooperativeTask<Findings> {
  const sorted = yield* sortCooperatively(files, byPath);
  const named = (yield* sortCooperatively(problems, byPath))
    .slice(0, MAX_PROBLEMS)
    .map(({ path, reason }) => ({ path: printablePath(path), reason }));
  const more = problems.length - named.length;
  if (more > 0) named.push({ path: "", reason: `${more} more problems of this kind are not named` });
  const isSame = before !== undefined && isSameItems(sorted, before.files, isSameFile);
  return Object.freeze({
    files: isSame ? before.files : Object.freeze(sorted),
    problems: Object.freeze(named),
  });
}

function byPath(a: { readonly path: string }, b: { readonly path: string }): number {
  return a.path < b.path ? -1 : a.path > b.path ? 1 : 0;
}
