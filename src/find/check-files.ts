import { createSlice } from "../event-loop/cooperative-task.js";
import { workThrough } from "../event-loop/work-through.js";
import { codeOf, NoAnswerError } from "../stores/file-calls.js";
import type { FoundFile, Problem } from "./file-finder.js";
import { type FileState, fileState, NO_DOCUMENT, statPath, storeState } from "./file-state.js";
import { compact, type FolderContent, type LocalLook, NO_CONTENT, type WaitingFile } from "./folder.js";
import type { ListedFile } from "./list-folder.js";

/** Age from which on a file counts at once. A younger one counts when it is the same in two looks. */
const STILL_MS = 5_000;
/** Files of one folder that are looked at at a time. */
const FILES_AT_ONCE = 8;

type CheckedFiles = Pick<FolderContent, "files" | "waiting" | "fileProblems">;

/**
 * Looks at the files of a folder: at new ones, those that have not stood still, and all of them if versions are asked for.
 * @param listed All files of the folder. Default: those that it had.
 * @returns `files` itself if they are the same as before.
 * @throws NoAnswerError
 */
export async function checkFiles(
  look: LocalLook,
  before: CheckedFiles,
  listed?: readonly ListedFile[],
): Promise<CheckedFiles> {
  const { withVersions } = look;
  if (listed === undefined && before.waiting.size === 0 && !withVersions) return before;
  const slice = createSlice();
  const known = new Map<string, FoundFile>();
  for (const file of before.files) {
    if (slice.isOver()) await slice.next();
    known.set(file.path, file);
  }
  const files: FoundFile[] = [];
  const waiting = new Map<string, WaitingFile>();
  const fileProblems: Problem[] = [];
  let isSame = true;

  function keep(file: FoundFile): void {
    isSame &&= file === known.get(file.path);
    files.push(file);
  }

  function take({ path, isStore }: ListedFile, state: FileState): void {
    const { record, modifiedMs } = state;
    const counted = known.get(path);
    const ageMs = Date.now() - modifiedMs;
    if (counted !== undefined && (!withVersions || counted.version === record)) keep(counted);
    // A time in the future is of another clock, and tells nothing.
    // There is nothing to wait for when a file is new: if it does not open yet, it is tried again.
    else if (counted === undefined || ageMs > STILL_MS || before.waiting.get(path)?.record === record) {
      keep(withVersions ? { path, isStore, version: record } : { path, isStore });
    } else {
      waiting.set(path, { isStore, record });
      keep(counted);
    }
  }

  async function check(file: ListedFile): Promise<void> {
    const { path, isStore } = file;
    const counted = known.get(path);
    if (counted?.isStore === isStore && !withVersions && !before.waiting.has(path)) {
      keep(counted);
      return;
    }
    try {
      const earlier = [counted?.version ?? "", before.waiting.get(path)?.record ?? ""];
      const state = await stateOf(look, file, earlier);
      if (state !== undefined) take(file, state);
      if (state !== undefined || !isStore) return;
      waiting.set(path, { isStore, record: "" });
      if (before.waiting.get(path)?.record === "") fileProblems.push({ path, reason: NO_DOCUMENT });
    } catch (error) {
      if (error instanceof NoAnswerError) throw error;
      fileProblems.push({ path, reason: `it cannot be read (${codeOf(error)})` });
      if (counted !== undefined) keep(counted);
      waiting.set(path, { isStore, record: "?" });
    }
  }

  const all = listed ?? (withVersions ? allOf(before) : waitingOf(before));
  if (listed === undefined && !withVersions)
    for (const file of before.files) {
      if (slice.isOver()) await slice.next();
      if (!before.waiting.has(file.path)) keep(file);
    }
  await workThrough(all, FILES_AT_ONCE, check);
  const isUnchanged = isSame && files.length === before.files.length;
  return {
    files: isUnchanged ? before.files : compact(files),
    waiting: waiting.size === 0 ? NO_CONTENT.waiting : waiting,
    fileProblems: compact(fileProblems),
  };
}

function* allOf({ files, waiting }: CheckedFiles): Iterable<ListedFile> {
  const counted = new Set<string>();
  for (const file of files) {
    if (waiting.has(file.path)) counted.add(file.path);
    yield file;
  }
  for (const [path, { isStore }] of waiting) if (!counted.has(path)) yield { path, isStore };
}

function* waitingOf({ waiting }: CheckedFiles): Iterable<ListedFile> {
  for (const [path, { isStore }] of waiting) yield { path, isStore };
}

/** Returns the state of a file or store; undefined if there is none. @throws what `stat` throws, NoAnswerError */
async function stateOf(
  look: LocalLook,
  { path, isStore }: ListedFile,
  earlier: readonly string[],
): Promise<FileState | undefined> {
  const absolute = look.locate(path);
  if (isStore) return storeState(look.calls, absolute, look.withVersions ? earlier : undefined);
  const found = await statPath(look.calls, absolute);
  return found?.isFile() ? fileState(found) : undefined;
}
