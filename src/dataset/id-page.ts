import { firstNotLess } from "../collections/sorted-lists.js";
import type { CooperativeTask } from "../event-loop/cooperative-task.js";

/** Ids that are worked on in one step, which takes a fraction of a millisecond. */
const STEP_IDS = 512;

/** Part of a list of ids that is shown at a time. */
export interface IdPageQuery {
  /** Text that ids contain, in upper or lower case; empty for all ids. */
  readonly filter: string;
  /** Id behind which the page begins; it may be one that is gone. Empty for the first page. */
  readonly after: string;
  /** Maximum of ids on the page. */
  readonly limit: number;
}

/** A page of a list of ids. */
export interface IdPage {
  readonly ids: readonly string[];
  /** Number of ids that pass the filter. */
  readonly matching: number;
  /** Number of those before the page. */
  readonly skipped: number;
  /** `after` of the page before this one, empty for the first page; undefined if this is the first. */
  readonly previous: string | undefined;
  /** `after` of the next page; undefined if this is the last. */
  readonly next: string | undefined;
}

/**
 * Finds a page of a list of ids.
 * @param all All ids: some that are configured, in any order, then others that are sorted.
 * @param configuredCount Number of the former.
 */
export function* idPageSteps(
  all: readonly string[],
  configuredCount: number,
  { filter, after, limit }: IdPageQuery,
): CooperativeTask<IdPage> {
  let matching = all;
  let configured = configuredCount;
  if (filter !== "") {
    const found: string[] = [];
    const text = filter.toLowerCase();
    configured = 0;
    for (const [index, id] of all.entries()) {
      if (index % STEP_IDS === 0) yield;
      if (!id.toLowerCase().includes(text)) continue;
      found.push(id);
      if (index < configuredCount) configured++;
    }
    matching = found;
  }
  const skipped = after === "" ? 0 : indexBehind(matching, configured, after);
  const ids = matching.slice(skipped, skipped + limit);
  return {
    ids,
    matching: matching.length,
    skipped,
    previous: skipped === 0 ? undefined : (matching[skipped - limit - 1] ?? ""),
    next: skipped + ids.length < matching.length ? ids.at(-1) : undefined,
  };
}

/** Returns the index of the first id behind another one, which may be gone if it is none of those configured. */
function indexBehind(ids: readonly string[], configuredCount: number, after: string): number {
  const index = ids.slice(0, configuredCount).indexOf(after);
  if (index >= 0) return index + 1;
  const place = firstNotLess(ids, after, configuredCount);
  return ids[place] === after ? place + 1 : place;
}

/** Separates the names of folders in an id; what begins with a folder's name and it is below the folder. */
export const FOLDER_END = "~";
/** The character after {@link FOLDER_END}: all ids below a folder are before it. */
const AFTER_FOLDER = "\u007f";

/** What lies below a folder of ids. */
export interface IdFolder {
  /** Folder that is meant: the one asked for, or the only one in it if that has nothing else. */
  readonly folder: string;
  /** Ids below the folder, at any depth. */
  readonly below: readonly string[];
  /** Number of configured ones at their beginning. */
  readonly configuredCount: number;
  /** Ids in the folder itself, and in place of the ids of each folder in it, the beginning that these have in common: `archive~2024~`. */
  readonly entries: readonly string[];
  /** Number of ids of each folder, by its beginning. */
  readonly counts: ReadonlyMap<string, number>;
}

/**
 * Finds what lies below a folder of ids.
 * @param all As in {@link idPageSteps}.
 * @param folder Names with {@link FOLDER_END} between them; empty for all ids.
 */
export function* idFolderSteps(
  all: readonly string[],
  configuredCount: number,
  folder: string,
): CooperativeTask<IdFolder> {
  const prefix = folder === "" ? "" : folder + FOLDER_END;
  const configured = folder === "" ? all.slice(0, configuredCount) : [];
  const begin = firstNotLess(all, prefix, configuredCount);
  const end = folder === "" ? all.length : firstNotLess(all, folder + AFTER_FOLDER, configuredCount);
  const entries = [...configured];
  const counts = new Map<string, number>();
  for (let at = begin; at < end; ) {
    if (entries.length % STEP_IDS === 0) yield;
    const id = all[at]!;
    const cut = id.indexOf(FOLDER_END, prefix.length);
    if (cut < 0) {
      entries.push(id);
      at++;
      continue;
    }
    const next = firstNotLess(all, id.slice(0, cut) + AFTER_FOLDER, at);
    entries.push(id.slice(0, cut + 1));
    counts.set(id.slice(0, cut + 1), next - at);
    at = next;
  }
  const [only = ""] = entries;
  if (entries.length === 1 && counts.size === 1)
    return yield* idFolderSteps(all, configuredCount, only.slice(0, -FOLDER_END.length));
  const below =
    all.length === configured.length + end - begin ? all : [...configured, ...all.slice(begin, end)];
  return { folder, below, configuredCount: configured.length, entries, counts };
}

/** Part of a list of ids that a program asks for. */
export interface IdSelection {
  /** Beginning of the ids. */
  readonly prefix: string;
  /** Id behind which it begins; it may be one that is gone. Undefined for the first one. */
  readonly after: string | undefined;
  /** Maximum of ids. */
  readonly limit: number;
}

/**
 * Selects ids by their beginning. If datasets come and go between selections, one behind the other, each of those that stay is in
 * exactly one of them.
 * @param ids Some that are configured, in any order, then others that are sorted.
 * @param configuredCount Number of the former.
 */
export function selectIds(
  ids: readonly string[],
  configuredCount: number,
  { prefix, after, limit }: IdSelection,
): { readonly ids: readonly string[]; readonly hasMore: boolean } {
  const begin = after === undefined ? 0 : indexBehind(ids, configuredCount, after);
  const found = ids.slice(begin, Math.max(begin, configuredCount)).filter((id) => id.startsWith(prefix));
  let next = Math.max(begin, firstNotLess(ids, prefix, configuredCount));
  for (; found.length <= limit && ids[next]?.startsWith(prefix); next++) found.push(ids[next]!);
  return { ids: found.slice(0, limit), hasMore: found.length > limit };
}
