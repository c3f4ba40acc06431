import { type BigIntStats, close, fstat, open, read, stat } from "node:fs";
import { type ErrorData, errorToData, isMissing, ZpublishError } from "../errors.js";
import {
  codeOf,
  type FileCalls,
  isSameVersion,
  NoAnswerError,
  OPEN_FLAGS,
  remainingSettleMs,
} from "../stores/file-calls.js";
import type { StoreFiles } from "../stores/file-store.js";
import {
  type DocumentName,
  documentNames,
  invalidDocument,
  MAX_DOCUMENT_BYTES,
  type NodeDocument,
  type NodeDocuments,
  parseDocument,
  textOf,
} from "./documents.js";

/** Record of a path without a file. */
export const ABSENT = "-";

const BIG_INTEGERS = { bigint: true } as const;

/**
 * Returns the record of a file or directory: a text that changes whenever the content may have changed. {@link ABSENT} if there
 * is nothing; `!` and the error's code if `stat` fails.
 * @throws NoAnswerError
 */
export async function recordOf(calls: FileCalls, path: string): Promise<string> {
  try {
    return recordOfStats(await calls.call<BigIntStats>((done) => stat(path, BIG_INTEGERS, done)));
  } catch (error) {
    if (error instanceof NoAnswerError) throw error;
    return isMissing(error) ? ABSENT : `!${codeOf(error)}`;
  }
}

/** Returns the record of a file or directory from its stats; a directory's begins with `d`. */
export function recordOfStats(found: BigIntStats): string {
  const inode = found.ino.toString(36);
  const time = found.mtimeNs.toString(36);
  // Joined, since a concatenated string retains all its parts.
  // A directory's size says nothing; its modification time changes when names are added or removed.
  if (found.isDirectory()) return ["d", inode, time].join(".");
  // With the inode: a file that is replaced within one tick of the clock may have the same time and size.
  return ["f", inode, found.size.toString(36), time].join(".");
}

/** The documents of one directory. */
interface ReadDocuments {
  /** In the order of {@link documentNames}. */
  readonly records: readonly string[];
  readonly documents: NodeDocuments;
}

/** Reads the documents in a directory, all at once. */
export async function readLocalDocuments(files: StoreFiles, directory: string): Promise<ReadDocuments> {
  const read = await Promise.all(documentNames.map((name) => readLocalText(files, directory, name)));
  const documents: Partial<Record<DocumentName, NodeDocument>> = {};
  for (const [index, name] of documentNames.entries()) {
    const { found } = read[index] as ReadText;
    if (found === undefined) continue;
    documents[name] = typeof found === "string" ? await parseDocument(found, name) : { error: found };
  }
  return { records: read.map(({ record }) => record), documents };
}

/** The result of reading a document. */
interface ReadText {
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
export async function readLocalText(files: StoreFiles, directory: string, name: string): Promise<ReadText> {
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
    const bytes = await files.read(path, (file) => {
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

/** Longer files are read by `StoreFiles`. */
const MAX_BYTES = 64 * 1024;

/** A small file, and its record, which was the same before and after the read. */
interface SmallFile {
  readonly record: string;
  readonly bytes: Buffer;
}

/**
 * Reads a file with as few calls as possible and no promises between them, which halves the time to open a store.
 * @returns {@link ABSENT} if there is no file; undefined if it is unusual (a link, long, fresh), so that `StoreFiles` has to read it.
 * @throws NoAnswerError
 */
function readSmallFile(
  calls: FileCalls,
  directory: string,
  name: string,
): Promise<SmallFile | typeof ABSENT | undefined> {
  return calls.call((done) => readAtOnce(`${directory}/${name}`, (found) => done(null, found)));
}

function readAtOnce(path: string, done: (found: SmallFile | typeof ABSENT | undefined) => void): void {
  open(path, OPEN_FLAGS, (error, fd) => {
    if (error !== null) {
      done(isMissing(error) ? ABSENT : undefined);
      return;
    }
    const finish = (found: SmallFile | undefined): void => close(fd, () => done(found));
    fstat(fd, BIG_INTEGERS, (error, before) => {
      if (error !== null || !isOrdinary(before)) return finish(undefined);
      const bytes = Buffer.allocUnsafe(Number(before.size));
      read(fd, bytes, 0, bytes.length, 0, (error, bytesRead) => {
        if (error !== null || bytesRead < bytes.length) return finish(undefined);
        fstat(fd, BIG_INTEGERS, (error, after) => {
          const isSame = error === null && isSameVersion(before, after);
          finish(isSame ? { record: recordOfStats(before), bytes } : undefined);
        });
      });
    });
  });
}

function isOrdinary(found: BigIntStats): boolean {
  return found.isFile() && found.size <= MAX_BYTES && remainingSettleMs(found) === 0;
}
