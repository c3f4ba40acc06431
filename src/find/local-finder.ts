import { type Dir, type Dirent, opendir, readdir } from "node:fs";
import { createLimiter } from "../collections/limiter.js";
import { ZpublishError } from "../errors.js";
import { createSlice, runCooperatively } from "../event-loop/cooperative-task.js";
import { workThrough } from "../event-loop/work-through.js";
import {
  codeOf,
  createFileCalls,
  directReadsOf,
  type FileCalls,
  NoAnswerError,
} from "../stores/file-calls.js";
import { nameProblem } from "../zarr/stored-tree.js";
import { looksLikeRepository } from "../zarr-store/icechunk/repository.js";
import { recordOfStats } from "../zarr-store/local-documents.js";
import {
  type Branch,
  type BranchContent,
  childPath,
  type FileFinder,
  type FileFinderOptions,
  type Findings,
  type FoundFile,
  gatherFindings,
  NO_CONTENT,
  type PathProblem,
  updateBranch,
} from "./file-finder.js";
import {
  isStore,
  NO_DOCUMENT,
  ROOT_DOCUMENTS,
  realRoot,
  statPath,
  storeVersion,
  unreadableRoot,
  versionNow,
} from "./file-state.js";
import { createPathFilter, type PathFilter } from "./patterns.js";

/** Calls to the file system at a time: libuv's threads are for chunks. */
const CALLS_AT_ONCE = 4;
/** Folders, and files of one folder, that are looked at at a time. */
const LOOKS_AT_ONCE = 8;
/** A directory that was modified longer ago than this shows any later change in its times: the clock of FAT has steps of 2 s. */
const SETTLED_MS = 2_000;
/** Entries that are read at a time. A folder may have a million, and Node.js would make objects of all at once. */
const LOT = 256;

/** A folder as it was found last. */
interface Folder extends Branch<Folder> {
  readonly isLink: boolean;
  /** Record of the directory when it was listed; undefined if it has to be listed again, whatever its record is. */
  record: string | undefined;
  /** Text that tells the directory from all others, by whatever way it was reached. */
  identity: string;
  /** What was listed, without versions. */
  listed: BranchContent<Folder>;
  /** True for a Zarr store, whose only file is itself. */
  isStore: boolean;
  /** True while a call has no answer. No further call is made until it has, since each takes one of libuv's threads. */
  isHanging: boolean;
}

/** One look at all folders below a root. */
interface Look {
  readonly calls: FileCalls;
  readonly direct: ReturnType<typeof directReadsOf>;
  readonly filter: PathFilter;
  readonly withVersions: boolean;
  readonly signal: AbortSignal | undefined;
  /** Device of the root; undefined until that was found. */
  device: bigint | undefined;
  /** Returns the absolute path of a path relative to the root. */
  locate(path: string): string;
  /** Sets the state of a folder. */
  update(folder: Folder, content: BranchContent<Folder>, failure?: string): void;
}

/**
 * Creates the finder of a directory. A look asks for the times of every folder, and lists those that have changed.
 * @throws ZpublishError `invalid-config` for patterns that cannot be understood.
 */
export function createLocalFinder(options: FileFinderOptions): FileFinder {
  const { root, include, exclude, withVersions = false } = options;
  const filter = createPathFilter(include, exclude);
  const top = createFolder("", false);
  const limiter = createLimiter({
    maxRunning: CALLS_AT_ONCE,
    maxPerKey: CALLS_AT_ONCE,
    maxWaiting: Number.POSITIVE_INFINITY,
  });
  let findings: Findings | undefined;
  /** True if something has changed since the findings were made, also in a look that failed. */
  let hasChanged = true;

  async function look(signal?: AbortSignal): Promise<Findings> {
    signal?.throwIfAborted();
    const real = await realRoot(root);
    const calls = createFileCalls(real);
    await walk(top, {
      ...{ filter, withVersions, signal, device: undefined, direct: directReadsOf(real) },
      calls: { ...calls, call: (start, onLate) => limiter.run("", () => calls.call(start, onLate)) },
      locate: (path) => (path === "" ? real : `${real}/${path}`),
      update(folder, content, failure) {
        if (updateBranch(folder, content, failure)) hasChanged = true;
      },
    });
    if (findings === undefined || hasChanged)
      findings = await runCooperatively(gatherFindings(top, findings));
    hasChanged = false;
    return findings;
  }

  return { root, look, locationOf: (path) => (root.endsWith("/") ? `${root}${path}` : `${root}/${path}`) };
}

