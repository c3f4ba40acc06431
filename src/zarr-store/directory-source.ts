import { opendir, realpath, type Stats, stat } from "node:fs";
import { resolve } from "node:path";
import { errorFromData, isMissing, ZpublishError } from "../errors.js";
import { codeOf, createFileCalls, type FileCalls, NoAnswerError } from "../stores/file-calls.js";
import { createStoreFiles } from "../stores/file-store.js";
import { nameProblem, type Source } from "../zarr/stored-tree.js";
import { recordOf } from "./file-record.js";
import { findChanges } from "./find-changes.js";
import { describesNode, readNodeDocuments } from "./node-documents.js";
import { parseNode } from "./parse-node.js";
import { type EarlierRead, type ReadStore, readStore, withinLocation } from "./read-store.js";
import type { VisitedDirectory } from "./visited-directory.js";

/** Name of the variable if the store is a single array and its directory's name cannot be served. */
const FALLBACK_ARRAY_NAME = "data";

const NO_CHANGES: ReadonlySet<VisitedDirectory> = new Set();

/** The last read of the store. */
interface LatestRead {
  readonly store: ReadStore;
  /** Directories that changed since then, as the last fingerprint found; undefined if none was taken. */
  changed: ReadonlySet<VisitedDirectory> | undefined;
}

/**
 * Creates the source of a Zarr store, v2 or v3, in a local directory, without any I/O. A store that is a single array becomes a
 * flat dataset of one variable, named after the directory without its extension.
 * @param location As the operator wrote it; relative to the working directory.
 */
export function createDirectorySource(location: string): Source {
  const rootArrayName = arrayNameOf(location);
  let latest: LatestRead | undefined;

  /** Returns the last read, if the root is still the same, and what changed since. */
  async function earlierRead(root: string): Promise<EarlierRead | undefined> {
    if (latest === undefined || latest.store.root !== root) return undefined;
    return {
      store: latest.store,
      changed: latest.changed ?? (await findChanges(createFileCalls(root), latest.store.visited.values())),
    };
  }

  return {
    location,
    check: reportNoAnswer(location, async () => {
      const root = await realRoot(location);
      const files = createStoreFiles(root);
      const { documents } = await readNodeDocuments(files, root);
      if (!describesNode(documents)) {
        // There may be a `.zmetadata` alone. If not, the error of `readStore` lists what is there.
        await readStore({ location, root, rootArrayName }, () => undefined);
        return;
      }
      const { content } = parseNode({ path: "", directory: root, root, rootArrayName }, documents);
      await withinLocation(location, async () => {
        if (content.kind === "refused") throw errorFromData(content.error);
        if (content.kind === "group") await assertListable(files.calls, root);
      });
    }),
    readTree: reportNoAnswer(location, async (progress?: (arraysRead: number) => void) => {
      const root = await realRoot(location);
      let arraysRead = 0;
      const store = await readStore(
        { location, root, rootArrayName },
        () => progress?.(++arraysRead),
        await earlierRead(root),
      );
      latest = { store, changed: undefined };
      return store.tree;
    }),
    fingerprint: reportNoAnswer(location, async () => {
      const root = await realRoot(location);
      if (latest === undefined) {
        const store = await readStore({ location, root, rootArrayName }, () => undefined);
        latest = { store, changed: NO_CHANGES };
      }
      // If the location is a link that now leads elsewhere, everything is new.
      if (latest.store.root !== root) return `moved:${root}`;
      const { visited, consolidatedRecord, tree } = latest.store;
      const calls = createFileCalls(root);
      latest.changed = await findChanges(calls, visited.values());
      const isConsolidatedSame = (await recordOf(calls, `${root}/.zmetadata`)) === consolidatedRecord;
      return latest.changed.size === 0 && isConsolidatedSame
        ? tree.fingerprint
        : `${tree.fingerprint}, changed`;
    }),
    close: async () => undefined,
  };
}

/** Returns `work` with errors that name the location if the file system does not answer. */
function reportNoAnswer<A extends unknown[], T>(
  location: string,
  work: (...args: A) => Promise<T>,
): (...args: A) => Promise<T> {
  return async (...args) => {
    try {
      return await work(...args);
    } catch (error) {
      if (!(error instanceof NoAnswerError)) throw error;
      throw new ZpublishError("source-unreadable", `${location} cannot be read (${error.code})`, {
        cause: error,
      });
    }
  };
}

/**
 * Finds the real path of a location.
 * @throws ZpublishError `invalid-metadata` if there is no directory, `source-unreadable` if it cannot be reached.
 */
async function realRoot(location: string): Promise<string> {
  const path = resolve(location);
  const calls = createFileCalls(path);
  try {
    const root = await calls.call<string>((done) => realpath.native(path, done));
    if ((await calls.call<Stats>((done) => stat(root, done))).isDirectory()) return root;
  } catch (cause) {
    if (isMissing(cause)) {
      throw new ZpublishError("invalid-metadata", `${location} does not exist`, { cause });
    }
    throw new ZpublishError("source-unreadable", `${location} cannot be read (${codeOf(cause)})`, { cause });
  }
  throw new ZpublishError(
    "invalid-metadata",
    `${location} is no Zarr store: expected a directory, found a file`,
  );
}

/** Asserts that a directory can be listed. @throws ZpublishError `source-unreadable` */
async function assertListable(calls: FileCalls, directory: string): Promise<void> {
  try {
    // Not access(2), which checks the real user rather than the effective one.
    await calls.call<void>((done) =>
      opendir(directory, (error, opened) => {
        if (error === null) opened.close((failure) => done(failure ?? null));
        else done(error);
      }),
    );
  } catch (cause) {
    throw new ZpublishError("source-unreadable", `the directory cannot be listed (${codeOf(cause)})`, {
      cause,
    });
  }
}

function arrayNameOf(location: string): string {
  const base = resolve(location).split(/[\\/]/).at(-1) ?? "";
  const name = base.replace(/(?<=.)\.[^.]*$/, "");
  return name === "" || nameProblem(name) !== undefined ? FALLBACK_ARRAY_NAME : name;
}
