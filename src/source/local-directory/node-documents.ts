import { type ErrorData, errorToData } from "../../errors.js";
import type { JsonValue } from "../../model/json-value.js";
import { parseJson } from "../../model/parse-json.js";
import type { StoreFiles } from "../store-files.js";
import type { FileRecords } from "./file-records.js";

/** Far beyond any metadata document, and within what a string can hold. */
const maxDocumentBytes = 256 * 1024 * 1024;

/** Strict UTF-8; a byte order mark stays, for the parser to refuse. */
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Names of the documents that a node can have. */
export const documentNames = [".zarray", ".zgroup", ".zattrs", "zarr.json"] as const;
export type DocumentName = (typeof documentNames)[number];

/** A document that is there: understood as JSON, or why it is not. */
export type Document = { readonly json: JsonValue } | { readonly error: ErrorData };

/** The documents of one node by name; those that are not there are missing. */
export type NodeDocuments = Readonly<Partial<Record<DocumentName, Document>>>;

/**
 * Reads one metadata document. Never throws: what is wrong with it is its `error`.
 * @returns Undefined where there is none.
 */
export async function readDocument(
  files: StoreFiles,
  directory: string,
  name: string,
  records: FileRecords,
): Promise<Document | undefined> {
  const path = `${directory}/${name}`;
  if (!(await records.note(path))) return undefined;
  try {
    return await files.read(path, async (file) => {
      const byteLength = Number(file.stat.size);
      if (byteLength > maxDocumentBytes) {
        return invalid(`${name}: expected at most ${maxDocumentBytes} bytes, received ${byteLength}`);
      }
      return parseBytes(await file.readBytes(0, byteLength), name);
    });
  } catch (error) {
    return { error: errorToData(error) };
  }
}

function parseBytes(bytes: Uint8Array, name: string): Document {
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    return invalid(`${name}: expected UTF-8, received other bytes`);
  }
  try {
    return { json: parseJson(text) };
  } catch (error) {
    return invalid(`${name}: ${errorToData(error).message}`);
  }
}

function invalid(message: string): Document {
  return { error: { code: "invalid-metadata", message, details: {} } };
}

/** Reads the documents of the node in `directory`, all at once. */
export async function readNodeDocuments(
  files: StoreFiles,
  directory: string,
  records: FileRecords,
): Promise<NodeDocuments> {
  const documents = await Promise.all(
    documentNames.map((name) => readDocument(files, directory, name, records)),
  );
  const found: Partial<Record<DocumentName, Document>> = {};
  documents.forEach((document, i) => {
    if (document !== undefined) found[documentNames[i] as DocumentName] = document;
  });
  return found;
}

/**
 * Whether documents make their directory an array, whose inside is never listed: chunks may be millions. A document
 * that cannot be understood counts as an array's.
 */
export function describesArray(documents: NodeDocuments): boolean {
  if (documents[".zarray"] !== undefined) return true;
  const document = documents["zarr.json"];
  if (document === undefined || documents[".zgroup"] !== undefined) return false;
  if (!("json" in document)) return true;
  const { json } = document;
  return !(typeof json === "object" && json !== null && "node_type" in json && json.node_type === "group");
}
