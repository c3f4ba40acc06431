import { type ErrorData, errorFromData, errorToData, ZpublishError } from "../errors.js";
import { type CooperativeTask, runCooperatively } from "../event-loop/cooperative-task.js";
import type { JsonObject, JsonValue } from "../json/json-value.js";
import { nodeName } from "../model/data-tree.js";
import type { ChunkObjects } from "../zarr/chunk-reader.js";
import type { ParsedArray, StoredArray } from "../zarr/stored-array.js";
import {
  comparePaths,
  type Refusal,
  type StoredGroup,
  type StoredTree,
  warnOfName,
} from "../zarr/stored-tree.js";
import { assertV2Group, parseV2Array, parseV2Attributes } from "../zarr/v2.js";
import { parseV3Array, parseV3Group, v3NodeType } from "../zarr/v3/parse-v3.js";
import { type ListedTexts, listedDocuments } from "./consolidated.js";
import { type DocumentName, describesArray, documentNames, type NodeDocuments } from "./documents.js";
import { withRegularGrid } from "./rectilinear-chunks.js";

/** A node of a store: a directory with metadata, of its own or in `.zmetadata`. */
export interface StoreNode {
  /** Without a leading slash; empty for the root. */
  readonly path: string;
  /** True if it counts as an array, even if it cannot be understood. */
  readonly isArray: boolean;
  /** Its documents in `.zmetadata`, if it has none of its own; else undefined. */
  readonly listed: ListedTexts | undefined;
  readonly content: NodeContent;
  /** Warnings of documents that conflict. They apply to refused nodes too. */
  readonly warnings: readonly string[];
}

/** Content of a node: an array, a group, or why it is refused. */
export type NodeContent =
  | { readonly kind: "array"; readonly array: StoredArray; readonly warnings: readonly string[] }
  | { readonly kind: "group"; readonly attrs: JsonObject }
  | { readonly kind: "refused"; readonly error: ErrorData };

/** The place of a node. */
export interface NodePlace {
  /** Without a leading slash; empty for the root. */
  readonly path: string;
  /** Real path of the directory. It need not exist if only `.zmetadata` has the node. */
  readonly directory: string;
  /** Real path of the store. */
  readonly root: string;
  /** Name of the array of a store that is a single array. */
  readonly rootArrayName: string;
  /** The store, if it is no local directory; then `directory` is a key in it. */
  readonly objects?: ChunkObjects;
  /** Document whose absence means that the store is gone. Default: the array's own, or `.zmetadata` if that lists it. */
  readonly metadataFile?: string;
}

/** The nodes of a store: how they are found, and how a change of them is noticed. */
export interface Hierarchy {
  /** As in `Source`. */
  check?(): Promise<void>;
  /**
   * Reads all nodes. What has not changed since the last call is not read again, and its nodes are the same objects.
   * @param onArray Called for every array that is found.
   * @throws ZpublishError `invalid-metadata`, `source-unreadable`, `unsupported`
   */
  read(onArray: () => void): Promise<StoredTree>;
  /** Tells whether anything changed since the last call of `read` that did not fail. @throws ZpublishError `source-unreadable` */
  hasChanged(): Promise<boolean>;
}

/** What a reading of a store found. Identity and fingerprint are as in `StoredTree`. */
export interface FoundNodes {
  /** Parents before children, siblings by name. */
  readonly nodes: readonly StoreNode[];
  readonly refused: readonly Refusal[];
  readonly warnings: readonly string[];
  readonly identity: string;
  readonly fingerprint: string;
}

/** Makes the tree of what a reading found. @throws ZpublishError if the root itself cannot be understood. */
export async function storedTreeOf(found: FoundNodes): Promise<StoredTree> {
  const { groups, refused, warnings } = await runCooperatively(assembleTree(found.nodes));
  return Object.freeze({
    groups: Object.freeze(groups),
    refused: Object.freeze([...found.refused, ...refused]),
    warnings: Object.freeze([...found.warnings, ...warnings]),
    identity: found.identity,
    fingerprint: found.fingerprint,
  });
}

