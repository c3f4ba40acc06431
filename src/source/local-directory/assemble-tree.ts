import { errorFromData, errorToData, ZpublishError } from "../../errors.js";
import type { JsonObject, JsonValue } from "../../model/json-value.js";
import { nodeName } from "../../model/node-path.js";
import type { ParsedArray } from "../../zarr/array-place.js";
import { checkV2Group, parseV2Array, parseV2Attributes } from "../../zarr/parse-v2.js";
import { parseV3Array, parseV3Group, v3NodeType } from "../../zarr/parse-v3.js";
import { comparePaths, nameWarning } from "../node-name.js";
import type { Refusal, StoredArray, StoredGroup } from "../source.js";
import type { DocumentName, NodeDocuments } from "./node-documents.js";
import type { StoreNode } from "./walk-store.js";

export interface AssembledTree {
  readonly groups: readonly StoredGroup[];
  readonly refused: readonly Refusal[];
  readonly warnings: readonly string[];
}

interface Assembly {
  readonly root: string;
  /** By path without a leading slash; the root's is empty. */
  readonly groups: Map<string, { readonly attrs: JsonObject; readonly arrays: StoredArray[] }>;
  readonly refused: Refusal[];
  readonly warnings: string[];
}

/**
 * Makes groups and arrays of the nodes that were found. A node that cannot be understood is refused, with all below
 * it; the others go on.
 * @param root Real path of the store.
 * @param rootArrayName Name to give the array of a store that is a single array.
 * @throws ZpublishError where the root itself cannot be understood.
 */
export function assembleTree(
  nodes: readonly StoreNode[],
  root: string,
  rootArrayName: string,
): AssembledTree {
  const assembly: Assembly = { root, groups: new Map(), refused: [], warnings: [] };
  const sorted = [...nodes].sort((a, b) => comparePaths(a.path, b.path));
  const closed = new Map<string, "array" | "refused">();
  for (const node of sorted) {
    const blocking = ancestorsOf(node.path).find((path) => closed.has(path));
    if (blocking !== undefined) {
      const reason =
        closed.get(blocking) === "array"
          ? `it is inside of the array '${blocking}'`
          : `it is inside of '${blocking}', which is refused`;
      assembly.refused.push({ path: node.path, reason });
      continue;
    }
    try {
      if (addNode(node, assembly, rootArrayName) === "array") closed.set(node.path, "array");
    } catch (error) {
      if (!(error instanceof ZpublishError) || node.path === "") throw error;
      assembly.refused.push({ path: node.path, reason: errorToData(error).message });
      closed.set(node.path, "refused");
    }
  }
  // A `.zmetadata` may list nothing at all.
  if (!assembly.groups.has("")) assembly.groups.set("", { attrs: {}, arrays: [] });
  return {
    groups: [...assembly.groups]
      .sort(([a], [b]) => (a === "" ? -1 : b === "" ? 1 : comparePaths(a, b)))
      .map(([path, { attrs, arrays }]) =>
        Object.freeze({ path: `/${path}`, attrs, arrays: Object.freeze(arrays) }),
      ),
    refused: assembly.refused,
    warnings: assembly.warnings,
  };
}

function addNode(node: StoreNode, assembly: Assembly, rootArrayName: string): "array" | "group" {
  const { documents, path } = node;
  const isV2 = documents[".zarray"] !== undefined || documents[".zgroup"] !== undefined;
  const isArray = isV2
    ? documents[".zarray"] !== undefined
    : documents["zarr.json"] !== undefined && v3NodeType(jsonOf(documents, "zarr.json")) === "array";
  warnOfBoth(node, isV2, assembly.warnings);
  if (isArray) {
    addArray(node, isV2, assembly, rootArrayName);
    return "array";
  }
  const attrs = groupAttributes(documents, isV2);
  warnOfName(path, assembly.warnings);
  addParents(path, assembly);
  assembly.groups.set(path, { attrs, arrays: [] });
  return "group";
}

function groupAttributes(documents: NodeDocuments, isV2: boolean): JsonObject {
  if (!isV2 && documents["zarr.json"] !== undefined) return parseV3Group(jsonOf(documents, "zarr.json"));
  if (documents[".zgroup"] !== undefined) checkV2Group(jsonOf(documents, ".zgroup"));
  return parseV2Attributes(documents[".zattrs"] && jsonOf(documents, ".zattrs"));
}

function addArray(node: StoreNode, isV2: boolean, assembly: Assembly, rootArrayName: string): void {
  const path = node.path === "" ? rootArrayName : node.path;
  const parsed = parseArray(node, path, isV2, assembly.root);
  const parent = node.path === "" ? "" : parentOf(node.path);
  warnOfName(path, assembly.warnings);
  addParents(path, assembly);
  assembly.groups.get(parent)?.arrays.push(Object.freeze(parsed.array));
  for (const warning of parsed.warnings) assembly.warnings.push(`'${path}': ${warning}`);
}

function parseArray(node: StoreNode, path: string, isV2: boolean, root: string): ParsedArray {
  const { documents, directory } = node;
  const metadataFile = node.isConsolidated
    ? `${root}/.zmetadata`
    : `${directory}/${isV2 ? ".zarray" : "zarr.json"}`;
  const place = {
    name: nodeName(path),
    path,
    files: { directory, root, metadataFile },
  };
  if (!isV2) return parseV3Array(place, jsonOf(documents, "zarr.json"));
  const zattrs = documents[".zattrs"] && jsonOf(documents, ".zattrs");
  return parseV2Array(place, jsonOf(documents, ".zarray"), zattrs);
}

/** The JSON of a document that is there. @throws ZpublishError where it could not be read. */
function jsonOf(documents: NodeDocuments, name: DocumentName): JsonValue {
  const document = documents[name];
  if (document === undefined) throw new ZpublishError("internal", `expected ${name}, received nothing`);
  if ("json" in document) return document.json;
  throw errorFromData(document.error);
}

/** Groups between the root and a node that have no metadata of their own, which zarr-python once left out. */
function addParents(path: string, assembly: Assembly): void {
  for (const ancestor of ancestorsOf(path)) {
    if (assembly.groups.has(ancestor)) continue;
    assembly.groups.set(ancestor, { attrs: {}, arrays: [] });
    if (ancestor === "") continue;
    assembly.warnings.push(`'${ancestor}': a group without metadata of its own`);
    warnOfName(ancestor, assembly.warnings);
  }
}

function warnOfBoth({ path, documents }: StoreNode, isV2: boolean, warnings: string[]): void {
  const name = path === "" ? "/" : path;
  if (isV2 && documents["zarr.json"] !== undefined) {
    warnings.push(`'${name}': metadata of Zarr v2 and v3 at one place; v2 is served`);
  }
  if (documents[".zarray"] !== undefined && documents[".zgroup"] !== undefined) {
    warnings.push(`'${name}': an array and a group at one place; the array is served`);
  }
}

function warnOfName(path: string, warnings: string[]): void {
  const warning = nameWarning(path);
  if (warning !== undefined) warnings.push(warning);
}

/** Paths from the root (empty) to the parent. */
function ancestorsOf(path: string): string[] {
  if (path === "") return [];
  const ancestors = [""];
  for (let slash = path.indexOf("/"); slash !== -1; slash = path.indexOf("/", slash + 1)) {
    ancestors.push(path.slice(0, slash));
  }
  return ancestors;
}

function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf("/")));
}
