import { isAscii } from "node:buffer";
import { type ErrorData, errorToData, ZpublishError } from "../../errors.js";
import { runCooperatively } from "../../event-loop/cooperative-task.js";
import type { JsonValue } from "../../json/json-value.js";
import { parseJson, parseJsonAround } from "../../json/parse-json.js";
import { NoAnswerError } from "../files/file-calls.js";
import type { StoreFiles } from "../files/store-files.js";
import { ABSENT, recordOf } from "./file-record.js";
import { readSmallFile } from "./read-small-file.js";

/** Far beyond any metadata document, and within what a string can hold. */
const maxDocumentBytes = 256 * 1024 * 1024;
/** Longer documents are parsed in slices. */
const maxCharsAtOnce = 64 * 1024;

/** Strict UTF-8; a byte order mark stays, for the parser to refuse. */
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Names of the documents that a node can have. */
export const documentNames = [".zarray", ".zgroup", ".zattrs", "zarr.json"] as const;
export type DocumentName = (typeof documentNames)[number];

/** A document that is there: understood as JSON, or why it is not. */
export type Document = { readonly json: JsonValue } | { readonly error: ErrorData };

/** The documents of one node by name; those that are not there are missing. */
export type NodeDocuments = Readonly<Partial<Record<DocumentName, Document>>>;

/** A place where a document may be, as it was read. */
export interface ReadText {
  /** What the file looked like before it was read; see `recordOf`. */
  readonly record: string;
  /** Its text, or why it cannot be read; undefined where there is none. */
  readonly found: string | ErrorData | undefined;
}

const nothing: ReadText = Object.freeze({ record: ABSENT, found: undefined });

/**
 * Reads the text of one metadata document.
 * @param directory Real path of a directory in the store.
 * @throws NoAnswerError, and nothing else: that says nothing of the document.
 */
export async function readText(files: StoreFiles, directory: string, name: string): Promise<ReadText> {
  const path = `${directory}/${name}`;
  const small = await readSmallFile(files.calls, directory, name);
  if (small === ABSENT) return nothing;
  if (small !== undefined) return { record: small.record, found: textOf(small.bytes, name) };
  const record = await recordOf(files.calls, path);
  return record === ABSENT ? nothing : { record, found: await readCarefully(files, path, name) };
}

async function readCarefully(
  files: StoreFiles,
  path: string,
  name: string,
): Promise<string | ErrorData | undefined> {
  try {
    const bytes = await files.read(path, async (file) => {
      const byteLength = Number(file.stat.size);
      if (byteLength <= maxDocumentBytes) return file.readBytes(0, byteLength);
      return invalidDocument(name, `expected at most ${maxDocumentBytes} bytes, received ${byteLength}`);
    });
    return bytes instanceof Uint8Array ? textOf(bytes, name) : bytes;
  } catch (error) {
    if (error instanceof ZpublishError && error.cause instanceof NoAnswerError) throw error.cause;
    return errorToData(error);
  }
}

function textOf(bytes: Uint8Array, name: string): string | ErrorData {
  // What zarr-python writes; half a millisecond per megabyte, where decoding takes as long as parsing.
  if (isAscii(bytes)) return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");
  try {
    return utf8.decode(bytes);
  } catch {
    return invalidDocument(name, "expected UTF-8, received other bytes");
  }
}

/** What is wrong with a document. */
export function invalidDocument(name: string, problem: string): ErrorData {
  return { code: "invalid-metadata", message: `${name}: ${problem}`, details: {} };
}

/** A document of its text: in slices, where it is long. */
function parseDocument(text: string, name: string): Document | Promise<Document> {
  if (text.length > maxCharsAtOnce) return parseLarge(text, name);
  try {
    return { json: parseJson(text) };
  } catch (error) {
    return { error: invalidDocument(name, errorToData(error).message) };
  }
}

async function parseLarge(text: string, name: string): Promise<Document> {
  try {
    // Nobody asks for it here, and it may be all that makes a document large.
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

/** Whether documents make a node by themselves: attributes alone do not. */
export function describesNode(documents: Readonly<Partial<Record<DocumentName, unknown>>>): boolean {
  return (documents[".zarray"] ?? documents[".zgroup"] ?? documents["zarr.json"]) !== undefined;
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