const NONE: readonly never[] = Object.freeze([]);

/**
 * Parses the documents of a node. If that fails, the node is refused.
 * @param listed The same documents as texts, if they come from `.zmetadata`.
 */
export function parseNode(place: NodePlace, documents: NodeDocuments, listed?: ListedTexts): StoreNode {
  const isV2 = documents[".zarray"] !== undefined || documents[".zgroup"] !== undefined;
  return {
    path: place.path,
    isArray: describesArray(documents),
    listed,
    content: parseContent(place, documents, isV2, listed !== undefined),
    warnings: documentConflicts(place.path, documents, isV2),
  };
}

function parseContent(
  place: NodePlace,
  documents: NodeDocuments,
  isV2: boolean,
  isListed: boolean,
): NodeContent {
  try {
    const isArray = isV2
      ? documents[".zarray"] !== undefined
      : documents["zarr.json"] !== undefined && v3NodeType(jsonOf(documents, "zarr.json")) === "array";
    if (!isArray) return { kind: "group", attrs: groupAttributes(documents, isV2) };
    const { array, warnings } = parseArray(place, documents, isV2, isListed);
    return {
      kind: "array",
      array: Object.freeze(array),
      warnings: warnings.length === 0 ? NONE : warnings.map((warning) => `'${array.path}': ${warning}`),
    };
  } catch (error) {
    if (!(error instanceof ZpublishError)) throw error;
    return { kind: "refused", error: errorToData(error) };
  }
}

function groupAttributes(documents: NodeDocuments, isV2: boolean): JsonObject {
  if (!isV2 && documents["zarr.json"] !== undefined) return parseV3Group(jsonOf(documents, "zarr.json"));
  if (documents[".zgroup"] !== undefined) assertV2Group(jsonOf(documents, ".zgroup"));
  return parseV2Attributes(documents[".zattrs"] && jsonOf(documents, ".zattrs"));
}

function parseArray(
  place: NodePlace,
  documents: NodeDocuments,
  isV2: boolean,
  isListed: boolean,
): ParsedArray {
  const { directory, root, objects } = place;
  const path = place.path === "" ? place.rootArrayName : place.path;
  const own = isListed ? `${root}/.zmetadata` : `${directory}/${isV2 ? ".zarray" : "zarr.json"}`;
  const files = { directory, root, metadataFile: place.metadataFile ?? own, ...(objects && { objects }) };
  const array = { name: nodeName(path), path, files };
  if (!isV2) return withRegularGrid(parseV3Array(array, jsonOf(documents, "zarr.json")));
  const zattrs = documents[".zattrs"] && jsonOf(documents, ".zattrs");
  return parseV2Array(array, jsonOf(documents, ".zarray"), zattrs);
}

/** Returns the JSON of a document that exists. @throws ZpublishError if it could not be read. */
function jsonOf(documents: NodeDocuments, name: DocumentName): JsonValue {
  const document = documents[name];
  if (document === undefined) throw new ZpublishError("internal", `expected ${name}, received nothing`);
  if ("json" in document) return document.json;
  throw errorFromData(document.error);
}

function documentConflicts(path: string, documents: NodeDocuments, isV2: boolean): readonly string[] {
  const warnings: string[] = [];
  if (isV2 && documents["zarr.json"] !== undefined) {
    warnings.push(`'${path === "" ? "/" : path}': metadata of Zarr v2 and v3 at one place; v2 is served`);
  }
  if (documents[".zarray"] !== undefined && documents[".zgroup"] !== undefined) {
    warnings.push(`'${path === "" ? "/" : path}': an array and a group at one place; the array is served`);
  }
  return warnings.length === 0 ? NONE : warnings;
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

/** Compares nodes so that parents come before children, and siblings by name. */
export function byPath(a: { readonly path: string }, b: { readonly path: string }): number {
  return comparePaths(a.path, b.path);
}

/** Groups and arrays of a store. */
interface AssembledTree {
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
function* assembleTree(nodes: readonly StoreNode[]): CooperativeTask<AssembledTree> {
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
