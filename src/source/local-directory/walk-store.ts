import type { Dirent } from "node:fs";
import { lstat, readdir, realpath, stat } from "node:fs/promises";
import { sep } from "node:path";
import { ZpublishError } from "../../errors.js";
import { nodeName } from "../../model/node-path.js";
import { createBounded } from "../bounded.js";
import { printablePath, refusedName } from "../node-name.js";
import type { Refusal } from "../source.js";
import type { StoreFiles } from "../store-files.js";
import type { ConsolidatedNodes } from "./consolidated-metadata.js";
import type { FileRecords } from "./file-records.js";
import { describesArray, type NodeDocuments, readNodeDocuments } from "./node-documents.js";

/** Directories that are read at once. */
const concurrency = 32;
/** Bounds the walk of a place that holds much else than arrays. */
const maxDirectories = 250_000;

/** One directory of a store that has metadata, by itself or in `.zmetadata`. */
export interface StoreNode {
  /** Without a leading slash; empty for the root. */
  readonly path: string;
  /** Real path of the directory. It need not exist where only `.zmetadata` knows the node. */
  readonly directory: string;
  readonly documents: NodeDocuments;
  readonly isArray: boolean;
  /** Whether the documents are those of `.zmetadata`, because the directory has none. */
  readonly isConsolidated: boolean;
}

export interface WalkedStore {
  readonly nodes: readonly StoreNode[];
  readonly refused: readonly Refusal[];
}

export interface WalkOptions {
  /** Real path. */
  readonly root: string;
  readonly files: StoreFiles;
  readonly records: FileRecords;
  readonly consolidated: ConsolidatedNodes;
  readonly onArray: () => void;
}

interface Visit {
  readonly path: string;
  readonly directory: string;
  /** Real paths from the root to here, to see links that lead back. */
  readonly chain: readonly string[];
}

/**
 * Reads the metadata documents of a store, directory by directory, never looking into an array. Individual documents
 * are the truth; `.zmetadata` fills in for directories that have none.
 * @throws ZpublishError `source-unreadable` where the root cannot be listed or there are too many directories.
 */
export async function walkStore(options: WalkOptions): Promise<WalkedStore> {
  const { root, files, records, consolidated } = options;
  const bounded = createBounded(concurrency);
  const nodes: StoreNode[] = [];
  const refused: Refusal[] = [];
  let directories = 0;

  function refuse(path: string, reason: string): void {
    refused.push({ path: printablePath(path), reason });
  }

  async function visit({ path, directory, chain }: Visit): Promise<void> {
    if (++directories > maxDirectories) {
      throw new ZpublishError(
        "source-unreadable",
        `expected at most ${maxDirectories} directories in a store, received more`,
      );
    }
    const own = await bounded(() => readNodeDocuments(files, directory, records));
    const isOwn = own[".zarray"] ?? own[".zgroup"] ?? own["zarr.json"];
    const listed = isOwn === undefined ? consolidated.get(path) : undefined;
    const documents = { ...listed, ...own };
    const isArray = describesArray(documents);
    if (isArray) options.onArray();
    if (Object.keys(documents).length > 0) {
      nodes.push({ path, directory, documents, isArray, isConsolidated: listed !== undefined });
    }
    forgetUnused(records, directory, documents, isArray);
    // A hidden directory without metadata is no part of a store: .git, .ipynb_checkpoints.
    const isHidden = Object.keys(documents).length === 0 && nodeName(path).startsWith(".");
    if (!isArray && !isHidden) await visitChildren({ path, directory, chain });
  }

  async function visitChildren({ path, directory, chain }: Visit): Promise<void> {
    let entries: Dirent[];
    try {
      entries = await bounded(async () => {
        await records.note(directory);
        return await readdir(directory, { withFileTypes: true });
      });
    } catch (error) {
      const problem = `the directory cannot be listed (${codeOf(error)})`;
      if (path === "") throw new ZpublishError("source-unreadable", problem, { cause: error });
      refuse(path, problem);
      return;
    }
    const children = entries.filter((entry) => entry.isDirectory() || entry.isSymbolicLink());
    await Promise.all(
      children.map(async (entry) => {
        const child = { path: path === "" ? entry.name : `${path}/${entry.name}`, parent: directory, chain };
        const real = await bounded(() => realDirectory(child, entry, root));
        if (typeof real !== "string") {
          if (real !== undefined) refuse(child.path, real.reason);
          return;
        }
        await visit({ path: child.path, directory: real, chain: [...chain, real] });
      }),
    );
  }

  await visit({ path: "", directory: root, chain: [root] });
  const seen = new Set(nodes.map((node) => node.path));
  for (const [path, documents] of consolidated) {
    if (seen.has(path)) continue;
    const isArray = describesArray(documents);
    if (isArray) options.onArray();
    const problem = refusedName(path);
    if (problem === undefined) {
      nodes.push({ path, directory: `${root}/${path}`, documents, isArray, isConsolidated: true });
    } else {
      refuse(path, problem);
    }
  }
  return { nodes, refused };
}

/** Real path of a child directory; undefined where it is none after all, or why it is refused. */
async function realDirectory(
  child: { readonly path: string; readonly parent: string; readonly chain: readonly string[] },
  entry: Dirent,
  root: string,
): Promise<string | { readonly reason: string } | undefined> {
  const path = `${child.parent}/${entry.name}`;
  if (entry.name.includes("\ufffd") && !(await exists(path))) {
    // What is no UTF-8 comes from the system as U+FFFD, under which there is nothing.
    return { reason: "the name is no valid UTF-8" };
  }
  const problem = refusedName(child.path);
  if (problem !== undefined) return { reason: problem };
  if (entry.isDirectory()) return path;
  try {
    if (!(await stat(path)).isDirectory()) return undefined;
    const real = await realpath(path);
    if (!real.startsWith(root.endsWith(sep) ? root : `${root}${sep}`) && real !== root) {
      return { reason: "it is a link that leaves the store" };
    }
    return child.chain.includes(real) ? { reason: "it is a link to a group it is in" } : real;
  } catch (error) {
    return { reason: `it is a link that cannot be followed (${codeOf(error)})` };
  }
}

/** Watches only what decides: creating a document in a group's directory changes the directory itself. */
function forgetUnused(
  records: FileRecords,
  directory: string,
  documents: NodeDocuments,
  isArray: boolean,
): void {
  const isV2Array = documents[".zarray"] !== undefined;
  for (const name of [".zarray", ".zgroup", ".zattrs", "zarr.json"] as const) {
    const mayAppear = isArray && isV2Array && name === ".zattrs";
    if (documents[name] === undefined && !mayAppear) records.forget(`${directory}/${name}`);
  }
}

async function exists(path: string): Promise<boolean> {
  return await lstat(path).then(
    () => true,
    () => false,
  );
}

function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" ? code : "unknown error";
}
