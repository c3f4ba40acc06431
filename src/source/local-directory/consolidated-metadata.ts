import { errorFromData } from "../../errors.js";
import { isJsonObject } from "../../model/json-value.js";
import { invalidField } from "../../zarr/metadata-fields.js";
import { type Document, type DocumentName, documentNames, type NodeDocuments } from "./node-documents.js";

/** What `.zmetadata` lists: documents by node path, without a leading slash; the root's is empty. */
export type ConsolidatedNodes = ReadonlyMap<string, NodeDocuments>;

/**
 * The nodes of a `.zmetadata`.
 * @throws ZpublishError `invalid-metadata`, `source-unreadable`
 */
export function parseConsolidatedMetadata(document: Document): ConsolidatedNodes {
  if ("error" in document) throw errorFromData(document.error);
  const { json } = document;
  if (!isJsonObject(json) || !isJsonObject(json.metadata)) {
    throw invalidField(".zmetadata", 'an object with an object "metadata"', json);
  }
  const nodes = new Map<string, Partial<Record<DocumentName, Document>>>();
  for (const [key, value] of Object.entries(json.metadata)) {
    const slash = key.lastIndexOf("/");
    const name = key.slice(slash + 1) as DocumentName;
    if (!documentNames.includes(name)) continue;
    const path = slash === -1 ? "" : key.slice(0, slash);
    const node = nodes.get(path) ?? {};
    node[name] = { json: value };
    nodes.set(path, node);
  }
  return nodes;
}