/** Creates a folder that was not looked at yet. */
function createFolder(path: string, isLink: boolean): Folder {
  const state = { record: undefined, identity: "", isStore: false, isHanging: false, failure: undefined };
  return { path, isLink, ...state, listed: NO_CONTENT, content: NO_CONTENT };
}

/**
 * Looks at all folders, and enters each by one way: those to which no link leads first, then links in the order of their paths. So loops
 * end, and every process finds the same.
 * @throws ZpublishError if the root cannot be listed
 */
async function walk(top: Folder, look: Look): Promise<void> {
  const entered = new Set<string>();
  let links = [top];
  while (links.length > 0) {
    let level = links.sort((a, b) => (a.path < b.path ? -1 : 1));
    links = [];
    while (level.length > 0) {
      const found = new Map<Folder, BranchContent<Folder>>();
      await workThrough(level, LOOKS_AT_ONCE, async (folder) => {
        const content = await visit(folder, look, folder === top);
        if (content !== undefined) found.set(folder, content);
      });
      const next: Folder[] = [];
      for (const folder of level) {
        const content = found.get(folder);
        if (content === undefined) continue;
        const isSecondWay = !folder.isStore && entered.has(folder.identity);
        if (isSecondWay) look.update(folder, NO_CONTENT, "it leads to a folder that is listed already");
        else look.update(folder, content);
        entered.add(folder.identity);
        for (const child of folder.content.below) (child.isLink ? links : next).push(child);
      }
      level = next;
    }
  }
}

/** Looks at a folder. @returns Its content; undefined if it has none, or if it has what it had, since it cannot be read. */
async function visit(
  folder: Folder,
  look: Look,
  isRoot: boolean,
): Promise<BranchContent<Folder> | undefined> {
  look.signal?.throwIfAborted();
  if (folder.isHanging) {
    if (isRoot) throw unreadableRoot("a call before has had no answer yet");
    return undefined;
  }
  try {
    const content = await lookAtFolder(look, folder);
    if (isRoot) assertFolder(folder, content);
    if (content === undefined)
      look.update(folder, NO_CONTENT, folder.isLink ? "it is a link that leads nowhere" : undefined);
    return content;
  } catch (error) {
    if (error instanceof ZpublishError) throw error;
    if (error instanceof NoAnswerError && error.answered !== undefined) {
      folder.isHanging = true;
      void error.answered.then(() => {
        folder.isHanging = false;
      });
    }
    if (isRoot) throw unreadableRoot(codeOf(error), error);
    look.update(folder, folder.content, `the folder cannot be read (${codeOf(error)})`);
    return undefined;
  }
}

/** @throws ZpublishError if a root is no folder of datasets */
function assertFolder(top: Folder, content: BranchContent<Folder> | undefined): void {
  if (content === undefined) throw unreadableRoot("expected a directory");
  if (!top.isStore) return;
  top.isStore = false;
  top.record = undefined;
  throw new ZpublishError("invalid-config", "expected a folder of datasets, found a Zarr store");
}

