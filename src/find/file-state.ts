import { type BigIntStats, realpath, stat } from "node:fs";
import { isMissing, ZpublishError } from "../errors.js";
import { codeOf, createFileCalls, type FileCalls } from "../stores/file-calls.js";
import { recordOfStats } from "../zarr-store/local-documents.js";

/** Documents of which a Zarr store has at least one. The first that exists changes whenever the others do, in most stores. */
export const ROOT_DOCUMENTS: readonly string[] = ["zarr.json", ".zmetadata", ".zgroup", ".zarray"];

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

/** Tells whether a directory is a Zarr store, since it has a root document. @throws what `stat` throws, NoAnswerError */
export async function isStore(calls: FileCalls, directory: string): Promise<boolean> {
  for (const name of ROOT_DOCUMENTS)
    if ((await documentVersion(calls, `${directory}/${name}`)) !== undefined) return true;
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
  const versions = new Map<string, string>();
  for (const name of [...ROOT_DOCUMENTS, ".zattrs"]) {
    const version = await documentVersion(calls, `${directory}/${name}`);
    if (version !== undefined) versions.set(name, version);
  }
  return ROOT_DOCUMENTS.some((name) => versions.has(name)) ? [...versions.values()].join("_") : undefined;
}
