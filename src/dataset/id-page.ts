import type { CooperativeTask } from "../event-loop/cooperative-task.js";
import { placeOfId } from "./providers/provider-list.js";

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
  const place = placeOfId(ids, after, configuredCount);
  return ids[place] === after ? place + 1 : place;
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
  let next = Math.max(begin, placeOfId(ids, prefix, configuredCount));
  for (; found.length <= limit && ids[next]?.startsWith(prefix); next++) found.push(ids[next]!);
  return { ids: found.slice(0, limit), hasMore: found.length > limit };
}
