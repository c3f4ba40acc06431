/**
 * Percent-encodes a path segment for a relative link, quotes included: fsspec's link pattern ends at either quote. Lone
 * surrogates become U+FFFD.
 */
export function encodeSegment(segment: string): string {
  return encodeURIComponent(segment.replace(/\p{Cs}/gu, "\ufffd")).replace(/[!'()*]/g, percentEncode);
}

/** Percent-encodes each segment of a path: `/a b/c` → `/a%20b/c`. */
export function encodePath(path: string): string {
  return path.split("/").map(encodeSegment).join("/");
}

function percentEncode(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
}
