/** Why a segment is no valid string. */
export type SegmentFault = "percent_encoding" | "string_unicode" | "string_control_character";

/** A request's path after percent-decoding. */
export interface DecodedPath {
  /** The decoded segments, joined with slashes again: none of them contains one. Faulty segments as they came. */
  readonly path: string;
  /** As they came. */
  readonly rawSegments: readonly string[];
  /** Per segment; undefined: none in the whole path. */
  readonly faults: readonly (SegmentFault | undefined)[] | undefined;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: looking for them is the purpose.
const CONTROL_CHARACTER = /[\u0000-\u001f\u007f-\u009f]/;
const BROKEN_ESCAPE = /%(?![0-9A-Fa-f]{2})/;
const DOT_SEGMENT = /\/\.\.?(?:\/|$)/;
const NEEDS_DECODING = /[^\x21-\x24\x26-\x7e]/;

/** Whether decoding would leave the path as it is: printable ASCII without a percent sign. */
export function isPlainPath(rawPath: string): boolean {
  return !NEEDS_DECODING.test(rawPath);
}

/** Whether a path has a segment `.` or `..`, which nothing here is named. */
export function hasDotSegment(path: string): boolean {
  return path.includes("/.") && DOT_SEGMENT.test(path);
}

/**
 * Percent-decodes a path once, segment by segment, as UTF-8.
 * @param rawPath As uWebSockets.js gives it: not normalised; raw bytes beyond ASCII decoded already, the invalid ones
 * among them replaced by U+FFFD.
 * @returns undefined where an escape hides a slash, so that no segment can be what it says: nothing is there.
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
