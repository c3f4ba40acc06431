import { isAscii } from "node:buffer";
import { type ErrorData, errorToData, ZpublishError } from "../errors.js";
import { runCooperatively } from "../event-loop/cooperative-task.js";
import type { JsonValue } from "../json/json-value.js";
import { parseJson, parseJsonAround } from "../json/parse-json.js";
import { NoAnswerError } from "../stores/file-calls.js";
import type { StoreFiles } from "../stores/file-store.js";
import { ABSENT, recordOf } from "./file-record.js";
import { readSmallFile } from "./read-small-file.js";

/** Far longer than any metadata document, and within the length of a string. */
const MAX_DOCUMENT_BYTES = 256 * 1024 * 1024;
/** Longer documents are parsed in slices. */
const MAX_CHARS_AT_ONCE = 64 * 1024;

/** Strict decoder. It keeps a byte order mark, so that the parser refuses it. */
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Names of the documents that a node can have. */
export const documentNames = [".zarray", ".zgroup", ".zattrs", "zarr.json"] as const;
/** Name of a metadata document. */
export type DocumentName = (typeof documentNames)[number];

/** A document that exists: its JSON, or why it cannot be understood. */
export type Document = { readonly json: JsonValue } | { readonly error: ErrorData };

/** The documents of one node by name, without those that do not exist. */
export type NodeDocuments = Readonly<Partial<Record<DocumentName, Document>>>;

/** The result of reading a document. */
export interface ReadText {
  /** Record of the file before it was read; see `recordOf`. */
  readonly record: string;
  /** Its text, or why it cannot be read; undefined if it does not exist. */
  readonly found: string | ErrorData | undefined;
}

const NO_DOCUMENT: ReadText = Object.freeze({ record: ABSENT, found: undefined });

/**
 * Reads the text of one metadata document.
 * @param directory Real path of a directory in the store.
 * @throws NoAnswerError, and nothing else: a missing answer tells nothing about the document.
 */
export async function readText(files: StoreFiles, directory: string, name: string): Promise<ReadText> {
  const path = `${directory}/${name}`;
  const small = await readSmallFile(files.calls, directory, name);
  if (small === ABSENT) return NO_DOCUMENT;
  if (small !== undefined) return { record: small.record, found: textOf(small.bytes, name) };
  const record = await recordOf(files.calls, path);
  return record === ABSENT ? NO_DOCUMENT : { record, found: await readCarefully(files, path, name) };
}

async function readCarefully(
  files: StoreFiles,
  path: string,
  name: string,
): Promise<string | ErrorData | undefined> {
  try {
    const bytes = await files.read(path, async (file) => {
      const byteLength = Number(file.stat.size);
      if (byteLength <= MAX_DOCUMENT_BYTES) return file.readBytes(0, byteLength);
      return invalidDocument(name, `expected at most ${MAX_DOCUMENT_BYTES} bytes, received ${byteLength}`);
    });
    return bytes instanceof Uint8Array ? textOf(bytes, name) : bytes;
  } catch (error) {
    if (error instanceof ZpublishError && error.cause instanceof NoAnswerError) throw error.cause;
    return errorToData(error);
  }
}

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
function parseDocument(text: string, name: string): Document | Promise<Document> {
  if (text.length > MAX_CHARS_AT_ONCE) return parseLarge(text, name);
  try {
    return { json: parseJson(text) };
  } catch (error) {
    return { error: invalidDocument(name, errorToData(error).message) };
  }
}

async function parseLarge(text: string, name: string): Promise<Document> {
  try {
    // `consolidated_metadata` is not used, and may be most of a large document.
    return { json: await runCooperatively(parseJsonAround(text, "consolidated_metadata")) };
  } catch (error) {
    return { error: invalidDocument(name, errorToData(error).message) };
  }
}

/** The documents of one directory. */
export interface ReadDocuments {
  /** In the order of {@link documentNames}. */
  readonly records: readonly string[];
  readonly documents: NodeDocuments;
}

/** Reads the documents in a directory, all at once. */
export async function readNodeDocuments(files: StoreFiles, directory: string): Promise<ReadDocuments> {
  const read = await Promise.all(documentNames.map((name) => readText(files, directory, name)));
  const documents: Partial<Record<DocumentName, Document>> = {};
  for (const [index, name] of documentNames.entries()) {
    const { found } = read[index] as ReadText;
    if (found === undefined) continue;
    documents[name] = typeof found === "string" ? await parseDocument(found, name) : { error: found };
  }
  return { records: read.map(({ record }) => record), documents };
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
