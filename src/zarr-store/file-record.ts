import { type BigIntStats, stat } from "node:fs";
import { isMissing } from "../errors.js";
import { codeOf, type FileCalls, NoAnswerError } from "../stores/file-calls.js";

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
