import { createHash } from "node:crypto";
import { lstatSync, readdir, realpath, type Stats, stat } from "node:fs";
import { resolve } from "node:path";
import { type ErrorData, errorFromData, errorToData, isMissing, ZpublishError } from "../errors.js";
import { type CooperativeTask, runCooperatively, runNow } from "../event-loop/cooperative-task.js";
import { sortCooperatively } from "../event-loop/sort-cooperatively.js";
import { codeOf, createFileCalls, directReadsOf, NoAnswerError } from "../stores/file-calls.js";
import { createStoreFiles, type StoreFiles, verifyNow } from "../stores/file-store.js";
import { nameProblem, printablePath, type Refusal, type StoredTree } from "../zarr/stored-tree.js";
import { type ConsolidatedNodes, consolidatedNodes, noConsolidatedNodes } from "./consolidated.js";
import { describesNode, documentNames } from "./documents.js";
import { ABSENT, readLocalDocuments, readLocalText, recordOf, recordOfStats } from "./local-documents.js";
import { findChanges, type Listing, type VisitedDirectory, walkStore } from "./local-walk.js";
import {
  byPath,
  type FoundNodes,
  type Hierarchy,
  listedNode,
  type NodePlace,
  parseNode,
  type StoreNode,
  storedTreeOf,
} from "./nodes.js";

/** Name of the variable if the store is a single array and its directory's name cannot be served. */
const FALLBACK_ARRAY_NAME = "data";

/**
 * Creates the hierarchy of a Zarr store, v2 or v3, in a local directory, without any I/O. Each node's own documents count before those
 * that `.zmetadata` lists. A change is noticed by the modification times of documents and directories.
 * @param location As the operator wrote it; relative to the working directory.
 */
export function createLocalHierarchy(location: string): Hierarchy {
  const rootArrayName = arrayNameOf(location);
  let latest: ReadStore | undefined;
  /** What has changed since `latest`, as `hasChanged` found last. */
  let changed: ReadonlySet<VisitedDirectory> | undefined;

  /** Returns the last read, if the root is still the same, and what changed since. */
  async function earlierRead(root: string): Promise<EarlierRead | undefined> {
    const store = latest;
    if (store?.root !== root) return undefined;
    const known = changed;
    // If this read fails, the next one has to look again.
    changed = undefined;
    return { store, changed: known ?? (await findChanges(createFileCalls(root), store.visited.values())) };
  }

  return {
    check: reportNoAnswer(async () => {
      const root = await realRoot(location);
      const files = createStoreFiles(root);
      const { documents } = await readLocalDocuments(files, root);
      if (!describesNode(documents)) {
        // There may be a `.zmetadata` alone. If not, the error of `readStore` lists what is there.
        await readStore({ root, rootArrayName }, () => undefined);
        return;
      }
      const { content } = parseNode({ path: "", directory: root, root, rootArrayName }, documents);
      if (content.kind === "refused") throw errorFromData(content.error);
      if (content.kind === "group")
        await files.calls
          .call<string[]>((done) => readdir(root, done))
          .catch((cause: unknown) => {
            const message = `the directory cannot be listed (${codeOf(cause)})`;
            throw new ZpublishError("source-unreadable", message, { cause });
          });
    }),
    read: reportNoAnswer(async (onArray: () => void) => {
      const root = await realRoot(location);
      const { store, tree } = await readStore({ root, rootArrayName }, onArray, await earlierRead(root));
      latest = store;
      changed = undefined;
      return tree;
    }),
    hasChanged: reportNoAnswer(async () => {
      const root = await realRoot(location);
      // If the location is a link that now leads elsewhere, everything is new.
      if (latest?.root !== root) return true;
      const { visited, consolidatedRecord } = latest;
      const calls = createFileCalls(root);
      changed = await findChanges(calls, visited.values());
      return changed.size > 0 || (await recordOf(calls, `${root}/.zmetadata`)) !== consolidatedRecord;
    }),
  };
}

/** Returns `work` with an error of the source if the file system does not answer. */
function reportNoAnswer<A extends unknown[], T>(
  work: (...args: A) => Promise<T>,
): (...args: A) => Promise<T> {
  return async (...args) => {
    try {
      return await work(...args);
    } catch (error) {
      if (!(error instanceof NoAnswerError)) throw error;
      throw new ZpublishError("source-unreadable", `it cannot be read (${error.code})`, { cause: error });
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
      throw new ZpublishError("invalid-metadata", "it does not exist", { cause });
    }
    throw new ZpublishError("source-unreadable", `it cannot be read (${codeOf(cause)})`, { cause });
  }
  throw new ZpublishError("invalid-metadata", "it is no Zarr store: expected a directory, found a file");
}

function arrayNameOf(location: string): string {
  const base = resolve(location).split(/[\\/]/).at(-1) ?? "";
  const name = base.replace(/(?<=.)\.[^.]*$/, "");
  return name === "" || nameProblem(name) !== undefined ? FALLBACK_ARRAY_NAME : name;
}

