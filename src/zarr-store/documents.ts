import { isAscii } from "node:buffer";
import { type ErrorData, errorToData } from "../errors.js";
import { runCooperatively } from "../event-loop/cooperative-task.js";
import type { JsonValue } from "../json/json-value.js";
import { parseJson, parseJsonAround } from "../json/parse-json.js";

/** Far longer than any metadata document, and within the length of a string. */
export const MAX_DOCUMENT_BYTES = 256 * 1024 * 1024;
/** Longer documents are parsed in slices. */
const MAX_CHARS_AT_ONCE = 64 * 1024;

/** Strict decoder. It keeps a byte order mark, so that the parser refuses it. */
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Names of the documents that a node can have. */
export const documentNames = [".zarray", ".zgroup", ".zattrs", "zarr.json"] as const;
/** Name of a metadata document. */
export type DocumentName = (typeof documentNames)[number];

/** A document that exists: its JSON, or why it cannot be understood. */
export type NodeDocument = { readonly json: JsonValue } | { readonly error: ErrorData };

/** The documents of one node by name, without those that do not exist. */
export type NodeDocuments = Readonly<Partial<Record<DocumentName, NodeDocument>>>;

/** Decodes the text of a document, or says why that is impossible. */
export function textOf(bytes: Uint8Array, name: string): string | ErrorData {
  // ASCII is what zarr-python writes. This takes 0.5 ms per megabyte; decoding takes as long as parsing.
  if (isAscii(bytes)) return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");
  try {
    return utf8.decode(bytes);
  } catch {
    return invalidDocument(name, "expected UTF-8, received other bytes");
  }
}

/** Returns the error of a document that cannot be understood. */
export function invalidDocument(name: string, problem: string): ErrorData {
  return { code: "invalid-metadata", message: `${name}: ${problem}`, details: {} };
}

/** Parses a document, in slices if it is long. */
export function parseDocument(text: string, name: string): NodeDocument | Promise<NodeDocument> {
  return text.length > MAX_CHARS_AT_ONCE ? parseLarge(text, name) : parseNow(text, name);
}

/** As {@link parseDocument}, at once. */
export function parseNow(text: string, name: string): NodeDocument {
  try {
    return { json: parseJson(text) };
  } catch (error) {
    return { error: invalidDocument(name, errorToData(error).message) };
  }
}

async function parseLarge(text: string, name: string): Promise<NodeDocument> {
  try {
    // `consolidated_metadata` is not used, and may be most of a large document.
    return { json: await runCooperatively(parseJsonAround(text, "consolidated_metadata")) };
  } catch (error) {
    return { error: invalidDocument(name, errorToData(error).message) };
  }
}

/** Tells whether documents make a node by themselves. Attributes alone do not. */
export function describesNode(documents: Readonly<Partial<Record<DocumentName, unknown>>>): boolean {
  return (documents[".zarray"] ?? documents[".zgroup"] ?? documents["zarr.json"]) !== undefined;
}

/**
 * Tells whether documents make their directory an array. It is never listed then, since it may contain millions of chunks. A document
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
