import picomatch from "picomatch";
import { ZpublishError } from "../errors.js";

/** Numbers that a range such as `{2001..2024}` may have. */
const MAX_RANGE = 10_000;

/**
 * Compiles a pattern of paths: `*` and `?` stand for characters of a name, `**` for any number of folders, `[a-z]` and `[!a-z]` for one
 * character, `{a,b}` for texts and `{01..12}` for numbers. A backslash takes the meaning from the next character. All others are literal.
 * @param dot Whether names with a leading dot match, too. Default: only if the pattern has the dot.
 * @throws ZpublishError `invalid-config`
 */
export function compileGlob(pattern: string, dot = false): (path: string) => boolean {
  const expected = "expected a pattern of paths relative to the root, such as **/*.nc";
  if (pattern === "" || pattern.startsWith("/"))
    throw new ZpublishError("invalid-config", `${expected}, received ${JSON.stringify(pattern)}`);
  const options = { dot, nonegate: true, noextglob: true, posix: true, expandRange };
  try {
    const matches = picomatch(literally(pattern), options);
    return (path) => matches(path);
  } catch (cause) {
    throw new ZpublishError(
      "invalid-config",
      `${expected}, received ${JSON.stringify(pattern.slice(0, 200))}`,
      {
        cause,
      },
    );
  }
}

/** Escapes the characters that picomatch takes for parts of a regular expression: file names have parentheses and plus signs. */
function literally(pattern: string): string {
  return pattern.replace(/\\.|\[[!^]?\]?[^\]/]*\]|[()|+@!^$"]/gs, (found) =>
    found.length === 1 ? `\\${found}` : found,
  );
}

/** Returns the regular expression of a range, which picomatch would take for one of characters. */
function expandRange(...range: readonly unknown[]): string {
  const [first = "", last = ""] = range as readonly string[];
  const [from, to] = [Number(first), Number(last)];
  if (!/^\d+$/.test(first) || !/^\d+$/.test(last) || to < from || to - from >= MAX_RANGE)
    throw new TypeError(`expected a range of numbers, received {${first}..${last}}`);
  const width = first.startsWith("0") || last.startsWith("0") ? Math.max(first.length, last.length) : 0;
  const numbers = Array.from({ length: to - from + 1 }, (_, index) =>
    String(from + index).padStart(width, "0"),
  );
  return `(?:${numbers.join("|")})`;
}

/** Finds the first character with a meaning in a pattern; -1 if there is none, and the pattern is the name of one file. */
export function firstWildcard(pattern: string): number {
  return /^(?:\\.?|(?!\[[^\]/]+\]|\{[^{}]*(?:,|\.\.)[^{}]*\})[^*?\\])*/s.exec(pattern)?.[0].length ?? 0;
}

/** Returns the text that a pattern without wildcards stands for. */
export function unescapeGlob(pattern: string): string {
  return pattern.replace(/\\(.)/gs, "$1");
}

/** Splits a pattern at its slashes. What comes after one within braces is `**`, since it may be several folders deep. */
export function segmentsOf(pattern: string): readonly string[] {
  const segments: string[] = [];
  let segment = "";
  let depth = 0;
  for (const [part] of pattern.matchAll(/\\.|\[[!^]?\]?[^\]/]*\]|./gs)) {
    if (part === "{") depth++;
    else if (part === "}") depth--;
    if (part !== "/") segment += part;
    else if (depth > 0) return [...segments, "**", "*"];
    else {
      segments.push(segment);
      segment = "";
    }
  }
  return [...segments, segment];
}
