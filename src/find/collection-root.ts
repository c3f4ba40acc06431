import { type Dir, opendir } from "node:fs";
import { isMissing, ZpublishError } from "../errors.js";
import { settlesWithin } from "../event-loop/settles-within.js";
import { type StoreSettings, schemeOf, withSlash } from "../stores/byte-store.js";
import { codeOf, createFileCalls, NoAnswerError } from "../stores/file-calls.js";
import { openByteStore } from "../stores/open-byte-store.js";
import { looksLikeRepository } from "../zarr-store/icechunk/repository.js";
import type { FileFinder, FileFinderOptions } from "./file-finder.js";
import { isStore, ROOT_DOCUMENTS, statPath, unreadableRoot } from "./file-state.js";
import { createLocalFinder } from "./local-finder.js";
import { createObjectFinder } from "./object-finder.js";

/** Names of what is a file or a store, and no folder, though nothing may be there yet. */
const FILE_NAME = /\.(?:zarr|nc|nc4|cdf|netcdf|h5|hdf5|hdf|he5|tiff?|zip|json|parq|parquet)$/i;

/**
 * Creates the finder of files below a directory or a prefix of a bucket. It makes no request.
 * @throws ZpublishError `invalid-config` for patterns that cannot be understood, and for other roots: web servers list nothing.
 */
export function createFileFinder(options: FileFinderOptions): FileFinder {
  const { root } = options;
  const scheme = schemeOf(root);
  if (scheme === undefined) return createLocalFinder(options);
  if (scheme === "s3") return createObjectFinder(options);
  throw new ZpublishError(
    "invalid-config",
    `expected a directory or an S3 prefix, received ${root.slice(0, 200)}`,
  );
}

/**
 * Tells if a location is a folder of files and stores, and no store or file itself. It takes some calls to the file system, or some
 * requests to a bucket. False for web servers, which list nothing, and for what does not exist.
 * @throws ZpublishError `source-unreadable`, `invalid-config`; what the file system throws, NoAnswerError
 */
export async function isCollectionRoot(
  location: string,
  stores: readonly StoreSettings[] = [],
): Promise<boolean> {
  if (location.startsWith("/")) return isFolder(location);
  return /^s3:/i.test(location) && isPrefix(location, stores);
}

async function isFolder(path: string): Promise<boolean> {
  // What has the name of a store may get its documents yet.
  if (/\.zarr\/*$/i.test(path)) return false;
  const calls = createFileCalls(path);
  const found = await statPath(calls, path);
  return found?.isDirectory() === true && !(await isStore(calls, path));
}

async function isPrefix(location: string, stores: readonly StoreSettings[]): Promise<boolean> {
  const url = location.replace(/\/+$/, "");
  if (FILE_NAME.test(url)) return false;
  const root = withSlash(url);
  if (await isStorePrefix(root, stores)) return false;
  const listing = await openByteStore(root, stores).list?.("");
  const names = [...(listing?.objects ?? []), ...(listing?.prefixes ?? [])];
  return names.length > 0 && !looksLikeRepository(names);
}

/**
 * Asserts that a root can be listed: a folder or prefix that is no Zarr store, or with `isHierarchy` one that is. One that does not answer
 * in time passes: looks at it will fail until it does.
 * @throws ZpublishError `invalid-config`, `source-unreadable`
 */
export async function assertRoot(
  { root, stores = [] }: Pick<FileFinderOptions, "root" | "stores">,
  isHierarchy: boolean,
  timeoutMs = 5_000,
): Promise<void> {
  const check = schemeOf(root) === "s3" ? isStorePrefix(root, stores) : isStoreFolder(root);
  const asserted = check.then((isStore) => {
    if (isStore === undefined || isStore === isHierarchy) return;
    const hint = 'a Zarr store, whose groups are datasets with "groups": true';
    const problem = isHierarchy
      ? "expected a Zarr group, found none"
      : `expected a folder of datasets, found ${hint}`;
    throw new ZpublishError("invalid-config", problem);
  });
  await settlesWithin(asserted, timeoutMs);
}

/** Returns undefined if the file system does not answer. */
async function isStoreFolder(path: string): Promise<boolean | undefined> {
  const calls = createFileCalls(path);
  const close = (dir: Dir) => dir.close(() => undefined);
  try {
    await calls.call<Dir>((done) => opendir(path, done), close).then(close);
    return await isStore(calls, path);
  } catch (error) {
    if (error instanceof NoAnswerError) return undefined;
    const code = codeOf(error);
    const reason =
      code === "ENOTDIR" ? "expected a directory" : isMissing(error) ? "it does not exist" : code;
    throw unreadableRoot(reason, error);
  }
}

async function isStorePrefix(root: string, stores: readonly StoreSettings[]): Promise<boolean> {
  const store = openByteStore(root, stores);
  const documents = await Promise.all(ROOT_DOCUMENTS.map((name) => store.stat(name)));
  return documents.some((document) => document !== undefined);
}
