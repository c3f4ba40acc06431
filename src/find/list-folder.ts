import { type Dirent, lstat, type Stats } from "node:fs";
import { isMissing } from "../errors.js";
import { createSlice } from "../event-loop/cooperative-task.js";
import { workThrough } from "../event-loop/work-through.js";
import { codeOf, isOnLocalFileSystem, NoAnswerError } from "../stores/file-calls.js";
import { nameProblem } from "../zarr/stored-tree.js";
import type { Problem } from "./file-finder.js";
import { ROOT_DOCUMENTS, statPath, storeState } from "./file-state.js";
import { childPath, compact, createFolder, type Folder, type LocalLook } from "./folder.js";
import { readFolder } from "./read-folder.js";

/** Links of one folder that are followed at a time. */
const LINKS_AT_ONCE = 8;

/** A file, or a directory that has the name of a Zarr store. */
export interface ListedFile {
  readonly path: string;
  readonly isStore: boolean;
}

/** The entries of a folder that may be found, or lead to such. */
export interface FolderListing {
  /** True if the folder is a Zarr store. Then it has no entries. */
  readonly isStore: boolean;
  readonly folders: readonly Folder[];
  readonly files: readonly ListedFile[];
  readonly problems: readonly Problem[];
  /** Paths of links that cannot be followed. */
  readonly brokenLinks: readonly string[];
}

const NOTHING = { folders: [], files: [], problems: [], brokenLinks: [] };

/** Lists a folder, and follows the links in it. @throws what the file system throws, NoAnswerError */
export async function listFolder(look: LocalLook, folder: Folder): Promise<FolderListing> {
  const { calls, filter } = look;
  const directory = look.locate(folder.path);
  const isRoot = folder.path === "";
  const isEntered = isRoot || filter.entersFolder(folder.path);
  if (!isEntered) return { ...NOTHING, isStore: (await storeState(calls, directory)) !== undefined };
  const before = new Map(folder.content.folders.map((child) => [child.path, child]));
  const folders: Folder[] = [];
  const files: ListedFile[] = [];
  const problems: Problem[] = [];
  const links: string[] = [];
  const slice = createSlice();
  let isStore = false;
  let lots = 0;

  async function take(lot: readonly Dirent[]): Promise<boolean> {
    isStore = lot.some((entry) => ROOT_DOCUMENTS.includes(entry.name));
    // A store of a million chunks may have its document at the end.
    if (!isStore && lots++ === 1) isStore = (await storeState(calls, directory)) !== undefined;
    if (isStore) return false;
    for (const entry of lot) {
      if (slice.isOver()) await slice.next();
      const path = childPath(folder, entry.name);
      if (!mayBeFound(look, entry, path)) continue;
      const problem = await problemOfName(look, entry, path);
      if (problem !== undefined) problems.push({ path, reason: problem });
      else if (entry.isFile()) files.push({ path, isStore: false });
      else if (entry.isSymbolicLink()) links.push(path);
      else addDirectory(path, false);
    }
    return true;
  }

  function addDirectory(path: string, isLink: boolean): void {
    if (isStoreName(path)) files.push({ path, isStore: true });
    else {
      const known = before.get(path);
      folders.push(
        known?.isLink === isLink ? known : createFolder(path, isLink, isLink || folder.isBehindLink),
      );
    }
  }

  await readFolder(calls, directory, !folder.isBehindLink && isOnLocalFileSystem(directory), take);
  if (isStore) return { ...NOTHING, isStore };
  const brokenLinks: string[] = [];
  await workThrough(links, LINKS_AT_ONCE, async (path) => {
    try {
      const found = await statPath(calls, look.locate(path));
      if (found === undefined) {
        brokenLinks.push(path);
        problems.push({ path, reason: "it is a link that leads nowhere" });
      } else if (found.isFile()) {
        if (filter.takesFile(path)) files.push({ path, isStore: false });
      } else if (
        found.isDirectory() &&
        (isStoreName(path) ? filter.takesStore(path) : mayBeFolder(look, path))
      )
        addDirectory(path, true);
    } catch (error) {
      if (error instanceof NoAnswerError) throw error;
      brokenLinks.push(path);
      problems.push({ path, reason: `it is a link that cannot be followed (${codeOf(error)})` });
    }
  });
  return { isStore, folders, files, problems, brokenLinks: compact(brokenLinks) };
}

function isStoreName(path: string): boolean {
  return path.endsWith(".zarr");
}

function mayBeFolder({ filter }: LocalLook, path: string): boolean {
  return filter.takesStore(path) || filter.entersFolder(path);
}

/** Tells if an entry may be found, or lead to what may. */
function mayBeFound(look: LocalLook, entry: Dirent, path: string): boolean {
  const { filter } = look;
  if (entry.isFile()) return filter.takesFile(path);
  if (entry.isDirectory()) return isStoreName(path) ? filter.takesStore(path) : mayBeFolder(look, path);
  return entry.isSymbolicLink() && (filter.takesFile(path) || mayBeFolder(look, path));
}

/** Returns why an entry cannot be served under its name; undefined if it can. @throws what the file system throws, NoAnswerError */
async function problemOfName(look: LocalLook, entry: Dirent, path: string): Promise<string | undefined> {
  if (entry.name.includes("\ufffd")) {
    // Node.js puts U+FFFD for what is not UTF-8, and under such a name there is no file.
    try {
      await look.calls.call<Stats>((done) => lstat(look.locate(path), done));
    } catch (error) {
      if (isMissing(error)) return "the name is no valid UTF-8";
      throw error;
    }
  }
  return nameProblem(path);
}
