import { opendir, realpath, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { errorFromData, ZpublishError } from "../../errors.js";
import { refusedName } from "../node-name.js";
import type { Source } from "../source.js";
import { createStoreFiles } from "../store-files.js";
import { recordOf } from "./file-record.js";
import { findChanges } from "./find-changes.js";
import { codeOf } from "./list-directory.js";
import { describesNode, readNodeDocuments } from "./node-documents.js";
import { parseNode } from "./parse-node.js";
import { type EarlierRead, type ReadStore, readStore, withinLocation } from "./read-store.js";
import type { VisitedDirectory } from "./visited-directory.js";

/** Name of the variable where the store is a single array and its directory's name is none. */
const fallbackArrayName = "data";

const nothing: ReadonlySet<VisitedDirectory> = new Set();

/** What was read last. */
interface LatestRead {
  readonly store: ReadStore;
  /** What the last look since then found changed; undefined where nobody looked. */
  changed: ReadonlySet<VisitedDirectory> | undefined;
}

/**
 * A Zarr store, v2 or v3, in a local directory. A store that is a single array becomes a flat dataset of one variable,
 * named after the directory without its extension. Does no I/O until it is asked.
 * @param location As the operator wrote it; relative to the working directory.
 */
export function createLocalDirectorySource(location: string): Source {
  const rootArrayName = arrayNameOf(location);
  let latest: LatestRead | undefined;

  /** What is known already of a store whose root is `root`. */
  async function earlierRead(root: string): Promise<EarlierRead | undefined> {
    if (latest === undefined || latest.store.root !== root) return undefined;
    return {
      store: latest.store,
      changed: latest.changed ?? (await findChanges(latest.store.visited.values())),
    };
  }

  return {
    location,
    async check() {
      const root = await realRoot(location);
      const { documents } = await readNodeDocuments(createStoreFiles(root), root);
      if (!describesNode(documents)) {
        // `.zmetadata` alone may be a store, or an error that says what is there instead.
        await readStore({ location, root, rootArrayName }, () => undefined);
        return;
      }
      const { content } = parseNode({ path: "", directory: root, root, rootArrayName }, documents);
      await withinLocation(location, async () => {
        if (content.kind === "refused") throw errorFromData(content.error);
        if (content.kind === "group") await checkListable(root);
      });
    },
    async readTree(progress) {
      const root = await realRoot(location);
      let arraysRead = 0;
      const store = await readStore(
        { location, root, rootArrayName },
        () => progress?.(++arraysRead),
        await earlierRead(root),
      );
      latest = { store, changed: undefined };
      return store.tree;
    },
    async fingerprint() {
      const root = await realRoot(location);
      if (latest === undefined) {
        const store = await readStore({ location, root, rootArrayName }, () => undefined);
        latest = { store, changed: nothing };
      }
      // Where the location is a link that leads elsewhere now, everything is new.
      if (latest.store.root !== root) return `moved:${root}`;
      const { visited, consolidatedRecord, tree } = latest.store;
      latest.changed = await findChanges(visited.values());
      const isConsolidatedSame = (await recordOf(`${root}/.zmetadata`)) === consolidatedRecord;
      return latest.changed.size === 0 && isConsolidatedSame
        ? tree.fingerprint
        : `${tree.fingerprint}, changed`;
    },
    close: async () => undefined,
  };
}

/** @throws ZpublishError `invalid-metadata` where there is no directory, `source-unreadable` where it cannot be reached. */
async function realRoot(location: string): Promise<string> {
  try {
    const root = await realpath(resolve(location));
    if ((await stat(root)).isDirectory()) return root;
  } catch (cause) {
    const code = codeOf(cause);
    if (code === "ENOENT" || code === "ENOTDIR") {
      throw new ZpublishError("invalid-metadata", `${location} does not exist`, { cause });
    }
    throw new ZpublishError("source-unreadable", `${location} cannot be read (${code})`, { cause });
  }
  throw new ZpublishError(
    "invalid-metadata",
    `${location} is no Zarr store: expected a directory, found a file`,
  );
}

/** @throws ZpublishError `source-unreadable` */
async function checkListable(directory: string): Promise<void> {
  try {
    // Not access(): that asks for the real user, who need not be the one that reads.
    await (await opendir(directory)).close();
  } catch (cause) {
    throw new ZpublishError("source-unreadable", `the directory cannot be listed (${codeOf(cause)})`, {
      cause,
    });
  }
}

function arrayNameOf(location: string): string {
  const base = resolve(location).split(/[\\/]/).at(-1) ?? "";
  const name = base.replace(/(?<=.)\.[^.]*$/, "");
  return name === "" || refusedName(name) !== undefined ? fallbackArrayName : name;
}
