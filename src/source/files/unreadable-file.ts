import type { BigIntStats } from "node:fs";
import { isMissing, ZpublishError } from "../../errors.js";

/** How messages name a file; put together where there is something to say of it. */
export type Label = () => string;

/** The error that says what is wrong with a file, by its name in the store. */
export function unreadable(label: Label, problem: string, cause?: unknown): ZpublishError {
  const key = label();
  return new ZpublishError("source-unreadable", `'${key}' ${problem}`, { details: { key }, cause });
}

/** @throws ZpublishError `source-unreadable` where it is none. */
export function assertFile(stat: BigIntStats, label: Label): void {
  if (stat.isFile()) return;
  throw unreadable(label, `expected a file, found ${stat.isDirectory() ? "a directory" : "something else"}`);
}

/** The code of a system error, without its message, which has a path of the machine. */
export function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" ? code : "unknown error";
}

/** Returns undefined if the error says that there is no such file. @throws ZpublishError `source-unreadable` for any other error. */
export function absentOrThrow(error: unknown, label: Label): undefined {
  if (isMissing(error)) return undefined;
  throw unreadable(label, `cannot be read (${codeOf(error)})`, error);
}
