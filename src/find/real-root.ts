import { realpath } from "node:fs";
import { isMissing, ZpublishError } from "../errors.js";
import { codeOf, createFileCalls } from "../stores/file-calls.js";

/** Returns the real path of the folder that is a root. @throws ZpublishError `source-unreadable` */
export async function realRoot(root: string): Promise<string> {
  try {
    return await createFileCalls(root).call<string>((done) => realpath.native(root, done));
  } catch (error) {
    throw unreadableRoot(isMissing(error) ? "it does not exist" : codeOf(error), error);
  }
}

/** Returns the error for a root that cannot be listed. Its cause is that of the file system, if there is one. */
export function unreadableRoot(reason: string, cause?: unknown): ZpublishError {
  return new ZpublishError("source-unreadable", `the folder cannot be listed: ${reason}`, { cause });
}