/** A store as it was read. The next read takes over what has not changed. */
interface ReadStore {
  /** Real path. */
  readonly root: string;
  /** By path. */
  readonly visited: ReadonlyMap<string, VisitedDirectory>;
  /** Nodes that only `.zmetadata` has, by path. */
  readonly listed: ReadonlyMap<string, StoreNode>;
  /** Record of `.zmetadata`. */
  readonly consolidatedRecord: string;
}

/** An earlier read of a store, and the directories that have changed since. */
interface EarlierRead {
  readonly store: ReadStore;
  readonly changed: ReadonlySet<VisitedDirectory>;
}

/** Reads all metadata of a store, in slices, since there may be very much. */
async function readStore(
  place: Pick<NodePlace, "root" | "rootArrayName">,
  onArray: () => void,
  earlier?: EarlierRead,
): Promise<{ readonly store: ReadStore; readonly tree: StoredTree }> {
  const { root } = place;
  const files = createStoreFiles(root);
  const consolidated = await readZmetadataOf(files, root);
  const visited = await walkStore({
    ...place,
    files,
    consolidated: consolidated.nodes,
    before: earlier?.store.visited ?? new Map(),
    changed: earlier?.changed ?? new Set(),
    onArray,
  });
  const { problem, record } = consolidated;
  if (!hasRoot(visited)) {
    if (problem !== undefined) throw new ZpublishError(problem.code, problem.message);
    if (record === ABSENT) throw await noStore(files, root);
  }
  const listedBefore = earlier?.store.listed ?? new Map();
  const listed = await runCooperatively(listedNodes(consolidated.nodes, visited, place, listedBefore));
  for (const { isArray } of listed.nodes) if (isArray) onArray();
  const found = await runCooperatively(foundNodes(root, consolidated, [...visited.values()], listed));
  const tree = await storedTreeOf(found);
  const store = {
    root,
    visited,
    listed: new Map(listed.nodes.map((node) => [node.path, node])),
    consolidatedRecord: record,
  };
  return { store, tree };
}

/** `.zmetadata` of a store. */
interface Consolidated {
  readonly record: string;
  readonly nodes: ConsolidatedNodes;
  /** Why it is ignored; undefined if it is not. */
  readonly problem: ErrorData | undefined;
}

/** Reads `.zmetadata`. */
async function readZmetadataOf(files: StoreFiles, root: string): Promise<Consolidated> {
  const { record, found } = await readLocalText(files, root, ".zmetadata");
  const none = { record, nodes: noConsolidatedNodes, problem: undefined };
  if (found === undefined) return none;
  if (typeof found !== "string") return { ...none, problem: found };
  try {
    return { ...none, nodes: await runCooperatively(consolidatedNodes(found)) };
  } catch (error) {
    return { ...none, problem: errorToData(error) };
  }
}

function* foundNodes(
  root: string,
  { record, problem }: Consolidated,
  visited: readonly VisitedDirectory[],
  listed: ListedNodes,
): CooperativeTask<FoundNodes> {
  const sorted = yield* sortCooperatively(visited, byPath);
  const refused: Refusal[] = [];
  const nodes: StoreNode[] = [];
  for (const { node, listing, path } of sorted) {
    yield;
    if (node !== undefined) nodes.push(node);
    if (listing !== undefined) refused.push(...refusedIn(path, listing));
  }
  return {
    nodes: listed.nodes.length === 0 ? nodes : yield* sortCooperatively([...nodes, ...listed.nodes], byPath),
    refused: [...refused, ...listed.refused],
    warnings: problem === undefined ? [] : [`${problem.message}; consolidated metadata is ignored`],
    ...(yield* storeFingerprint(root, record, sorted)),
  };
}

function refusedIn(path: string, { children, problem }: Listing): Refusal[] {
  const refused: Refusal[] = problem === undefined ? [] : [{ path: printablePath(path), reason: problem }];
  for (const child of children) {
    if ("reason" in child) refused.push({ path: printablePath(child.path), reason: child.reason });
  }
  return refused;
}

/** Tells whether the root has documents of a node. Attributes alone are not enough. */
function hasRoot(visited: ReadonlyMap<string, VisitedDirectory>): boolean {
  const root = visited.get("");
  if (root === undefined) return false;
  return root.loneAttributes === undefined || describesNode(root.node?.listed ?? {});
}

/** Returns the error for a directory that is not a store. */
async function noStore(files: StoreFiles, root: string): Promise<ZpublishError> {
  const names = (await files.calls.call<string[]>((done) => readdir(root, done))).sort();
  const shown = names.slice(0, 5).map(printablePath).join(", ");
  const found =
    names.length === 0 ? "nothing" : names.length > 5 ? `${shown} and ${names.length - 5} more` : shown;
  return new ZpublishError(
    "invalid-metadata",
    `it is no Zarr store: expected .zgroup, .zarray, .zmetadata or zarr.json in it, found ${found}`,
  );
}

