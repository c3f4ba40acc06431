/** Reason why a segment is no valid string. */
export type SegmentFault = "percent_encoding" | "string_unicode" | "string_control_character";

/** A request's path after percent-decoding. */
export interface DecodedPath {
  /** The decoded segments, joined with slashes again: none of them contains one. Invalid segments are not decoded. */
  readonly path: string;
  /** The segments as the client sent them. */
  readonly rawSegments: readonly string[];
  /** Faults by segment; undefined if the path has none. */
  readonly faults: readonly (SegmentFault | undefined)[] | undefined;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern finds them.
const CONTROL_CHARACTER = /[\u0000-\u001f\u007f-\u009f]/;
const BROKEN_ESCAPE = /%(?![0-9A-Fa-f]{2})/;
const DOT_SEGMENT = /\/\.\.?(?:\/|$)/;
const NEEDS_DECODING = /[^\x21-\x24\x26-\x7e]/;

/** Whether decoding would leave the path as it is: printable ASCII without a percent sign. */
export function isPlainPath(rawPath: string): boolean {
  return !NEEDS_DECODING.test(rawPath);
}

/** Whether a path has a segment `.` or `..`, which no route has. */
export function hasDotSegment(path: string): boolean {
  return path.includes("/.") && DOT_SEGMENT.test(path);
}

/**
 * Percent-decodes a path once, segment by segment, as UTF-8.
 * @param rawPath As uWebSockets.js gives it: not normalised; raw bytes beyond ASCII are decoded already, invalid ones
 * replaced by U+FFFD.
 * @returns undefined if a segment contains an encoded slash: no name has one.
 */
export function decodePath(rawPath: string): DecodedPath | undefined {
  const rawSegments = rawPath.split("/");
  const segments: string[] = [];
  let faults: (SegmentFault | undefined)[] | undefined;
  for (const raw of rawSegments) {
    const decoded = decodeSegment(raw);
    if (decoded.fault !== undefined) {
      faults ??= new Array<SegmentFault | undefined>(rawSegments.length);
      faults[segments.length] = decoded.fault;
    } else if (decoded.text.includes("/")) {
      return undefined;
    }
    segments.push(decoded.text);
  }
  return { path: segments.join("/"), rawSegments, faults };
}

function decodeSegment(raw: string): { readonly text: string; readonly fault?: SegmentFault } {
  if (raw.includes("\ufffd")) return { text: raw, fault: "string_unicode" };
  let text: string;
  try {
    text = decodeURIComponent(raw);
  } catch {
    return { text: raw, fault: BROKEN_ESCAPE.test(raw) ? "percent_encoding" : "string_unicode" };
  }
  return CONTROL_CHARACTER.test(text) ? { text: raw, fault: "string_control_character" } : { text };
}
