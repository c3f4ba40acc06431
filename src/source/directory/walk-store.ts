import { ZpublishError } from "../../errors.js";
import { workThrough } from "../../event-loop/work-through.js";
import { nodeName } from "../../model/node-path.js";
import type { StoreFiles } from "../files/store-files.js";
import type { ConsolidatedNodes } from "./consolidated-metadata.js";
import { listDirectory, type Visit } from "./list-directory.js";
import { listedNode } from "./listed-nodes.js";
import { describesNode, type NodeDocuments, readNodeDocuments } from "./node-documents.js";
import { parseNode, type StoreNode } from "./parse-node.js";
import type { Child, VisitedDirectory } from "./visited-directory.js";

/** Directories that are read at once. */
const concurrency = 16;
/** Bounds the walk of a place that holds much else than arrays. */
const maxDirectories = 250_000;

export interface WalkOptions {
  /** Real path. */
  readonly root: string;
  /** Name of the array of a store that is a single array. */
  readonly rootArrayName: string;
  readonly files: StoreFiles;
  readonly consolidated: ConsolidatedNodes;
  /** What the walk before found, by path; empty for the first. */
  readonly before: ReadonlyMap<string, VisitedDirectory>;
  /** What of that is different now. */
  readonly changed: ReadonlySet<VisitedDirectory>;
  readonly onArray: () => void;
}

/**
 * Reads the metadata documents of a store, directory by directory, never looking into an array. Individual documents
 * are the truth; `.zmetadata` fills in for directories that have none. What has not changed since the walk before is
 * not read again: the same objects.
 * @returns Every directory by path, in no order.
 * @throws ZpublishError `source-unreadable` where the root cannot be listed or there are too many directories.
 */
export async function walkStore(options: WalkOptions): Promise<Map<string, VisitedDirectory>> {
  const visited = new Map<string, VisitedDirectory>();
  const root: Visit = { path: "", directory: options.root, parent: undefined };
  let begun = 0;
  await workThrough([root], concurrency, async (visit, add) => {
    if (++begun > maxDirectories) {
      throw new ZpublishError(
        "source-unreadable",
        `expected at most ${maxDirectories} directories in a store, received more`,
      );
    }
    const found = await visitDirectory(visit, options);
    visited.set(visit.path, found);
    if (found.node?.isArray) options.onArray();
    const { children = [], problem } = found.listing ?? {};
    if (problem !== undefined && visit === root) throw new ZpublishError("source-unreadable", problem);
    add(visitsOf(children, visit));
  });
  return visited;
}

function* visitsOf(children: readonly Child[], parent: Visit): Generator<Visit, void, undefined> {
  for (const child of children) {
    if ("directory" in child) yield { path: child.path, directory: child.directory, parent };
  }
}

async function visitDirectory(visit: Visit, options: WalkOptions): Promise<VisitedDirectory> {
  const { path, directory } = visit;
  const known = options.before.get(path);
  const earlier = known?.directory === directory ? known : undefined;
  const unchanged = earlier !== undefined && !options.changed.has(earlier) ? earlier : undefined;
  if (unchanged?.node !== undefined && unchanged.loneAttributes === undefined) return unchanged;
  const { records, loneAttributes, node: own } = unchanged ?? (await readOwn(visit, options));
  const node =
    loneAttributes === undefined ? own : nodeOfAttributes(visit, loneAttributes, unchanged?.node, options);
  // A hidden directory without metadata is no part of a store: .git, .ipynb_checkpoints.
  const isClosed = node?.isArray || (node === undefined && nodeName(path).startsWith("."));
  const listing = isClosed
    ? undefined
    : await listDirectory(options.files.calls, visit, options.root, earlier?.listing);
  return { path, directory, records, loneAttributes, node, listing };
}

/** The documents in a directory, and what they make by themselves. */
async function readOwn(
  { path, directory }: Visit,
  { files, root, rootArrayName }: WalkOptions,
): Promise<Pick<VisitedDirectory, "records" | "loneAttributes" | "node">> {
  const { records, documents } = await readNodeDocuments(files, directory);
  if (!describesNode(documents)) return { records, loneAttributes: documents, node: undefined };
  const node = parseNode({ path, directory, root, rootArrayName }, documents);
  return { records, loneAttributes: undefined, node };
}

/** What `.zmetadata` says of a directory, and what is in it that makes no node by itself. */
function nodeOfAttributes(
  { path, directory }: Visit,
  loneAttributes: NodeDocuments,
  before: StoreNode | undefined,
  { consolidated, root, rootArrayName }: WalkOptions,
): StoreNode | undefined {
  const place = { path, directory, root, rootArrayName };
  const listed = consolidated.get(path);
  if (listed !== undefined) return listedNode(place, listed, loneAttributes, before);
  return Object.keys(loneAttributes).length === 0 ? undefined : parseNode(place, loneAttributes);
}
