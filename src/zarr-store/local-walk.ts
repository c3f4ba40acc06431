import { type Dirent, readdir, realpath, type Stats, stat } from "node:fs";
import { sep } from "node:path";
import { ZpublishError } from "../errors.js";
import { createSlice } from "../event-loop/cooperative-task.js";
import { workThrough } from "../event-loop/work-through.js";
import { nodeName } from "../model/data-tree.js";
import { codeOf, type FileCalls, NoAnswerError } from "../stores/file-calls.js";
import type { StoreFiles } from "../stores/file-store.js";
import { nameProblem } from "../zarr/stored-tree.js";
import type { ConsolidatedNodes } from "./consolidated.js";
import { type DocumentName, describesNode, documentNames, type NodeDocuments } from "./documents.js";
import { ABSENT, readLocalDocuments, recordOf } from "./local-documents.js";
import { listedNode, parseNode, type StoreNode } from "./nodes.js";

/** A directory of a store as a walk found it. The next walk reads only what has changed since. */
export interface VisitedDirectory {
  /** Without a leading slash; empty for the root. */
  readonly path: string;
  /** Real path. */
  readonly directory: string;
  /** Record of each document before it was read, in the order of `documentNames`. */
  readonly records: readonly string[];
  /** Its documents if they make no node by themselves: at most `.zattrs`. Otherwise undefined, since the node has them. */
  readonly loneAttributes: NodeDocuments | undefined;
  /** Undefined if no document describes the directory. */
  readonly node: StoreNode | undefined;
  /** Undefined if the directory was not listed: arrays, and hidden directories without metadata. */
  readonly listing: Listing | undefined;
}

/** The directories in a directory. */
export interface Listing {
  /** Record of the directory before it was listed. */
  readonly record: string;
  readonly children: readonly Child[];
  /** Why the directory cannot be listed; undefined if it can. */
  readonly problem?: string;
}

/** A directory in another one: its real path, or why it is refused. */
export type Child = ({ readonly directory: string } | { readonly reason: string }) & {
  /** Path from the root of the store. */
  readonly path: string;
};

/** Directories that are read or checked at a time. */
const CONCURRENCY = 16;
/** Bound for a location that contains much else than arrays. */
const MAX_DIRECTORIES = 250_000;

/** Options of {@link walkStore}. */
interface WalkOptions {
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
  const { records, documents } = await readLocalDocuments(files, directory);
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

/** A directory that a walk visits. */
interface Visit {
  /** Without a leading slash; empty for the root. */
  readonly path: string;
  /** Real path. */
  readonly directory: string;
  /** The directory in which it was found, to detect links that lead back; undefined for the root. */
  readonly parent: Visit | undefined;
}

/**
 * Lists the directories in a directory, following links.
 * @param root Real path of the store.
 * @param before The listing before; returned again if nothing was added or removed.
 * @throws NoAnswerError
 */
async function listDirectory(
  calls: FileCalls,
  visit: Visit,
  root: string,
  before: Listing | undefined,
): Promise<Listing> {
  const record = await recordOf(calls, visit.directory);
  if (before?.record === record && isPlain(before)) return before;
  let entries: Dirent[];
  try {
    entries = await calls.call<Dirent[]>((done) => readdir(visit.directory, { withFileTypes: true }, done));
  } catch (error) {
    if (error instanceof NoAnswerError) throw error;
    return { record, children: [], problem: `the directory cannot be listed (${codeOf(error)})` };
  }
  const slice = createSlice();
  const children: Child[] = [];
  for (const entry of entries) {
    if (slice.isOver()) await slice.next();
    if (!entry.isDirectory() && !entry.isSymbolicLink()) continue;
    const path = visit.path === "" ? entry.name : `${visit.path}/${entry.name}`;
    // Node.js puts U+FFFD for what is not UTF-8, and under such a name there is no file.
    const problem = entry.name.includes("\ufffd") ? "the name is no valid UTF-8" : nameProblem(path);
    if (problem !== undefined) children.push({ path, reason: problem });
    else if (entry.isDirectory()) children.push({ path, directory: `${visit.directory}/${entry.name}` });
    else {
      const followed = await followLink(calls, visit, entry, root);
      if (followed !== undefined) children.push({ path, ...followed });
    }
  }
  return { record, children };
}

/** Tells whether a listing has no problems. Others are made again, since a problem may have been solved elsewhere. */
function isPlain({ children, problem }: Listing): boolean {
  return problem === undefined && children.every((child) => "directory" in child);
}

/** Follows a link: the real path of its directory, or why it is refused; undefined if it does not lead to a directory. */
async function followLink(
  calls: FileCalls,
  visit: Visit,
  entry: Dirent,
  root: string,
): Promise<{ readonly directory: string } | { readonly reason: string } | undefined> {
  const path = `${visit.directory}/${entry.name}`;
  try {
    const directory = await calls.call<string>((done) => realpath.native(path, done));
    const found = await calls.call<Stats>((done) => stat(directory, done));
    if (!found.isDirectory()) return undefined;
    if (!directory.startsWith(root.endsWith(sep) ? root : `${root}${sep}`) && directory !== root) {
      return { reason: "it is a link that leaves the store" };
    }
    return isOnTheWay(visit, directory) ? { reason: "it is a link to a group it is in" } : { directory };
  } catch (error) {
    if (error instanceof NoAnswerError) throw error;
    return { reason: `it is a link that cannot be followed (${codeOf(error)})` };
  }
}

function isOnTheWay(visit: Visit, directory: string): boolean {
  for (let at: Visit | undefined = visit; at !== undefined; at = at.parent) {
    if (at.directory === directory) return true;
  }
  return false;
}

/**
 * Checks all directories and metadata documents of a store, and returns the directories in which something changed.
 * @throws NoAnswerError
 */
export async function findChanges(
  calls: FileCalls,
  visited: Iterable<VisitedDirectory>,
): Promise<ReadonlySet<VisitedDirectory>> {
  const changed = new Set<VisitedDirectory>();
  await workThrough(visited, CONCURRENCY, async (directory) => {
    if (await hasChanged(calls, directory)) changed.add(directory);
  });
  return changed;
}

async function hasChanged(calls: FileCalls, visited: VisitedDirectory): Promise<boolean> {
  const { directory, listing, records } = visited;
  if (listing !== undefined && (await recordOf(calls, directory)) !== listing.record) return true;
  for (const name of watchedDocuments(visited)) {
    const record = await recordOf(calls, `${directory}/${name}`);
    if (record !== records[documentNames.indexOf(name)]) return true;
  }
  return false;
}

/**
 * Returns the names of documents to check for changes. Those that a group may get are left out: creating one changes the
 * directory, which is checked too.
 */
function watchedDocuments({ records, node }: VisitedDirectory): DocumentName[] {
  return documentNames.filter((name, index) => {
    if (records[index] !== ABSENT) return true;
    if (node === undefined || !node.isArray) return false;
    const isV2 = records[0] !== ABSENT || node.listed?.[".zarray"] !== undefined;
    return node.listed?.[name] !== undefined || (isV2 && name === ".zattrs");
  });
}
