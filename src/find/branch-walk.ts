import { messageOf, ZpublishError } from "../errors.js";
import { type CooperativeTask, runCooperatively } from "../event-loop/cooperative-task.js";
import { workThrough } from "../event-loop/work-through.js";
import type { Findings, FoundFile, Problem } from "./file-finder.js";
import { assembleFindings } from "./findings.js";

/** Branches that are looked at at a time. */
const BRANCHES_AT_ONCE = 8;
/**
 * Branches that a look after the first asks for at most: the root, new ones, and those that were not asked for for the longest time. A
 * bucket has no times of its prefixes, and every listing is paid for: 256 a minute are two dollars a day.
 */
const BRANCHES_PER_LOOK = 256;

/** A branch of a tree that does not tell what has changed in it, as it was found last. */
export interface Branch<B> {
  /** Relative to the root, without slash at the end; empty for the root. */
  readonly path: string;
  /** Number of the look that asked for it last; 0 if none did. */
  lookedAtIn: number;
  /** Why it could not be read in the last look; undefined if it could. */
  failure: string | undefined;
  content: BranchContent<B>;
}

/** The content of a branch. */
export interface BranchContent<B> {
  readonly below: readonly B[];
  /** Files and stores, in any order. */
  readonly files: readonly FoundFile[];
  readonly problems: readonly Problem[];
}

/** How the branches of a tree are looked at. */
export interface BranchWalkOptions<B> {
  readonly top: B;
  /**
   * Looks at a branch.
   * @returns Its content; the same object as before if nothing has changed.
   * @throws ZpublishError `source-unreadable`: the branch has what it had; `invalid-config`: the look fails.
   */
  readonly lookAt: (branch: B, signal: AbortSignal | undefined) => Promise<BranchContent<B>>;
  /** Tells if a branch has to be looked at again. */
  readonly isDue: (branch: B) => boolean;
}

/**
 * Creates a walk through a tree, which returns what it found. The first walk sees all branches, each later one a bounded number of them.
 * One that is aborted is continued by the next.
 * @throws ZpublishError `source-unreadable` if the root cannot be read; `invalid-config`
 */
export function createBranchWalk<B extends Branch<B>>({
  top,
  lookAt,
  isDue,
}: BranchWalkOptions<B>): (signal?: AbortSignal) => Promise<Findings> {
  let findings: Findings | undefined;
  /** True if something has changed since the findings were made, also in a look that failed. */
  let hasChanged = true;
  let looks = 0;

  async function visit(branch: B, signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    const { content, failure } = branch;
    try {
      branch.content = await lookAt(branch, signal);
      branch.failure = undefined;
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof ZpublishError && error.code === "invalid-config") throw error;
      branch.failure = messageOf(error);
    }
    branch.lookedAtIn = looks;
    if (branch.content !== content || branch.failure !== failure) hasChanged = true;
  }

  return async (signal) => {
    looks++;
    await visit(top, signal);
    if (top.failure !== undefined)
      throw new ZpublishError("source-unreadable", `it cannot be listed: ${top.failure}`);
    const isFirst = findings === undefined;
    let left = isFirst ? Number.POSITIVE_INFINITY : BRANCHES_PER_LOOK - 1;
    const due = await runCooperatively(
      dueBelow(top, (branch) =>
        isFirst ? branch.lookedAtIn === 0 : branch.lookedAtIn !== looks && isDue(branch),
      ),
    );
    await workThrough(due.slice(0, left), BRANCHES_AT_ONCE, async (branch, add) => {
      if (branch.lookedAtIn === looks || left-- <= 0) return;
      await visit(branch, signal);
      add(branch.content.below.filter(({ lookedAtIn }) => lookedAtIn === 0));
    });
    if (findings === undefined || hasChanged) {
      findings = await runCooperatively(gather(top, findings));
      hasChanged = false;
    }
    return findings;
  };
}

/** Returns branches that are due: new ones first, then those of the oldest looks. */
function* dueBelow<B extends Branch<B>>(
  top: B,
  isDue: (branch: B) => boolean,
): CooperativeTask<readonly B[]> {
  const byLook = new Map<number, B[]>();
  const all = [top];
  for (let branch = all.pop(); branch !== undefined; branch = all.pop()) {
    yield;
    for (const below of branch.content.below) all.push(below);
    if (branch === top || !isDue(branch)) continue;
    const group = byLook.get(branch.lookedAtIn);
    if (group === undefined) byLook.set(branch.lookedAtIn, [branch]);
    else group.push(branch);
  }
  return [...byLook].sort(([a], [b]) => a - b).flatMap(([, group]) => group);
}

/** Gathers what is in all branches. */
function* gather<B extends Branch<B>>(top: B, before: Findings | undefined): CooperativeTask<Findings> {
  const files: FoundFile[] = [];
  const problems: Problem[] = [];
  const all = [top];
  for (let branch = all.pop(); branch !== undefined; branch = all.pop()) {
    yield;
    const { path, content, failure } = branch;
    if (failure !== undefined) problems.push({ path, reason: `it cannot be read: ${failure}` });
    for (const file of content.files) {
      files.push(file);
      if (files.length % 512 === 0) yield;
    }
    for (const problem of content.problems) problems.push(problem);
    for (const below of content.below) all.push(below);
  }
  return yield* assembleFindings(files, problems, before);
}
