import type { BigIntStats } from "node:fs";
import { isMissing, ZpublishError } from "../../errors.js";

/** Returns the name of a file for messages. A function, since most files need no message. */
export type Label = () => string;

/** Returns the error for a file that cannot be read, with its name in the store. */
export function unreadable(label: Label, problem: string, cause?: unknown): ZpublishError {
  const key = label();
  return new ZpublishError("source-unreadable", `'${key}' ${problem}`, { details: { key }, cause });
}

/** Asserts that a path is a file. @throws ZpublishError `source-unreadable` */
export function assertFile(stat: BigIntStats, label: Label): void {
  if (stat.isFile()) return;
  throw unreadable(label, `expected a file, found ${stat.isDirectory() ? "a directory" : "something else"}`);
}

/** Returns the code of a system error. Its message contains a path of the machine. */
export function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" ? code : "unknown error";
}

/** Returns undefined if an error says that there is no file. @throws ZpublishError `source-unreadable` for other errors. */
export function absentOrThrow(error: unknown, label: Label): undefined {
  if (isMissing(error)) return undefined;
  throw unreadable(label, `cannot be read (${codeOf(error)})`, error);
}
