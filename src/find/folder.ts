import type { FileCalls } from "../stores/file-calls.js";
import type { FoundFile, Problem } from "./file-finder.js";
import type { PathFilter } from "./path-filter.js";

/** One look at all folders below a root. */
export interface LocalLook {
  readonly calls: FileCalls;
  readonly filter: PathFilter;
  readonly withVersions: boolean;
  /** Returns the absolute path of a path relative to the root. */
  locate(path: string): string;
  /** Records that the findings are no longer those of the look before. */
  recordChange(): void;
}

/** A folder as it was found last. The next look reads only what has changed since. */
export interface Folder {
  /** Relative to the root, empty for the root. */
  readonly path: string;
  /** True if a link leads to it. */
  readonly isLink: boolean;
  /** True if there is a link in its path. It may be on any file system. */
  readonly isBehindLink: boolean;
  /** Record of the directory when it was listed; undefined if it was not. */
  record: string | undefined;
  /** Text that tells the directory from all others, by whatever way it was reached. Empty if it was not found yet. */
  identity: string;
  /** True if any later change of the directory changes its record. */
  isSettled: boolean;
  /** True for a Zarr store, whose only file is itself. */
  isStore: boolean;
  /** Paths of links in it that cannot be followed. What they lead to may come without a change of the folder. */
  brokenLinks: readonly string[];
  /** Why it could not be read in the last look; undefined if it could. */
  failure: string | undefined;
  /** True while a call has no answer. No further call is made until it has, since each takes one of libuv's threads. */
  isHanging: boolean;
  content: FolderContent;
}

/** The content of a folder. */
export interface FolderContent {
  readonly folders: readonly Folder[];
  /** Files and stores that count. */
  readonly files: readonly FoundFile[];
  /** Files and stores that have not stood still yet, by path. One that is also among `files` has changed since it counted. */
  readonly waiting: ReadonlyMap<string, WaitingFile>;
  /** Problems of names and links. */
  readonly nameProblems: readonly Problem[];
  /** Problems of files and stores. */
  readonly fileProblems: readonly Problem[];
}

/** A file that has not stood still yet. */
export interface WaitingFile {
  readonly isStore: boolean;
  /** Record in the last look; empty for a directory that is named like a store and has no root document. */
  readonly record: string;
}

/** Content of a folder without anything. */
export const NO_CONTENT: FolderContent = Object.freeze({
  folders: Object.freeze([]),
  files: Object.freeze([]),
  waiting: new Map<string, WaitingFile>(),
  nameProblems: Object.freeze([]),
  fileProblems: Object.freeze([]),
});

/** Returns a list without room to grow. There may be as many folders as files. */
export function compact<T>(items: readonly T[]): readonly T[] {
  return items.length === 0 ? (NO_CONTENT.files as readonly never[]) : items.slice();
}

/** Creates a folder that was not looked at yet. @param path Relative to the root, empty for the root. */
export function createFolder(path: string, isLink = false, isBehindLink = isLink): Folder {
  const state = { record: undefined, identity: "", isSettled: false, isStore: false, brokenLinks: [] };
  return { path, isLink, isBehindLink, ...state, failure: undefined, isHanging: false, content: NO_CONTENT };
}

/** Returns the path of what is in a folder. Joined, since a concatenated string retains all its parts. */
export function childPath({ path }: Pick<Folder, "path">, name: string): string {
  return path === "" ? name : [path, name].join("/");
}

/** Tells if two lists have the same problems, in any order. */
export function isSameProblems(a: readonly Problem[], b: readonly Problem[]): boolean {
  if (a === b) return true;
  const before = new Set(a.map(textOf));
  return a.length === b.length && b.every((problem) => before.has(textOf(problem)));
}

function textOf({ path, reason }: Problem): string {
  return `${path}\n${reason}`;
}

/** Tells if two lists have the same items in the same order. */
export function isSameItems<T>(a: readonly T[], b: readonly T[]): boolean {
  return a.length === b.length && a.every((item, index) => item === b[index]);
}
