import { createLimiter } from "../collections/limiter.js";
import { ZpublishError } from "../errors.js";
import { type CooperativeTask, runCooperatively } from "../event-loop/cooperative-task.js";
import { mapInLots } from "../event-loop/map-in-lots.js";
import { workThrough } from "../event-loop/work-through.js";
import { codeOf, createFileCalls, type FileCalls, NoAnswerError } from "../stores/file-calls.js";
import type { FileFinder, FileFinderOptions, Findings, FoundFile, Problem } from "./file-finder.js";
import { assembleFindings } from "./findings.js";
import { createFolder, type Folder, type LocalLook } from "./folder.js";
import { lookAtFolder } from "./look-at-folder.js";
import { createPathFilter } from "./path-filter.js";
import { realRoot, unreadableRoot } from "./real-root.js";

/** Calls to the file system at a time: libuv's threads are for chunks. */
const CALLS_AT_ONCE = 4;
/** Folders that are looked at at a time. */
const FOLDERS_AT_ONCE = 8;

/**
 * Creates the finder of a directory. A look asks for the times of every folder, and lists those that have changed.
 * @throws ZpublishError `invalid-config` for patterns that cannot be understood.
 */
export function createLocalFinder(options: FileFinderOptions): FileFinder {
  const { root, include, exclude, withVersions = false } = options;
  const filter = createPathFilter(include, exclude);
  const top = createFolder("");
  const limiter = createLimiter({
    maxRunning: CALLS_AT_ONCE,
    maxPerKey: CALLS_AT_ONCE,
    maxWaiting: Number.POSITIVE_INFINITY,
  });
  let findings: Findings | undefined;
  /** True if something has changed since the findings were made, also in a look that failed. */
  let hasChanged = true;
  let secondWays: ReadonlyMap<Folder, string> = new Map();

  async function look(signal?: AbortSignal): Promise<Findings> {
    signal?.throwIfAborted();
    const real = await realRoot(root);
    const calls = limited(createFileCalls(real));
    const walk = createWalk(
      {
        ...{ calls, filter, withVersions },
        locate: (path) => (path === "" ? real : `${real}/${path}`),
        recordChange() {
          hasChanged = true;
        },
      },
      signal,
    );
    await walk.run(top);
    if (findings === undefined || hasChanged || !isSameMap(secondWays, walk.secondWays)) {
      secondWays = walk.secondWays;
      findings = await runCooperatively(gather(top, secondWays, findings));
      hasChanged = false;
    }
    return findings;
  }

  function limited(calls: FileCalls): FileCalls {
    return { ...calls, call: (start, onLate) => limiter.run("", () => calls.call(start, onLate)) };
  }

  return { root, look, locationOf: (path) => (root.endsWith("/") ? `${root}${path}` : `${root}/${path}`) };
}

/** A walk through all folders. */
interface Walk {
  run(top: Folder): Promise<void>;
  /** Folders that were reached by another way, too, with that way. Their content does not count. */
  readonly secondWays: ReadonlyMap<Folder, string>;
}

/**
 * Creates a walk. Folders without links in their path come first, and links follow in the order of their paths: so it does not depend
 * on chance which of two ways to a folder counts.
 */
function createWalk(look: LocalLook, signal: AbortSignal | undefined): Walk {
  /** Path by identity of every folder that counts. */
  const ways = new Map<string, string>();
  const secondWays = new Map<Folder, string>();
  let links: Folder[] = [];

  /** Looks at a folder. @returns False if there is no such folder, or if what is below it stays as it was. */
  async function visit(folder: Folder): Promise<boolean> {
    signal?.throwIfAborted();
    if (folder.isHanging) return false;
    try {
      const exists = await lookAtFolder(look, folder);
      setFailure(folder, undefined);
      return exists;
    } catch (error) {
      if (error instanceof NoAnswerError && error.answered !== undefined) {
        folder.isHanging = true;
        void error.answered.then(() => {
          folder.isHanging = false;
        });
      }
      if (folder.path === "") throw unreadableRoot(codeOf(error), error);
      setFailure(folder, `the folder cannot be read (${codeOf(error)})`);
      return false;
    }
  }

  function setFailure(folder: Folder, failure: string | undefined): void {
    if (folder.failure === failure) return;
    folder.failure = failure;
    look.recordChange();
  }

  /**
   * Records the way to a folder, and returns the folders in it; none if another way led to it before. Without links there may be several
   * ways to a mounted directory, but no loops.
   */
  function enter(folder: Folder, isBehindLink: boolean): readonly Folder[] {
    if (folder.isStore) return [];
    const first = ways.get(folder.identity);
    if (first !== undefined && isBehindLink) {
      secondWays.set(folder, first);
      return [];
    }
    if (first === undefined || folder.path < first) ways.set(folder.identity, folder.path);
    for (const child of folder.content.folders) if (child.isLink) links.push(child);
    return folder.content.folders.filter(({ isLink }) => !isLink);
  }

  async function descend(folders: readonly Folder[], isBehindLink: boolean): Promise<void> {
    await workThrough(folders, FOLDERS_AT_ONCE, async (folder, add) => {
      if (await visit(folder)) add(enter(folder, isBehindLink));
    });
  }

  return {
    secondWays,
    async run(top) {
      if (top.isHanging) throw unreadableRoot("a call before has had no answer yet");
      if (!(await visit(top))) throw unreadableRoot("expected a directory");
      if (top.isStore)
        throw new ZpublishError("invalid-config", "expected a folder of datasets, found a Zarr store");
      await descend(enter(top, false), false);
      while (links.length > 0) {
        const round = links.sort((a, b) => (a.path < b.path ? -1 : 1));
        links = [];
        const exist = await mapInLots(round, FOLDERS_AT_ONCE, visit);
        for (const [index, folder] of round.entries())
          if (exist[index]) await descend(enter(folder, true), true);
      }
    },
  };
}

function isSameMap<K, V>(a: ReadonlyMap<K, V>, b: ReadonlyMap<K, V>): boolean {
  return a.size === b.size && [...a].every(([key, value]) => b.get(key) === value);
}

/** Gathers what is in all folders. */
function* gather(
  top: Folder,
  secondWays: ReadonlyMap<Folder, string>,
  before: Findings | undefined,
): CooperativeTask<Findings> {
  const files: FoundFile[] = [];
  const problems: Problem[] = [];
  const folders = [top];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    yield;
    const { path, content, failure } = folder;
    const first = secondWays.get(folder);
    if (first !== undefined) {
      const isLoop = first === "" || path.startsWith(`${first}/`);
      const reason = isLoop
        ? "it is a link to a folder it is in"
        : `it is a second way to the folder '${first}'`;
      problems.push({ path, reason });
      continue;
    }
    if (failure !== undefined) problems.push({ path, reason: failure });
    for (const file of content.files) {
      files.push(file);
      if (files.length % 512 === 0) yield;
    }
    for (const problem of content.nameProblems) problems.push(problem);
    for (const problem of content.fileProblems) problems.push(problem);
    for (const child of content.folders) folders.push(child);
  }
  return yield* assembleFindings(files, problems, before);
}
