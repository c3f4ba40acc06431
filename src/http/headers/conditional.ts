/** Result of comparing a list of entity tags with the current one. `any` stands for `*`, which matches anything that exists. */
export type TagMatch = "match" | "no-match" | "any";

/** One tag of a list, with the comma and the space around it; RFC 9110 §8.8.3 allows nearly all characters inside. */
const ENTITY_TAG = /[\s,]*(W\/)?("[\x21\x23-\x7e\x80-\uffff]*")[ \t]*(?=,|$)/y;

/**
 * Compares an `If-None-Match` header, weakly (RFC 9110 §13.1.2): a tag that a proxy has weakened still names the same
 * content. Tags behind a malformed one are ignored.
 */
export function matchIfNoneMatch(header: string, etag: string): TagMatch {
  // Nearly all clients send the one tag that they have.
  return header === etag ? "match" : matchTags(header, (tag) => tag === etag);
}

/** Compares an `If-Match` header, strongly (§13.1.1): a weakened tag is no match. Any of `etags` will do. */
export function matchIfMatch(header: string, etags: readonly string[]): TagMatch {
  return matchTags(header, (tag, weak) => !weak && etags.includes(tag));
}

/** Whether an `If-Range` header allows a range (§13.1.5). A date never does: no answer has Last-Modified. */
export function allowsRange(header: string, etag: string): boolean {
  return header.trim() === etag;
}

function matchTags(header: string, matches: (tag: string, weak: boolean) => boolean): TagMatch {
  if (header.trim() === "*") return "any";
  ENTITY_TAG.lastIndex = 0;
  for (let found = ENTITY_TAG.exec(header); found !== null; found = ENTITY_TAG.exec(header)) {
    if (matches(found[2] ?? "", found[1] !== undefined)) return "match";
  }
  return "no-match";
}
