import { nodeName } from "../model/node-path.js";

/** Bytes of UTF-8 that a request's path parameter may have. */
const maxPathBytes = 1024;

/** Names that documents of the Zarr v2 store have beside the nodes of a group. */
const documentNames: ReadonlySet<string> = new Set([".zarray", ".zattrs", ".zgroup", ".zmetadata"]);

/**
 * Why a node cannot be served under its path, undefined where it can.
 * @param path Without a leading slash.
 */
export function nameProblem(path: string): string | undefined {
  for (const segment of path.split("/")) {
    if (segment === "" || segment === "." || segment === "..") {
      return `expected a name, received ${JSON.stringify(segment)}`;
    }
    if (documentNames.has(segment)) return `${segment} is the name of a document`;
  }
  if (/\p{Cc}/u.test(path)) return "the name has control characters, which no request can have";
  if (/\p{Cs}/u.test(path)) return "the name is no valid Unicode";
  const byteLength = Buffer.byteLength(path);
  if (byteLength > maxPathBytes) {
    return `expected a path of at most ${maxPathBytes} bytes, received ${byteLength}`;
  }
  return undefined;
}

/** Adds a warning if many clients cannot ask for the name of a node. */
export function warnOfName(path: string, warnings: string[]): void {
  const found = /[#?%]/.exec(nodeName(path));
  if (found !== null) warnings.push(`'${path}': many clients cannot ask for a name with "${found[0]}"`);
}

/** A path for a message: control characters escaped, and cut where it is too long to be read. */
export function printablePath(path: string): string {
  const text = path.replace(/[\p{Cc}\p{Cs}]/gu, (character) => {
    const code = (character.codePointAt(0) as number).toString(16);
    return `\\u${code.padStart(4, "0")}`;
  });
  return text.length <= 200 ? text : `${text.slice(0, 197)}...`;
}

/** Order of paths in a tree: parents before children, siblings by name in UTF-16 code units. */
export function comparePaths(a: string, b: string): number {
  const left = sortKey(a);
  const right = sortKey(b);
  return left < right ? -1 : left > right ? 1 : 0;
}

/** No name has a null character: below it, a parent comes before its children and they before its next sibling. */
function sortKey(path: string): string {
  return path.includes("/") ? path.replaceAll("/", "\0") : path;
}