/** Nodes that only `.zmetadata` has. */
interface ListedNodes {
  readonly nodes: readonly StoreNode[];
  readonly refused: readonly Refusal[];
}

/**
 * Makes the nodes of `.zmetadata` for which the walk found no node.
 * @param before Nodes of the walk before, by path. A node whose documents are the same is the same object.
 */
function* listedNodes(
  consolidated: ConsolidatedNodes,
  visited: ReadonlyMap<string, VisitedDirectory>,
  store: Omit<NodePlace, "path" | "directory">,
  before: ReadonlyMap<string, StoreNode>,
): CooperativeTask<ListedNodes> {
  const nodes: StoreNode[] = [];
  const refused: Refusal[] = [];
  for (const path of consolidated.paths) {
    yield;
    if (visited.get(path)?.node !== undefined) continue;
    const problem = nameProblem(path);
    if (problem !== undefined) refused.push({ path: printablePath(path), reason: problem });
    else {
      const place = { ...store, path, directory: `${store.root}/${path}` };
      nodes.push(listedNode(place, consolidated.get(path) ?? {}, {}, before.get(path)));
    }
  }
  return { nodes, refused };
}

/** Characters that are hashed at a time. One call for each record would take longer than hashing. */
const BATCH_CHARS = 32 * 1024;

/**
 * Hashes the records of a store's metadata documents and directories, each from before it was read. The identity has the documents'
 * records alone: a file that is added beside them changes only the directory's.
 * @param root Real path of the store; part of both hashes.
 * @param consolidated The record of `.zmetadata`.
 * @param sorted Sorted by path, since a walk visits directories in any order.
 */
function* storeFingerprint(
  root: string,
  consolidated: string,
  sorted: readonly (Pick<VisitedDirectory, "path" | "records"> & Partial<VisitedDirectory>)[],
): CooperativeTask<Pick<FoundNodes, "identity" | "fingerprint">> {
  const identity = createHash("sha256").update(root);
  const fingerprint = createHash("sha256").update(root);
  let documents = `\0.zmetadata\0${consolidated}`;
  let directories = "";
  for (const { path, records, listing } of sorted) {
    yield;
    for (let i = 0; i < records.length; i++) {
      if (records[i] !== ABSENT) documents += `\0${path}\0${i}\0${records[i]}`;
    }
    if (listing !== undefined) directories += `\0${path}\0${listing.record}`;
    if (documents.length + directories.length < BATCH_CHARS) continue;
    identity.update(documents);
    fingerprint.update(directories);
    documents = "";
    directories = "";
  }
  const identityHash = identity.update(documents).digest("hex").slice(0, 40);
  return {
    identity: identityHash,
    fingerprint: fingerprint.update(directories).update(identityHash).digest("hex").slice(0, 40),
  };
}

const LSTAT_OPTIONS = { bigint: true, throwIfNoEntry: false } as const;
/** Most nodes that are looked at without a pause: each takes 10 µs. */
const MAX_LOOKED_AT = 64;

/** The documents of some nodes of a local store. */
interface LookedAtDocuments {
  /** Returns the identity of the store if the nodes are all of it; as in `StoredTree`. */
  identity(): string;
  /** One text per node, which changes whenever its documents do. */
  readonly records: readonly string[];
}

/**
 * Looks at the documents of nodes of a store at once, in a tenth of the time that reading it takes. Undefined if it has to be read to find
 * out: there are links, or many nodes, or it is not on a local file system that is quick at present.
 * @param root Real path of the store.
 * @param paths Of groups and arrays, without a leading slash; that of the root, which is empty, if they are all of it.
 */
export function lookAtDocuments(root: string, paths: readonly string[]): LookedAtDocuments | undefined {
  const direct = directReadsOf(root);
  if (paths.length > MAX_LOOKED_AT || !direct.isQuick) return undefined;
  return direct.run(() => {
    try {
      const nodes = paths.map((path) => ({ path, records: recordsNow(root, path, documentNames) }));
      const [consolidated = ABSENT] = paths.includes("") ? recordsNow(root, "", [".zmetadata"]) : [];
      return {
        records: nodes.map(({ records }) => records.join(" ")),
        identity: () => runNow(storeFingerprint(root, consolidated, nodes.toSorted(byPath))).identity,
      };
    } catch {
      return undefined;
    }
  });
}

/** Returns the records of files of a node. @throws Error if anything is unusual: the file system, a link, no such directory */
function recordsNow(root: string, path: string, names: readonly string[]): string[] {
  const directory = path === "" ? root : `${root}/${path}`;
  const verified = verifyNow(root, directory);
  if (verified === undefined) throw new Error(`expected a directory of the store itself: ${directory}`);
  return names.map((name) => {
    const found = lstatSync(`${directory}/${name}`, LSTAT_OPTIONS);
    if (found === undefined) return ABSENT;
    if (found.dev === verified.device && found.isFile()) return recordOfStats(found);
    throw new Error(`expected a file of the store itself: ${directory}/${name}`);
  });
}
