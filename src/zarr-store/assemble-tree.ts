import { errorFromData } from "../errors.js";
import type { CooperativeTask } from "../event-loop/cooperative-task.js";
import type { JsonObject } from "../json/json-value.js";
import type { StoredArray } from "../zarr/stored-array.js";
import { type Refusal, type StoredGroup, warnOfName } from "../zarr/stored-tree.js";
import type { StoreNode } from "./parse-node.js";

/** Groups and arrays of a store. */
export interface AssembledTree {
  readonly groups: readonly StoredGroup[];
  readonly refused: readonly Refusal[];
  readonly warnings: readonly string[];
}

interface Assembly {
  /** By path without a leading slash, empty for the root; in the order in which they are served. */
  readonly groups: Map<string, { readonly attrs: JsonObject; readonly arrays: StoredArray[] }>;
  readonly refused: Refusal[];
  readonly warnings: string[];
}

/**
 * Makes groups and arrays of nodes. A node that cannot be understood is refused, with everything below it.
 * @param nodes Parents before children, siblings by name. Groups are in the same order.
 * @throws ZpublishError if the root itself cannot be understood.
 */
export function* assembleTree(nodes: readonly StoreNode[]): CooperativeTask<AssembledTree> {
  const assembly: Assembly = { groups: new Map(), refused: [], warnings: [] };
  /** The last array or refused node. The nodes inside of it follow it directly. */
  let closed: StoreNode | undefined;
  for (const node of nodes) {
    yield;
    if (closed !== undefined && isInside(node.path, closed.path)) {
      assembly.refused.push({ path: node.path, reason: reasonInside(closed) });
      continue;
    }
    addNode(node, assembly);
    if (node.content.kind !== "group") closed = node;
  }
  // A `.zmetadata` may list nothing at all.
  if (!assembly.groups.has("")) assembly.groups.set("", { attrs: {}, arrays: [] });
  const groups: StoredGroup[] = [];
  for (const [path, { attrs, arrays }] of assembly.groups) {
    yield;
    groups.push(Object.freeze({ path: `/${path}`, attrs, arrays: Object.freeze(arrays) }));
  }
  return { groups, refused: assembly.refused, warnings: assembly.warnings };
}

/** Adds one node. @throws ZpublishError if it is the root and cannot be understood. */
function addNode({ path, content, warnings }: StoreNode, assembly: Assembly): void {
  assembly.warnings.push(...warnings);
  if (content.kind === "refused") {
    if (path === "") throw errorFromData(content.error);
    assembly.refused.push({ path, reason: content.error.message });
  } else if (content.kind === "group") {
    warnOfName(path, assembly.warnings);
    addParents(path, assembly);
    assembly.groups.set(path, { attrs: content.attrs, arrays: [] });
  } else {
    const { array } = content;
    warnOfName(array.path, assembly.warnings);
    addParents(array.path, assembly);
    assembly.groups.get(path === "" ? "" : parentOf(path))?.arrays.push(array);
    assembly.warnings.push(...content.warnings);
  }
}

function isInside(path: string, outer: string): boolean {
  return outer === "" || (path.startsWith(outer) && path.charCodeAt(outer.length) === SLASH);
}

const SLASH = 0x2f;

function reasonInside({ path, content }: StoreNode): string {
  return content.kind === "array"
    ? `it is inside of the array '${path}'`
    : `it is inside of '${path}', which is refused`;
}

/** Adds the groups between the root and a node that have no metadata, since old versions of zarr-python wrote none. */
function addParents(path: string, assembly: Assembly): void {
  if (path === "") return;
  let slash = -1;
  do {
    const ancestor = path.slice(0, Math.max(0, slash));
    if (!assembly.groups.has(ancestor)) addGroupWithoutMetadata(ancestor, assembly);
    slash = path.indexOf("/", slash + 1);
  } while (slash !== -1);
}

function addGroupWithoutMetadata(path: string, assembly: Assembly): void {
  assembly.groups.set(path, { attrs: {}, arrays: [] });
  if (path === "") return;
  assembly.warnings.push(`'${path}': a group without metadata of its own`);
  warnOfName(path, assembly.warnings);
}

function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf("/")));
}
