import { readdir } from "node:fs";
import { type ErrorData, errorToData, ZpublishError } from "../errors.js";
import { type CooperativeTask, runCooperatively } from "../event-loop/cooperative-task.js";
import { sortCooperatively } from "../event-loop/sort-cooperatively.js";
import { createStoreFiles, type StoreFiles } from "../stores/file-store.js";
import { comparePaths, printablePath, type Refusal, type StoredTree } from "../zarr/stored-tree.js";
import { assembleTree } from "./assemble-tree.js";
import { type ConsolidatedNodes, consolidatedNodes, noConsolidatedNodes } from "./consolidated-metadata.js";
import { ABSENT, recordOf } from "./file-record.js";
import { type ListedNodes, listedNodes } from "./listed-nodes.js";
import { describesNode, readText } from "./node-documents.js";
import type { StoreNode } from "./parse-node.js";
import { storeFingerprint } from "./store-fingerprint.js";
import type { Listing, VisitedDirectory } from "./visited-directory.js";
import { walkStore } from "./walk-store.js";

/** A store as it was read. The next read takes over what has not changed. */
export interface ReadStore {
  /** Real path. */
  readonly root: string;
  readonly tree: StoredTree;
  /** By path. */
  readonly visited: ReadonlyMap<string, VisitedDirectory>;
  /** Nodes that only `.zmetadata` has, by path. */
  readonly listed: ReadonlyMap<string, StoreNode>;
  /** Record of `.zmetadata`. */
  readonly consolidatedRecord: string;
  /** True if `.zmetadata` was understood, and every node that it lists has documents of its own. */
  readonly isConsolidatedRedundant: boolean;
}

/** An earlier read of a store. */
export interface EarlierRead {
  readonly store: ReadStore;
  /** Directories that have changed since. */
  readonly changed: ReadonlySet<VisitedDirectory>;
}

/** The place of a store. */
export interface StorePlace {
  /** As the operator wrote it, for messages. */
  readonly location: string;
  /** Real path. */
  readonly root: string;
  /** Name of the array, if the store is a single one. */
  readonly rootArrayName: string;
}

/**
 * Reads all metadata of a store, in slices, since there may be very much.
 * @param onArray Called for every array that is found.
 * @throws ZpublishError `invalid-metadata` or `source-unreadable` if the root is not a dataset.
 */
export async function readStore(
  place: StorePlace,
  onArray: () => void,
  earlier?: EarlierRead,
): Promise<ReadStore> {
  const { location, root } = place;
  const files = createStoreFiles(root);
  const redundant = earlier?.store.isConsolidatedRedundant === true ? earlier.store : undefined;
  let consolidated = await readConsolidated(files, root, redundant?.consolidatedRecord);
  const walk = () =>
    withinLocation(location, () =>
      walkStore({
        ...place,
        files,
        consolidated: consolidated.nodes,
        before: earlier?.store.visited ?? new Map(),
        changed: earlier?.changed ?? new Set(),
        onArray,
      }),
    );
  let visited = await walk();
  if (
    redundant !== undefined &&
    consolidated.isRedundant &&
    (await runCooperatively(hasLostNode(redundant.visited, visited)))
  ) {
    consolidated = await readConsolidated(files, root);
    visited = await walk();
  }
  const { problem, record } = consolidated;
  if (!hasRoot(visited)) {
    if (problem !== undefined) throw new ZpublishError(problem.code, `${location}: ${problem.message}`);
    if (record === ABSENT) throw await noStore(files, location, root);
  }
  const listedBefore = earlier?.store.listed ?? new Map();
  const listed = await runCooperatively(listedNodes(consolidated.nodes, visited, place, listedBefore));
  for (const { isArray } of listed.nodes) if (isArray) onArray();
  const isUsed = listed.nodes.length > 0 || (await runCooperatively(hasListedNode(visited)));
  const tree = await withinLocation(location, () =>
    runCooperatively(treeOf(root, consolidated, [...visited.values()], listed)),
  );
  return {
    root,
    tree,
    visited,
    listed: new Map(listed.nodes.map((node) => [node.path, node])),
    consolidatedRecord: record,
    isConsolidatedRedundant: problem === undefined && !isUsed,
  };
}

