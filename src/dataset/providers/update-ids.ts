import { problemOfDatasetId } from "../../config/dataset-schema.js";
import { describeValue } from "../../config/value-schemas.js";
import type { CooperativeTask } from "../../event-loop/cooperative-task.js";
import { sortCooperatively } from "../../event-loop/sort-cooperatively.js";

/** Ids of one provider, after a list of it. Its arrays are sorted, have each id once, and never change. */
export interface ListedIds {
  /** Without the prefix. */
  readonly own: readonly string[];
  /** The same ids with the prefix. The same array as before if nothing has changed. */
  readonly ids: readonly string[];
  /** Those of `own` that the last list that counts did not have: they go if the next one does not have them either. */
  readonly missed: readonly string[];
  /** True if the list did not have others of `own`, and did not count. */
  readonly isBehind: boolean;
}

/** The ids of a provider that was not asked yet. */
export const NO_IDS: ListedIds = { own: [], ids: [], missed: [], isBehind: false };

/** Ids that are worked on in one step, which takes a fraction of a millisecond. */
export const STEP_IDS = 512;

/** Compares ids by their UTF-16 code units: the order is the same on every machine. */
export function compareIds(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/**
 * Returns the ids after another list. An id goes when two lists in a row that count do not have it.
 * @param received The list, in any order, without the prefix. A plugin may have made it, so its items may be anything.
 * @param onProblem Called with items that cannot be ids, and the reason.
 * @param counts False for a list between two periods: it may be so soon after another that both find a file that is just replaced
 * missing. Default true.
 */
export function* updateIds(
  before: ListedIds,
  received: readonly unknown[],
  prefix: string,
  onProblem: (item: string, reason: string) => void,
  counts = true,
): CooperativeTask<ListedIds> {
  const listed = yield* sortedSteps(yield* textsOf(received, prefix, onProblem));
  const own: string[] = [];
  const ids: string[] = [];
  const missed: string[] = [];
  let hasChanged = false;
  let isBehind = false;
  let steps = 0;
  let old = 0;
  let oldMissed = 0;
  for (let next = 0; next < listed.length || old < before.own.length; ) {
    if (++steps % STEP_IDS === 0) yield;
    const id = listed[next] as string;
    const oldId = before.own[old] as string;
    const order = next === listed.length ? 1 : old === before.own.length ? -1 : compareIds(id, oldId);
    if (order > 0) {
      while (compareIds(before.missed[oldMissed] ?? oldId, oldId) < 0) oldMissed++;
      const isMissed = before.missed[oldMissed] === oldId;
      if (counts && isMissed) hasChanged = true;
      else {
        own.push(oldId);
        ids.push(before.ids[old] as string);
        if (counts || isMissed) missed.push(oldId);
        else isBehind = true;
      }
      old++;
      continue;
    }
    next++;
    while (listed[next] === id) {
      next++;
      onProblem(prefix + id, "expected an id once in a list, received it twice");
    }
    if (order === 0) {
      // The string from before, so that those of the list need not stay in memory.
      own.push(oldId);
      ids.push(before.ids[old++] as string);
      continue;
    }
    const problem = problemOfDatasetId(prefix + id);
    if (problem !== undefined) {
      onProblem(prefix + id, problem);
      continue;
    }
    hasChanged = true;
    own.push(id);
    ids.push(prefix + id);
  }
  return hasChanged ? { own, ids, missed, isBehind } : { own: before.own, ids: before.ids, missed, isBehind };
}

function* textsOf(
  received: readonly unknown[],
  prefix: string,
  onProblem: (item: string, reason: string) => void,
): CooperativeTask<string[]> {
  const texts: string[] = [];
  for (let index = 0; index < received.length; index++) {
    if (index % STEP_IDS === 0) yield;
    const item = received[index];
    if (typeof item !== "string") onProblem(describeValue(item), "expected a text");
    else if (item === "") onProblem(prefix, "expected a non-empty id");
    else texts.push(item);
  }
  return texts;
}

/** Sorts ids, most of which are sorted already. */
function* sortedSteps(ids: readonly string[]): CooperativeTask<readonly string[]> {
  for (let index = 1; index < ids.length; index++) {
    if (index % STEP_IDS === 0) yield;
    if ((ids[index - 1] as string) > (ids[index] as string)) return yield* sortCooperatively(ids, compareIds);
  }
  return ids;
}

/** Tells whether two lists have the same items in the same order. */
export function* isSameList(one: readonly unknown[], other: readonly unknown[]): CooperativeTask<boolean> {
  if (one.length !== other.length) return false;
  for (let index = 0; index < one.length; index++) {
    if (index % STEP_IDS === 0) yield;
    if (one[index] !== other[index]) return false;
  }
  return true;
}

/** Index of configured ids, which are no provider's. */
export const CONFIGURED = -1;

/**
 * Merges the sorted ids of providers behind configured ones. Of ids that come twice, the first counts: configured ones, then those of
 * earlier providers.
 * @param before Its ids are returned again if they are the same.
 * @param onClash Called with an id that is left out, and the indices of the list that has it and of the one that counts, which
 * is {@link CONFIGURED} if the id is configured.
 */
export function* mergeIds(
  configured: readonly string[],
  lists: readonly (readonly string[])[],
  before: readonly string[],
  onClash: (id: string, list: number, winner: number) => void,
): CooperativeTask<readonly string[]> {
  const [only, ...others] = lists;
  if (configured.length === 0 && only !== undefined && others.length === 0) return only;
  const taken = new Set(configured);
  const places = lists.map(() => 0);
  const ids = [...configured];
  let isSame = configured.every((id, index) => id === before[index]);
  for (let steps = 1; ; steps++) {
    if (steps % STEP_IDS === 0) yield;
    let first: string | undefined;
    for (let list = 0; list < lists.length; list++) {
      const id = lists[list]?.[places[list] as number];
      if (id !== undefined && (first === undefined || id < first)) first = id;
    }
    if (first === undefined) break;
    let winner: number | undefined = taken.has(first) ? CONFIGURED : undefined;
    for (let list = 0; list < lists.length; list++) {
      if (lists[list]?.[places[list] as number] !== first) continue;
      (places[list] as number)++;
      if (winner !== undefined) onClash(first, list, winner);
      winner ??= list;
    }
    if (taken.has(first)) continue;
    isSame &&= before[ids.length] === first;
    ids.push(first);
  }
  return isSame && ids.length === before.length ? before : ids;
}

/** Tells whether sorted ids have an id. */
export function hasId(sorted: readonly string[], id: string): boolean {
  return sorted[placeOfId(sorted, id)] === id;
}

/** Returns the index of the first id that is not before another one, in ids that are sorted from `begin` on. */
export function placeOfId(sorted: readonly string[], id: string, begin = 0): number {
  let low = begin;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] as string) < id) low = middle + 1;
    else high = middle;
  }
  return low;
}
