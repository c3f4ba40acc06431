import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import picomatch from "picomatch";
import { ZpublishError } from "../errors.js";
import { repositoryOf, schemeOf } from "../stores/byte-store.js";

/** Numbers that a range such as `{2001..2024}` may have. */
const MAX_RANGE = 10_000;

/**
 * Compiles a pattern of paths: `*` and `?` stand for characters of a name, `**` for any number of folders, `[a-z]` and `[!a-z]` for one
 * character, `{a,b}` for texts and `{01..12}` for numbers. A backslash takes the meaning from the next character. All others are literal.
 * @throws ZpublishError `invalid-config`
 */
export function compileGlob(pattern: string, dot = false): (path: string) => boolean {
  const options = { dot, nonegate: true, noextglob: true, posix: true, expandRange };
  const expected = "expected a pattern of paths relative to the root, such as **/*.nc";
  const problem = `${expected}, received ${JSON.stringify(pattern.slice(0, 200))}`;
  if (pattern === "" || pattern.startsWith("/")) throw new ZpublishError("invalid-config", problem);
  try {
    const matches = picomatch(literally(pattern), options);
    return (path) => matches(path);
  } catch (cause) {
    throw new ZpublishError("invalid-config", problem, { cause });
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

/** Returns the index of the first character with a meaning in a pattern; its length if there is none. */
export function firstWildcard(pattern: string): number {
  return /^(?:\\.?|(?!\[[^\]/]+\]|\{[^{}]*(?:,|\.\.)[^{}]*\})[^*?\\])*/s.exec(pattern)?.[0].length ?? 0;
}

/** Returns the text that a pattern without wildcards stands for. */
export function unescapeGlob(pattern: string): string {
  return pattern.replace(/\\(.)/gs, "$1");
}

/** Splits a pattern at its slashes. What comes after one within braces is `**`, since it may be several folders deep. */
function segmentsOf(pattern: string): readonly string[] {
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

/** Decides what is found below a root. Paths are relative to the root, and lie in folders that it enters. */
export interface PathFilter {
  /** Tells if a file of that path is to be found. */
  takesFile(path: string): boolean;
  /** Tells if a Zarr store of that path is to be found. */
  takesStore(path: string): boolean;
  /** Tells if something to be found may lie below a folder. */
  entersFolder(path: string): boolean;
}

/** Files of all formats that are known by their extension. Without `.json`, which is mostly something else than references. */
const KNOWN_FILES = /\.(?:nc|nc4|cdf|netcdf|h5|hdf5|hdf|he5|tiff?|zip)$/i;

const HIDDEN_NAME = /(?:^|\/)\.[^/]*$/;

/**
 * Creates a filter. Names with a leading dot are found only if a pattern has the dot.
 * @param include Default: files with known extensions, and all stores.
 * @throws ZpublishError `invalid-config`
 */
export function createPathFilter(
  include: readonly string[] | undefined,
  exclude: readonly string[] = [],
): PathFilter {
  const excluded = exclude.map((pattern) => compileGlob(pattern, true));
  const isExcluded = (path: string) => excluded.some((matches) => matches(path));
  if (include === undefined) {
    const isSeen = (path: string) => !HIDDEN_NAME.test(path) && !isExcluded(path);
    return {
      takesFile: (path) => KNOWN_FILES.test(path) && isSeen(path),
      takesStore: isSeen,
      entersFolder: isSeen,
    };
  }
  const included = include.map((pattern) => compileGlob(pattern));
  const folders = include.map(folderFilter);
  const takes = (path: string) => included.some((matches) => matches(path)) && !isExcluded(path);
  return {
    takesFile: takes,
    takesStore: takes,
    entersFolder(path) {
      const names = path.split("/");
      return folders.some((enters) => enters(names)) && !isExcluded(path);
    },
  };
}

/** Compiles which folders a pattern leads into. */
function folderFilter(pattern: string): (names: readonly string[]) => boolean {
  const segments = segmentsOf(pattern.replace(/^(?:\.\/)+/, "")).map((segment) =>
    segment === "**" ? undefined : segment === "" ? () => false : compileGlob(segment),
  );

  /** Tells if names from an index on are matched by segments, so that at least one segment is left. */
  function enters(names: readonly string[], at: number, segment: number): boolean {
    if (segment === segments.length) return false;
    const name = names[at];
    if (name === undefined) return true;
    const matches = segments[segment];
    if (matches !== undefined) return matches(name) && enters(names, at + 1, segment + 1);
    return (!name.startsWith(".") && enters(names, at + 1, segment)) || enters(names, at, segment + 1);
  }
  return (names) => enters(names, 0, 0);
}

/** A location with wildcards: the folder before them, and the pattern of paths below it. */
export interface SplitPattern {
  /** A folder, `/` at the least, or the URL of a prefix with a slash at its end. Relative if the location is. Empty for the working directory. */
  readonly root: string;
  readonly include: string;
}

/**
 * Splits a location with wildcards, such as `/data/sst-*.nc` or `s3://bucket/prefix/*.zarr`. Undefined if it has none, or begins
 * with `icechunk:`. Names of files and folders that exist count as they are, even with brackets in them.
 */
export function splitPattern(location: string): SplitPattern | undefined {
  if (repositoryOf(location) !== undefined) return undefined;
  const scheme = schemeOf(location);
  if (scheme === undefined) return splitPath(location, existsSync);
  if (scheme === "file") return location.includes("*") ? splitFileUrl(location) : undefined;
  // A question mark begins a query, which has an error message of its own.
  if (scheme !== "s3" && !location.includes("*")) return undefined;
  return splitPath(location, () => false);
}

function splitFileUrl(location: string): SplitPattern | undefined {
  try {
    return splitPath(fileURLToPath(location), existsSync);
  } catch {
    return undefined;
  }
}

function splitPath(location: string, exists: (path: string) => boolean): SplitPattern | undefined {
  let plain = "";
  for (let rest = location; ; ) {
    const wildcard = firstWildcard(rest);
    if (wildcard === rest.length) return undefined;
    const start = rest.lastIndexOf("/", wildcard) + 1;
    const end = rest.indexOf("/", wildcard);
    const root = plain + unescapeGlob(rest.slice(0, start));
    const name = rest.slice(start, end === -1 ? undefined : end);
    if (!exists(root + name)) return { root, include: rest.slice(start) };
    if (end === -1) return undefined;
    plain = `${root}${name}/`;
    rest = rest.slice(end + 1);
  }
}
