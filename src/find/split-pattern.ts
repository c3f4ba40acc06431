import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { schemeOf } from "../stores/scheme-of.js";
import { firstWildcard, unescapeGlob } from "./glob.js";

/** A location with wildcards: the folder before them, and the pattern of paths below it. */
export interface SplitPattern {
  /** A folder, `/` at the least, or the URL of a prefix with a slash at its end. Relative if the location is. Empty for the working directory. */
  readonly root: string;
  readonly include: string;
}

/**
 * Splits a location with wildcards, such as `/data/sst-*.nc` or `s3://bucket/prefix/*.zarr`. Undefined if it has none. Names of files and
 * folders that exist count as they are, even with brackets in them.
 */
export function splitPattern(location: string): SplitPattern | undefined {
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
