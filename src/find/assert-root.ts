import { type Dir, opendir } from "node:fs";
import { isMissing, ZpublishError } from "../errors.js";
import { settlesWithin } from "../event-loop/settles-within.js";
import { codeOf, createFileCalls, NoAnswerError } from "../stores/file-calls.js";
import { openByteStore } from "../stores/open-byte-store.js";
import type { FileFinderOptions } from "./file-finder.js";
import { ROOT_DOCUMENTS, storeState } from "./file-state.js";
import { unreadableRoot } from "./real-root.js";

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
  const check = /^s3:\/\//i.test(root) ? isStorePrefix(root, stores) : isStoreFolder(root);
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
  try {
    await calls.call<Dir>((done) => opendir(path, done), close).then(close);
    return (await storeState(calls, path)) !== undefined;
  } catch (error) {
    if (error instanceof NoAnswerError) return undefined;
    const code = codeOf(error);
    const reason =
      code === "ENOTDIR" ? "expected a directory" : isMissing(error) ? "it does not exist" : code;
    throw unreadableRoot(reason, error);
  }
}

async function isStorePrefix(
  root: string,
  stores: NonNullable<FileFinderOptions["stores"]>,
): Promise<boolean> {
  const store = openByteStore(root, stores);
  const documents = await Promise.all(ROOT_DOCUMENTS.map((name) => store.stat(name)));
  return documents.some((document) => document !== undefined);
}

function close(dir: Dir): void {
  dir.close(() => undefined);
}
