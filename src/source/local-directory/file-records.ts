import { createHash } from "node:crypto";
import { stat } from "node:fs/promises";
import { createBounded } from "../bounded.js";

/** Stats of a look at the store at once. */
const concurrency = 32;

/** What the files and directories of a store's metadata looked like, each before it was read. */
export interface FileRecords {
  /** Real path of the store. */
  readonly root: string;
  /** Looks at a file or directory and keeps what it sees; false where there is nothing. */
  note(path: string): Promise<boolean>;
  /** Stops watching a path that nothing depends on. */
  forget(path: string): void;
  /** Hash of everything noted. */
  fingerprint(): string;
  /** Hash of the files noted, directories left out: a file beside the documents changes only those. */
  identity(): string;
  /** The fingerprint that the same paths have now. */
  fingerprintNow(): Promise<string>;
}

/** @param root Real path of the store, part of both hashes. */
export function createFileRecords(root: string): FileRecords {
  const seen = new Map<string, string>();

  return {
    root,
    async note(path) {
      const record = await recordOf(path);
      seen.set(path, record);
      return record !== absent;
    },
    forget: (path) => void seen.delete(path),
    fingerprint: () => hash(root, seen),
    identity: () => hash(root, new Map([...seen].filter(([, record]) => !record.startsWith("d")))),
    async fingerprintNow() {
      const bounded = createBounded(concurrency);
      const now = new Map<string, string>();
      await Promise.all(
        [...seen.keys()].map((path) => bounded(async () => now.set(path, await recordOf(path)))),
      );
      return hash(root, now);
    },
  };
}

const absent = "-";

/** The inode too: a file that was replaced within one tick of the clock keeps time and size. */
async function recordOf(path: string): Promise<string> {
  try {
    const found = await stat(path, { bigint: true });
    // Sizes of directories are no sign of anything; their modification times say that names came or went.
    if (found.isDirectory()) return `d${found.ino}.${found.mtimeNs}`;
    return `f${found.ino}.${found.size}.${found.mtimeNs}`;
  } catch (error) {
    const code = (error as { code?: unknown }).code;
    return code === "ENOENT" || code === "ENOTDIR" ? absent : `!${code}`;
  }
}

function hash(root: string, records: ReadonlyMap<string, string>): string {
  const digest = createHash("sha256").update(root);
  // The walk meets paths in any order.
  for (const path of [...records.keys()].sort()) digest.update(`\0${path}\0${records.get(path)}`);
  return digest.digest("hex").slice(0, 40);
}
