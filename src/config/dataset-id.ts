import { basename, extname } from "node:path";
import { firstWildcard, unescapeGlob } from "../find/glob.js";
import type { SplitPattern } from "../find/split-pattern.js";

/** Longest path parameter. */
const MAX_ID_BYTES = 1_024;

/** Says why a text cannot be a dataset's id, as "expected …, received …"; undefined if it can. */
export function problemOfDatasetId(id: string): string | undefined {
  if (id === "") return "expected a non-empty id";
  if (id === "." || id === "..") return `expected an id other than "." and "..", received "${id}"`;
  if (id.includes("/")) return `expected an id without "/", received ${JSON.stringify(id)}`;
  if (/\p{Cc}/u.test(id)) return `expected an id without control characters, received ${JSON.stringify(id)}`;
  const bytes = Buffer.from(id, "utf8");
  if (bytes.toString("utf8") !== id)
    return `expected an id that is valid Unicode, received ${JSON.stringify(id)}`;
  if (bytes.length > MAX_ID_BYTES) {
    return `expected an id of at most ${MAX_ID_BYTES} bytes, received one of ${bytes.length} bytes`;
  }
  return undefined;
}

/**
 * Says why a text cannot be a collection's name, as "expected …, received …"; undefined if it can. It may be empty: then ids of its
 * datasets have no prefix.
 */
export function problemOfCollectionName(name: string): string | undefined {
  if (name === "") return undefined;
  if (name.includes("~")) return `expected a name without "~", received ${JSON.stringify(name)}`;
  return problemOfDatasetId(name)?.replace("an id", "a name");
}

/** Whether an id means something else in a URL unless clients percent-encode it. */
export function isAwkwardInUrl(id: string): boolean {
  return /[#?%\\]/.test(id);
}

/**
 * Derives the id of a dataset from its absolute location: the last name without the extension, `air` for
 * `/data/air.zarr/`. Empty if the location has no name (`/`).
 */
export function datasetIdOfLocation(location: string): string {
  const name = basename(location.startsWith("file:") ? decodePath(location) : location);
  return basename(name, extname(name));
}

/**
 * Derives the id of a dataset that is all files of a pattern, from the last name that is fixed: `sst` for `/data/sst-*.nc`, `daily` for
 * `/data/daily/*.nc`. Empty if there is none.
 */
export function datasetIdOfPattern({ root, include }: SplitPattern): string {
  const names = include.split("/");
  const last = names.pop() as string;
  const end = firstWildcard(last);
  const begin = unescapeGlob(last.slice(0, end));
  const fixed = end === last.length ? datasetIdOfLocation(begin) : begin.replace(/[-_. ]+$/, "");
  if (fixed !== "") return fixed;
  const folder = names.findLast((name) => firstWildcard(name) === name.length);
  return folder === undefined ? basename(root) : unescapeGlob(folder);
}

function decodePath(url: string): string {
  try {
    return decodeURIComponent(new URL(url).pathname);
  } catch {
    return url;
  }
}
