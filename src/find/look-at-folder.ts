import { workThrough } from "../event-loop/work-through.js";
import { NoAnswerError } from "../stores/file-calls.js";
import { recordOfStats } from "../zarr-store/file-record.js";
import { checkFiles } from "./check-files.js";
import { statPath } from "./file-state.js";
import {
  compact,
  type Folder,
  type FolderContent,
  isSameProblems,
  type LocalLook,
  NO_CONTENT,
} from "./folder.js";
import { listFolder } from "./list-folder.js";

/** Links of one folder that are followed at a time. */
const LINKS_AT_ONCE = 8;
/** Age from which on a directory's times tell every later change: file systems have clocks of up to two seconds. */
const SETTLE_MS = 2_000;

/**
 * Looks at a folder: lists it if it has changed since the last time, and looks at those files that have to be looked at.
 * @returns False if there is no such folder any more.
 * @throws what the file system throws, NoAnswerError. The folder then has what it had.
 */
export async function lookAtFolder(look: LocalLook, folder: Folder): Promise<boolean> {
  const { content, isStore } = folder;
  // A store that counts is not looked at again, unless for its version.
  if (isStore && !look.withVersions && content.waiting.size === 0) return true;
  const nowMs = Date.now();
  const found = await statPath(look.calls, look.locate(folder.path));
  if (!found?.isDirectory()) {
    const reason = found === undefined ? "it is a link that leads nowhere" : "expected a directory";
    const nameProblems = folder.isLink ? [{ path: folder.path, reason }] : [];
    replaceContent(look, folder, { ...NO_CONTENT, nameProblems });
    folder.record = undefined;
    folder.isStore = false;
    return false;
  }
  folder.identity = `${found.dev.toString(36)}.${found.ino.toString(36)}`;
  const record = [recordOfStats(found), found.ctimeNs.toString(36)].join(".");
  if (record === folder.record && folder.isSettled && !(await isLinkRepaired(look, folder))) {
    const checked = await checkFiles(look, content);
    if (checked !== content) replaceContent(look, folder, { ...content, ...checked });
    return true;
  }
  const listing = await listFolder(look, folder);
  const { folders, problems } = listing;
  const isTaken = listing.isStore && look.filter.takesStore(folder.path);
  const files = isTaken ? [{ path: folder.path, isStore: true }] : listing.files;
  const checked = await checkFiles(look, content, files);
  const ageMs = nowMs - Math.max(Number(found.mtimeMs), Number(found.ctimeMs));
  // The clock of another machine may be slow. So a folder that has changed is listed until nothing changes between two looks.
  const isSteady = folder.record === undefined || folder.record === record;
  folder.isSettled = ageMs > SETTLE_MS && isSteady;
  folder.brokenLinks = listing.brokenLinks;
  folder.record = record;
  folder.isStore = listing.isStore;
  replaceContent(look, folder, { ...checked, folders: compact(folders), nameProblems: compact(problems) });
  return true;
}

/** Tells if a link can be followed that could not. */
async function isLinkRepaired(look: LocalLook, { brokenLinks }: Folder): Promise<boolean> {
  let isRepaired = false;
  await workThrough(brokenLinks, LINKS_AT_ONCE, async (path) => {
    if (isRepaired) return;
    const found = await statPath(look.calls, look.locate(path)).catch((error: unknown) => {
      if (error instanceof NoAnswerError) throw error;
      return undefined;
    });
    isRepaired ||= found !== undefined;
  });
  return isRepaired;
}

function replaceContent(look: LocalLook, folder: Folder, next: FolderContent): void {
  const { content } = folder;
  folder.content = next;
  if (
    content.files !== next.files ||
    !isSameFolders(content.folders, next.folders) ||
    !isSameProblems(content.nameProblems, next.nameProblems) ||
    !isSameProblems(content.fileProblems, next.fileProblems)
  )
    look.recordChange();
}

function isSameFolders(a: readonly Folder[], b: readonly Folder[]): boolean {
  if (a === b) return true;
  const before = new Set(a);
  return a.length === b.length && b.every((folder) => before.has(folder));
}
