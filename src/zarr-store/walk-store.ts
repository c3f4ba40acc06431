import { ZpublishError } from "../errors.js";
import { workThrough } from "../event-loop/work-through.js";
import { nodeName } from "../model/data-tree.js";
import type { StoreFiles } from "../stores/file-store.js";
import type { ConsolidatedNodes } from "./consolidated-metadata.js";
import { listDirectory, type Visit } from "./list-directory.js";
import { listedNode } from "./listed-nodes.js";
import { describesNode, type NodeDocuments, readNodeDocuments } from "./node-documents.js";
import { parseNode, type StoreNode } from "./parse-node.js";
import type { Child, VisitedDirectory } from "./visited-directory.js";

/** Directories that are read at a time. */
const CONCURRENCY = 16;
/** Bound for a location that contains much else than arrays. */
const MAX_DIRECTORIES = 250_000;

/** Options of {@link walkStore}. */
export interface WalkOptions {
  /** Real path. */
  readonly root: string;
  /** Name of the array of a store that is a single array. */
  readonly rootArrayName: string;
  readonly files: StoreFiles;
  readonly consolidated: ConsolidatedNodes;
  /** Directories that the walk before visited, by path; empty for the first walk. */
  readonly before: ReadonlyMap<string, VisitedDirectory>;
  /** Directories among them that have changed since. */
  readonly changed: ReadonlySet<VisitedDirectory>;
  readonly onArray: () => void;
}

/**
 * Reads the metadata documents of a store, directory by directory, without listing arrays. `.zmetadata` only counts for
 * directories without documents of their own. Directories that have not changed since the walk before are the same objects.
 * @returns Every directory by path, in no particular order.
 * @throws ZpublishError `source-unreadable` if the root cannot be listed or there are too many directories.
 */
export async function walkStore(options: WalkOptions): Promise<Map<string, VisitedDirectory>> {
  const visited = new Map<string, VisitedDirectory>();
  const root: Visit = { path: "", directory: options.root, parent: undefined };
  let visits = 0;
  await workThrough([root], CONCURRENCY, async (visit, add) => {
    if (++visits > MAX_DIRECTORIES) {
      throw new ZpublishError(
        "source-unreadable",
        `expected at most ${MAX_DIRECTORIES} directories in a store, received more`,
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
  // A hidden directory without metadata does not belong to the store: .git, .ipynb_checkpoints.
  const isClosed = node?.isArray || (node === undefined && nodeName(path).startsWith("."));
  const listing = isClosed
    ? undefined
    : await listDirectory(options.files.calls, visit, options.root, earlier?.listing);
  return { path, directory, records, loneAttributes, node, listing };
}

/** Reads the documents in a directory, and the node that they make by themselves. */
async function readOwn(
  { path, directory }: Visit,
  { files, root, rootArrayName }: WalkOptions,
): Promise<Pick<VisitedDirectory, "records" | "loneAttributes" | "node">> {
  const { records, documents } = await readNodeDocuments(files, directory);
  if (!describesNode(documents)) return { records, loneAttributes: documents, node: undefined };
  const node = parseNode({ path, directory, root, rootArrayName }, documents);
  return { records, loneAttributes: undefined, node };
}

/** Makes the node of a directory without a node of its own: from `.zmetadata`, and from its attributes. */
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
