import type { CooperativeTask } from "../event-loop/cooperative-task.js";
import { nameProblem, printablePath, type Refusal } from "../zarr/stored-tree.js";
import { type ConsolidatedNodes, type ListedTexts, listedDocuments } from "./consolidated-metadata.js";
import { documentNames, type NodeDocuments } from "./node-documents.js";
import { type NodePlace, parseNode, type StoreNode } from "./parse-node.js";
import type { VisitedDirectory } from "./visited-directory.js";

/** Nodes that only `.zmetadata` has. */
export interface ListedNodes {
  readonly nodes: readonly StoreNode[];
  readonly refused: readonly Refusal[];
}

/**
 * Makes the nodes of `.zmetadata` for which the walk found no node.
 * @param before Nodes of the walk before, by path. A node whose documents are the same is the same object.
 */
export function* listedNodes(
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

/**
 * Makes a node of the documents that `.zmetadata` lists.
 * @param loneAttributes Documents in the directory that make no node by themselves. They count before the listed ones.
 * @param before The node before, with the same `loneAttributes`; returned again if the listed documents are the same.
 */
export function listedNode(
  place: NodePlace,
  texts: ListedTexts,
  loneAttributes: NodeDocuments,
  before: StoreNode | undefined,
): StoreNode {
  const known = before?.listed;
  if (known !== undefined && documentNames.every((name) => known[name] === texts[name])) {
    return before as StoreNode;
  }
  return parseNode(place, { ...listedDocuments(texts), ...loneAttributes }, texts);
}
