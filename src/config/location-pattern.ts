import { existsSync } from "node:fs";
import { datasetIdOfLocation } from "./dataset-id.js";

/** Characters that make a path a pattern: `*`, `?`, `[ab]`, `{a,b}`. */
const WILDCARD = /[*?]|\[[^\]]+\]|\{[^}]*,[^}]*\}/;

/** A pattern of paths, divided into the folder or prefix that all of them have in common and the rest. */
export interface SplitPattern {
  /** Absolute path, or a URL with a slash at its end. */
  readonly root: string;
  /** Pattern below the root. */
  readonly pattern: string;
}

/**
 * Tells whether an absolute location is a pattern. What exists as it stands is none, nor is what lies behind a web server, which
 * cannot list.
 */
export function isPattern(location: string): boolean {
  const scheme = /^([a-z][a-z0-9+.-]+):\/\//i.exec(location)?.[1]?.toLowerCase();
  if (scheme !== undefined && scheme !== "s3") return false;
  return WILDCARD.test(location) && (scheme === "s3" || !existsSync(location));
}

/** Divides a pattern at the last slash before its first wildcard. */
export function splitPattern(location: string): SplitPattern {
  const fixed = location.slice(0, WILDCARD.exec(location)?.index ?? location.length);
  const end = fixed.lastIndexOf("/") + 1;
  const isUrl = /^[a-z][a-z0-9+.-]+:\/\//i.test(location);
  return {
    root: isUrl || end === 1 ? location.slice(0, end) : location.slice(0, end - 1),
    pattern: location.slice(end),
  };
}

/**
 * Derives the id of a dataset that is all files of a pattern, from the last name that is fixed: `sst` for `/data/sst-*.nc`, `daily` for
 * `/data/daily/*.nc`. Empty if there is none.
 */
export function datasetIdOfPattern(location: string): string {
  const parts = location.split("/").filter((part) => part !== "");
  const last = parts.pop() ?? "";
  const end = WILDCARD.exec(last)?.index;
  const fixed = end === undefined ? datasetIdOfLocation(last) : last.slice(0, end).replace(/[-_. ]+$/, "");
  return fixed || (parts.findLast((part) => !WILDCARD.test(part) && !part.endsWith(":")) ?? "");
}
