import { createHash } from "node:crypto";
import { type BigIntStats, type Dirent, readdir, readFile, realpath, stat } from "node:fs";
import { isMissing, ZpublishError } from "../errors.js";
import { codeOf, createFileCalls, type FileCalls } from "../stores/file-calls.js";
import { recordOfStats } from "../zarr-store/local-documents.js";

/** Documents of which a Zarr store has at least one. The first that exists changes whenever the others do, in most stores. */
export const ROOT_DOCUMENTS: readonly string[] = ["zarr.json", ".zmetadata", ".zgroup", ".zarray"];

/** Reason of a problem. */
export const NO_DOCUMENT =
  "it is named like a Zarr store: expected zarr.json, .zgroup, .zarray or .zmetadata in it";

/** Documents of a node below the root. */
const NODE_DOCUMENTS: readonly string[] = ["zarr.json", ".zgroup", ".zarray", ".zattrs"];
/** Divides the version of a root from that of the nodes below it. */
const NODES = "_nodes:";

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
 * Returns the version of a Zarr store: a text that changes whenever its metadata may have changed, attributes included. Without
 * consolidated metadata, it is that of the documents of all nodes. Undefined if it has no root document.
 * @param former Version in the look before, which saves reading a document again.
 * @throws what the file system throws, NoAnswerError
 */
export async function storeVersion(
  calls: FileCalls,
  directory: string,
  former: string | undefined,
): Promise<string | undefined> {
  const versions = new Map<string, string>();
  for (const name of [...ROOT_DOCUMENTS, ".zattrs"]) {
    const version = await documentVersion(calls, `${directory}/${name}`);
    if (version !== undefined) versions.set(name, version);
  }
  if (!ROOT_DOCUMENTS.some((name) => versions.has(name))) return undefined;
  const root = [...versions.values()].join("_");
  if (former === root) return root;
  const isGroup = versions.has("zarr.json") || versions.has(".zgroup");
  if (!isGroup || versions.has(".zmetadata")) return root;
  const isRead = !versions.has("zarr.json") || former?.startsWith(root + NODES);
  if (!isRead && (await isConsolidated(calls, `${directory}/zarr.json`))) return root;
  const nodes = (await nodeVersions(calls, directory)).join("_");
  return `${root}${NODES}${createHash("sha256").update(nodes).digest("hex").slice(0, 40)}`;
}

/** Tells whether a root document of Zarr v3 has the metadata of all nodes. */
async function isConsolidated(calls: FileCalls, path: string): Promise<boolean> {
  const text = await calls.call<string>((done) => readFile(path, "utf8", done));
  return /"consolidated_metadata"\s*:\s*\{/.test(text);
}

/** Returns the versions of all documents of the nodes below a group, links left out. Arrays of Zarr v2 have nothing below them. */
async function nodeVersions(calls: FileCalls, directory: string): Promise<string[]> {
  const versions: string[] = [];
  const entries = await calls.call<Dirent[]>((done) => readdir(directory, { withFileTypes: true }, done));
  const names = entries.flatMap((entry) => (entry.isDirectory() ? [entry.name] : [])).sort();
  for (const name of names) {
    const path = `${directory}/${name}`;
    let isGroup = false;
    for (const document of NODE_DOCUMENTS) {
      const version = await documentVersion(calls, `${path}/${document}`);
      if (version === undefined) continue;
      versions.push(`${path}/${document}\0${version}`);
      isGroup ||= document === "zarr.json" || document === ".zgroup";
    }
    if (isGroup) versions.push(...(await nodeVersions(calls, path)));
  }
  return versions;
}
