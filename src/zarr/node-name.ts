import { nodeName } from "../model/node-path.js";

/** Maximum length of a request's path parameter in UTF-8. */
const MAX_PATH_BYTES = 1024;

/** Names of documents in a Zarr v2 store, which nodes of a group cannot have. */
const DOCUMENT_NAMES: ReadonlySet<string> = new Set([".zarray", ".zattrs", ".zgroup", ".zmetadata"]);

/**
 * Returns why a node cannot be served under its path; undefined if it can.
 * @param path Without a leading slash.
 */
export function nameProblem(path: string): string | undefined {
  for (const segment of path.split("/")) {
    if (segment === "" || segment === "." || segment === "..") {
      return `expected a name, received ${JSON.stringify(segment)}`;
    }
    if (DOCUMENT_NAMES.has(segment)) return `${segment} is the name of a document`;
  }
  if (/\p{Cc}/u.test(path)) return "the name has control characters, which no request can have";
  if (/\p{Cs}/u.test(path)) return "the name is no valid Unicode";
  const byteLength = Buffer.byteLength(path);
  if (byteLength > MAX_PATH_BYTES) {
    return `expected a path of at most ${MAX_PATH_BYTES} bytes, received ${byteLength}`;
  }
  return undefined;
}

/** Adds a warning if many clients cannot ask for the name of a node. */
export function warnOfName(path: string, warnings: string[]): void {
  const found = /[#?%]/.exec(nodeName(path));
  if (found !== null) warnings.push(`'${path}': many clients cannot ask for a name with "${found[0]}"`);
}

/** Returns a path for a message: with control characters escaped, and cut to 200 characters. */
export function printablePath(path: string): string {
  const text = path.replace(/[\p{Cc}\p{Cs}]/gu, (character) => {
    const code = (character.codePointAt(0) as number).toString(16);
    return `\\u${code.padStart(4, "0")}`;
  });
  return text.length <= 200 ? text : `${text.slice(0, 197)}...`;
}

/** Compares paths of a tree: parents before children, siblings by name in UTF-16 code units. */
export function comparePaths(a: string, b: string): number {
  const left = sortKey(a);
  const right = sortKey(b);
  return left < right ? -1 : left > right ? 1 : 0;
}

/** Returns a path with null characters, which no name has, for slashes. So children come before their parent's next sibling. */
function sortKey(path: string): string {
  return path.includes("/") ? path.replaceAll("/", "\0") : path;
}
