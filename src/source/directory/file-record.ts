import { type BigIntStats, stat } from "node:fs";
import { isMissing } from "../../errors.js";
import { type FileCalls, NoAnswerError } from "../files/file-calls.js";
import { codeOf } from "../files/unreadable-file.js";

/** The record of a place where there is nothing. */
export const ABSENT = "-";

const BIG_INTEGERS = { bigint: true } as const;

/**
 * What a file or directory looks like: another text whenever it may hold something else. {@link ABSENT} where there is
 * nothing; what cannot be looked at has a record too.
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

/** The record of what was looked at; of a directory it begins with `d`. */
export function recordOfStats(found: BigIntStats): string {
  const inode = found.ino.toString(36);
  const time = found.mtimeNs.toString(36);
  // Joined rather than concatenated: that would keep every part of it in memory.
  // Sizes of directories are no sign of anything; their modification times say that names came or went.
  if (found.isDirectory()) return ["d", inode, time].join(".");
  // The inode too: a file that was replaced within one tick of the clock keeps time and size.
  return ["f", inode, found.size.toString(36), time].join(".");
}
