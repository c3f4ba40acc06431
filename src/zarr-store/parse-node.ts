import { type ErrorData, errorFromData, errorToData, ZpublishError } from "../errors.js";
import type { JsonObject, JsonValue } from "../json/json-value.js";
import { nodeName } from "../model/data-tree.js";
import type { ChunkObjects } from "../zarr/chunk-reader.js";
import type { ParsedArray, StoredArray } from "../zarr/stored-array.js";
import { assertV2Group, parseV2Array, parseV2Attributes } from "../zarr/v2.js";
import { parseV3Array, parseV3Group, v3NodeType } from "../zarr/v3/parse-v3.js";
import type { ListedTexts } from "./consolidated-metadata.js";
import { type DocumentName, describesArray, type NodeDocuments } from "./node-documents.js";

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
  if (!isV2) return parseV3Array(array, jsonOf(documents, "zarr.json"));
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