/** Returns what is in a folder; undefined if there is no such folder any more. @throws what the file system throws, NoAnswerError */
async function lookAtFolder(look: Look, folder: Folder): Promise<BranchContent<Folder> | undefined> {
  if (folder.isStore && !look.withVersions) return folder.listed;
  const nowMs = Date.now();
  const found = await statPath(look.calls, look.locate(folder.path));
  if (!found?.isDirectory()) {
    folder.record = undefined;
    folder.isStore = false;
    return undefined;
  }
  look.device ??= found.dev;
  folder.identity = `${found.dev.toString(36)}.${found.ino.toString(36)}`;
  const record = [recordOfStats(found), found.ctimeNs.toString(36)].join(".");
  if (record !== folder.record) {
    const ageMs = nowMs - Math.max(Number(found.mtimeMs), Number(found.ctimeMs));
    folder.listed = await listFolder(look, folder, found.dev === look.device);
    folder.record = ageMs > SETTLED_MS ? record : undefined;
  }
  return look.withVersions ? addVersions(look, folder, found.dev === look.device) : folder.listed;
}

/**
 * Adds the versions of files. One that cannot be read has the version that it had.
 * @param isOfRoot Whether the folder is on the device of the root.
 * @throws NoAnswerError
 */
async function addVersions(
  { calls, locate, device, direct }: Look,
  { listed, content }: Folder,
  isOfRoot: boolean,
): Promise<BranchContent<Folder>> {
  const versionHere = (path: string, { isStore }: FoundFile) =>
    isOfRoot && device !== undefined && calls.isLocal && direct.isQuick
      ? direct.run(() => versionNow(path, isStore, device))
      : undefined;
  const before = new Map(content.files.map((file) => [file.path, file]));
  const files: (FoundFile | undefined)[] = listed.files.slice();
  const problems = [...listed.problems];
  await workThrough(listed.files.entries(), LOOKS_AT_ONCE, async ([index, file]) => {
    const { path } = file;
    const known = before.get(path);
    files[index] = known;
    try {
      const place = locate(path);
      const version = versionHere(place, file) ?? (await versionOf(calls, place, file));
      if (version === undefined) files[index] = undefined;
      else if (known?.version !== version) files[index] = { ...file, version };
      if (version === undefined && file.isStore) problems.push({ path, reason: NO_DOCUMENT });
    } catch (error) {
      if (error instanceof NoAnswerError) throw error;
      problems.push({ path, reason: `it cannot be read (${codeOf(error)})` });
    }
  });
  return { below: listed.below, files: files.filter((file) => file !== undefined), problems };
}

/** Returns the version of a file or store; undefined if there is none. @throws what the file system throws, NoAnswerError */
async function versionOf(
  calls: FileCalls,
  path: string,
  { isStore: isStored }: FoundFile,
): Promise<string | undefined> {
  if (isStored) return storeVersion(calls, path);
  const found = await statPath(calls, path);
  return found?.isFile() ? recordOfStats(found) : undefined;
}

