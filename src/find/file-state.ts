import { type BigIntStats, lstatSync, realpath, stat } from "node:fs";
import { isMissing, ZpublishError } from "../errors.js";
import { codeOf, createFileCalls, type FileCalls } from "../stores/file-calls.js";
import { REPOSITORY_OBJECTS } from "../zarr-store/icechunk/repository.js";
import { recordOfStats } from "../zarr-store/local-documents.js";

/** Documents of which a Zarr store has at least one. The first that exists changes whenever the others do, in most stores. */
export const ROOT_DOCUMENTS: readonly string[] = ["zarr.json", ".zmetadata", ".zgroup", ".zarray"];

/** Documents whose times are the version of a store. One of the first makes a directory a store. */
const VERSIONED: readonly string[] = [...ROOT_DOCUMENTS, ...REPOSITORY_OBJECTS, ".zattrs"];

/** Reason of a problem. */
export const NO_DOCUMENT =
  "it is named like a Zarr store: expected zarr.json, .zgroup, .zarray or .zmetadata in it";

const BIG_INTEGERS = { bigint: true } as const;

/** Returns the real path of the folder that is a root. @throws ZpublishError `source-unreadable` */
export async function realRoot(root: string): Promise<string> {
  try {
    return await createFileCalls(root).call<string>((done) => realpath.native(root, done));
  } catch (error) {
    throw unreadableRoot(isMissing(error) ? "it does not exist" : codeOf(error), error);
  }
}

/** Returns the error for a root that cannot be listed. Its cause is that of the file system, if there is one. */
export function unreadableRoot(reason: string, cause?: unknown): ZpublishError {
  return new ZpublishError("source-unreadable", `the folder cannot be listed: ${reason}`, { cause });
}

/** Returns the state of what a path leads to, links followed. Undefined if there is nothing. @throws what `stat` throws, NoAnswerError */
export async function statPath(calls: FileCalls, path: string): Promise<BigIntStats | undefined> {
  try {
    return await calls.call<BigIntStats>((done) => stat(path, BIG_INTEGERS, done));
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** Returns the version of a document; undefined if there is no such file. */
async function documentVersion(calls: FileCalls, path: string): Promise<string | undefined> {
  const found = await statPath(calls, path);
  return found?.isFile() ? recordOfStats(found) : undefined;
}

/**
 * Tells whether a directory is a Zarr store, since it has a root document, or an Icechunk repository.
 * @throws what `stat` throws, NoAnswerError
 */
export async function isStore(calls: FileCalls, directory: string): Promise<boolean> {
  const hasFile = async (name: string) =>
    (await documentVersion(calls, `${directory}/${name}`)) !== undefined;
  for (const name of ROOT_DOCUMENTS) if (await hasFile(name)) return true;
  // Another folder may have a file of that name.
  if (!(await statPath(calls, `${directory}/snapshots`))?.isDirectory()) return false;
  for (const name of REPOSITORY_OBJECTS) if (await hasFile(name)) return true;
  return false;
}

/**
 * Returns the version of the file or Zarr store that a path leads to. Undefined if there is none.
 * @throws what the file system throws, NoAnswerError
 */
export async function localVersion(path: string): Promise<string | undefined> {
  const calls = createFileCalls(path);
  const found = await statPath(calls, path);
  if (found?.isDirectory()) return storeVersion(calls, path);
  return found?.isFile() ? recordOfStats(found) : undefined;
}

/**
 * Returns the version of a Zarr store, which is that of its root documents and attributes. Undefined if it has no root document.
 * @throws what the file system throws, NoAnswerError
 */
export async function storeVersion(calls: FileCalls, directory: string): Promise<string | undefined> {
  const documents: (BigIntStats | undefined)[] = [];
  for (const name of VERSIONED) documents.push(await statPath(calls, `${directory}/${name}`));
  const isThere = documents.slice(0, -1).some((found) => found?.isFile());
  return isThere ? joinVersions(documents) : undefined;
}

const LSTAT_OPTIONS = { bigint: true, throwIfNoEntry: false } as const;

/**
 * Returns the version of a file or store as {@link localVersion} does, without another thread, in a tenth of the time. Undefined if that has
 * to find out: there is none, there are links, or it is not on the device.
 * @param device Of a local file system; the folder of `path` is known to be on it.
 */
export function versionNow(path: string, isStored: boolean, device: bigint): string | undefined {
  const stateOf = (path: string) => {
    const found = lstatSync(path, LSTAT_OPTIONS);
    if (found !== undefined && (found.dev !== device || found.isSymbolicLink()))
      throw new Error(`expected a file of the device itself, found another one: ${path}`);
    return found;
  };
  try {
    const found = stateOf(path);
    if (!isStored) return found?.isFile() ? recordOfStats(found) : undefined;
    if (!found?.isDirectory()) return undefined;
    const documents = VERSIONED.map((name) => stateOf(`${path}/${name}`));
    const isThere = documents.slice(0, -1).some((each) => each?.isFile());
    return isThere ? joinVersions(documents) : undefined;
  } catch {
    return undefined;
  }
}

function joinVersions(documents: readonly (BigIntStats | undefined)[]): string {
  return documents.flatMap((found) => (found?.isFile() ? recordOfStats(found) : [])).join("_");
}
