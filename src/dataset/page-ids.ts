import { placeOfId } from "./providers/update-ids.js";

/** Part of a list of ids that is asked for. */
export interface IdSelection {
  /** Beginning of the ids. */
  readonly prefix: string;
  /** Id behind which the page begins. It need not exist any more. Undefined for the first page. */
  readonly after: string | undefined;
  /** Longest page. */
  readonly limit: number;
}

/** A page of ids. */
export interface IdPage {
  readonly ids: readonly string[];
  /** Whether further ids follow. */
  readonly hasMore: boolean;
}

/**
 * Returns a page of ids. If datasets come and go between pages, each of the others is on exactly one of them.
 * @param ids Configured ids, then others, sorted.
 * @param configuredCount Number of configured ids.
 */
export function pageOfIds(
  ids: readonly string[],
  configuredCount: number,
  { prefix, after, limit }: IdSelection,
): IdPage {
  const configured = ids.slice(0, configuredCount);
  const place = after === undefined ? -1 : configured.indexOf(after);
  const isAmongConfigured = after === undefined || place >= 0;
  const page = isAmongConfigured ? configured.slice(place + 1).filter((id) => id.startsWith(prefix)) : [];
  let next = placeOfId(ids, prefix, configuredCount);
  if (after !== undefined && place < 0) {
    next = Math.max(next, placeOfId(ids, after, configuredCount));
    if (ids[next] === after) next++;
  }
  for (; page.length <= limit && ids[next]?.startsWith(prefix); next++) page.push(ids[next] as string);
  return { ids: page.slice(0, limit), hasMore: page.length > limit };
}