/** Lists a folder, and follows the links in it. @throws what the file system throws, NoAnswerError */
async function listFolder(look: Look, folder: Folder, isQuick: boolean): Promise<BranchContent<Folder>> {
  const { calls, filter } = look;
  const directory = look.locate(folder.path);
  const below: Folder[] = [];
  const files: FoundFile[] = [];
  const problems: PathProblem[] = [];
  const links: string[] = [];
  const before = new Map(folder.listed.below.map((child) => [child.path, child]));
  const slice = createSlice();
  let lots = 0;
  let isAStore = false;

  function take(path: string, isDirectory: boolean, isLink: boolean): void {
    const isNamedStore = isDirectory && path.endsWith(".zarr");
    const isTaken = isDirectory ? mayBeDirectory(filter, path) : filter.takesFile(path);
    if (!isTaken || (isNamedStore && !filter.takesStore(path))) return;
    // Node.js puts U+FFFD for what is not UTF-8, and under such a name there is no file.
    const reason = path.includes("\ufffd") ? "the name is no valid UTF-8" : nameProblem(path);
    if (reason !== undefined) problems.push({ path, reason });
    else if (!isDirectory || isNamedStore) files.push({ path, isStore: isDirectory });
    else {
      const known = before.get(path);
      below.push(known?.isLink === isLink ? known : createFolder(path, isLink));
    }
  }

  async function takeLot(lot: readonly Dirent[]): Promise<boolean> {
    isAStore = hasStore(lot.map(({ name }) => name));
    // A store of a million chunks may have its document at the end.
    if (!isAStore && lots++ === 1) isAStore = await isStore(calls, directory);
    if (isAStore) return false;
    for (const entry of lot) {
      if (slice.isOver()) await slice.next();
      const path = childPath(folder, entry.name);
      if (!entry.isSymbolicLink()) {
        if (entry.isFile() || entry.isDirectory()) take(path, entry.isDirectory(), false);
      } else if (filter.takesFile(path) || mayBeDirectory(filter, path)) links.push(path);
    }
    return true;
  }

  if (folder.path === "" || filter.entersFolder(folder.path))
    await readFolder(calls, directory, isQuick && calls.isLocal, takeLot);
  else isAStore = await isStore(calls, directory);
  folder.isStore = isAStore;
  const itself = filter.takesStore(folder.path) ? [{ path: folder.path, isStore: true }] : [];
  if (isAStore) return { ...NO_CONTENT, files: itself };
  await workThrough(links, LOOKS_AT_ONCE, async (path) => {
    try {
      const found = await statPath(calls, look.locate(path));
      if (found === undefined) problems.push({ path, reason: "it is a link that leads nowhere" });
      else if (found.isFile() || found.isDirectory()) take(path, found.isDirectory(), true);
    } catch (error) {
      if (error instanceof NoAnswerError) throw error;
      problems.push({ path, reason: `it is a link that cannot be followed (${codeOf(error)})` });
    }
  });
  return { below: below.slice(), files: files.slice(), problems };
}

/** Tells whether names in a folder make it a store. A repository has fewer entries than a lot. */
function hasStore(names: readonly string[]): boolean {
  return names.some((name) => ROOT_DOCUMENTS.includes(name)) || looksLikeRepository(names);
}

function mayBeDirectory({ takesStore, entersFolder }: PathFilter, path: string): boolean {
  return takesStore(path) || entersFolder(path);
}

/**
 * Reads the entries of a directory in lots.
 * @param isQuick Whether it is on a local file system. Otherwise all entries are read at once: if a file system does not tell what is a
 * directory, `fs.Dir` finds out by calls that the event loop waits for, and `readdir` by others.
 * @throws what the file system throws, NoAnswerError, what `work` throws
 */
async function readFolder(
  calls: FileCalls,
  directory: string,
  isQuick: boolean,
  work: (lot: readonly Dirent[]) => Promise<boolean>,
): Promise<void> {
  if (!isQuick) {
    const all = await calls.call<Dirent[]>((done) => readdir(directory, { withFileTypes: true }, done));
    for (let from = 0; from < all.length; from += LOT) if (!(await work(all.slice(from, from + LOT)))) return;
    return;
  }
  const close = (dir: Dir) => dir.close(() => undefined);
  const dir = await calls.call<Dir>((done) => opendir(directory, { bufferSize: LOT }, done), close);
  try {
    for (;;) {
      const lot = await calls.call<Dirent[]>((done) => readLot(dir, [], done));
      if (!(await work(lot)) || lot.length < LOT) return;
    }
  } finally {
    // After a call that hangs, if there is one.
    close(dir);
  }
}

function readLot(dir: Dir, lot: Dirent[], done: (error: Error | null, lot: Dirent[]) => void): void {
  dir.read((error, entry) => {
    if (error !== null) return done(error, lot);
    if (entry !== null) lot.push(entry);
    if (entry === null || lot.length === LOT) done(null, lot);
    else readLot(dir, lot, done);
  });
}
