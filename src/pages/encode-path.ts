/**
 * One path segment as a relative link can hold it: percent-encoded UTF-8, quotes too (fsspec's link pattern ends at
 * either quote). Lone surrogates become U+FFFD instead of an exception.
 */
export function encodeSegment(segment: string): string {
  return encodeURIComponent(segment.replace(/\p{Cs}/gu, "\ufffd")).replace(/[!'()*]/g, percentEncode);
}

/** A path of segments between slashes, each encoded: `/a b/c` → `/a%20b/c`. */
export function encodePath(path: string): string {
  return path.split("/").map(encodeSegment).join("/");
}

function percentEncode(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
}