/** Tells whether a directory has lost its node, which `.zmetadata` may list. */
function* hasLostNode(
  before: ReadonlyMap<string, VisitedDirectory>,
  now: ReadonlyMap<string, VisitedDirectory>,
): CooperativeTask<boolean> {
  for (const [path, { node }] of before) {
    yield;
    if (node !== undefined && now.get(path)?.node === undefined) return true;
  }
  return false;
}

function* hasListedNode(visited: ReadonlyMap<string, VisitedDirectory>): CooperativeTask<boolean> {
  for (const { node } of visited.values()) {
    yield;
    if (node?.listed !== undefined) return true;
  }
  return false;
}

/** `.zmetadata` of a store. */
interface Consolidated {
  readonly record: string;
  readonly nodes: ConsolidatedNodes;
  /** Why it is ignored; undefined if it is not. */
  readonly problem: ErrorData | undefined;
  /** True if it was not read again, because it has not changed and nothing of it was used before. */
  readonly isRedundant: boolean;
}

/** Reads `.zmetadata`, unless its record is `redundantRecord`, the one with which nothing of it was used. */
async function readConsolidated(
  files: StoreFiles,
  root: string,
  redundantRecord?: string,
): Promise<Consolidated> {
  if (
    redundantRecord !== undefined &&
    (await recordOf(files.calls, `${root}/.zmetadata`)) === redundantRecord
  ) {
    return { record: redundantRecord, nodes: noConsolidatedNodes, problem: undefined, isRedundant: true };
  }
  const { record, found } = await readText(files, root, ".zmetadata");
  const none = { record, nodes: noConsolidatedNodes, problem: undefined, isRedundant: false };
  if (found === undefined) return none;
  if (typeof found !== "string") return { ...none, problem: found };
  try {
    return { ...none, nodes: await runCooperatively(consolidatedNodes(found)) };
  } catch (error) {
    return { ...none, problem: errorToData(error) };
  }
}

function* treeOf(
  root: string,
  { record, problem }: Consolidated,
  visited: readonly VisitedDirectory[],
  listed: ListedNodes,
): CooperativeTask<StoredTree> {
  const sorted = yield* sortCooperatively(visited, byPath);
  const refused: Refusal[] = [];
  const nodes: StoreNode[] = [];
  for (const { node, listing, path } of sorted) {
    yield;
    if (node !== undefined) nodes.push(node);
    if (listing !== undefined) refused.push(...refusedIn(path, listing));
  }
  const all =
    listed.nodes.length === 0 ? nodes : yield* sortCooperatively([...nodes, ...listed.nodes], byPath);
  const assembled = yield* assembleTree(all);
  const warnings = problem === undefined ? [] : [`${problem.message}; consolidated metadata is ignored`];
  return Object.freeze({
    groups: Object.freeze(assembled.groups),
    refused: Object.freeze([...refused, ...listed.refused, ...assembled.refused]),
    warnings: Object.freeze([...warnings, ...assembled.warnings]),
    ...(yield* storeFingerprint(root, record, sorted)),
  });
}

function byPath(a: { readonly path: string }, b: { readonly path: string }): number {
  return comparePaths(a.path, b.path);
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
async function noStore(files: StoreFiles, location: string, root: string): Promise<ZpublishError> {
  const names = (await files.calls.call<string[]>((done) => readdir(root, done))).sort();
  const shown = names.slice(0, 5).map(printablePath).join(", ");
  const found =
    names.length === 0 ? "nothing" : names.length > 5 ? `${shown} and ${names.length - 5} more` : shown;
  return new ZpublishError(
    "invalid-metadata",
    `${location} is no Zarr store: expected .zgroup, .zarray, .zmetadata or zarr.json in it, found ${found}`,
  );
}

/** Runs `work`, and adds the location to the message of its error. */
export async function withinLocation<T>(location: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ZpublishError)) throw error;
    throw new ZpublishError(error.code, `${location}: ${error.message}`, {
      details: error.details,
      cause: error,
    });
  }
}
