import { createHash } from "node:crypto";
import { mkdir, readdir, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { endianness } from "node:os";
import { dirname, join } from "node:path";
import { isMissing } from "../errors.js";
import { DATA_FILE, LOCK_FILE } from "./lmdb-store.js";
import { STORED_FORMAT } from "./stored-value.js";

/**
 * Prefix of all names in the cache directory; other names are not touched. Each version of the package has its own
 * sub-directory. So versions that run side by side (a rolling update) never read or delete each other's chunks.
 */
const PREFIX = "zpublish-chunks-";
const ASIDE_PREFIX = `${PREFIX}aside-`;
/** File that every process touches which uses the sub-directory, more often than {@link ABANDONED_AFTER_MS}. */
const IN_USE_FILE = "in-use";
const ABANDONED_AFTER_MS = 5 * 60_000;
/** Size of the lock file: more than lmdb needs for the readers that `lmdb-store` allows. */
const LOCK_FILE_BYTES = 128 * 1024;

/** Makes the stamp of a cache. Processes with equal stamps read each other's values. */
export function cacheStamp(version: string): string {
  return JSON.stringify({ zpublish: version, format: STORED_FORMAT, byteOrder: endianness() });
}

/** Returns the path of the sub-directory for one stamp. */
export function storeDirectoryOf(directory: string, stamp: string): string {
  return join(directory, PREFIX + createHash("sha256").update(stamp).digest("hex").slice(0, 16));
}

/**
 * Makes the directory of a store, unless it exists.
 * @throws Error if nothing can be written there.
 */
export async function prepareStoreDirectory(storeDirectory: string): Promise<void> {
  await makeDirectories(storeDirectory);
  // On a full disk lmdb would extend its lock file, map it, and die of SIGBUS. Zeros written here fail like any write.
  await writeUnlessPresent(join(storeDirectory, LOCK_FILE), Buffer.alloc(LOCK_FILE_BYTES));
  await markInUse(storeDirectory);
}

/** Marks the directory as in use, for other versions. @throws Error if nothing can be written there. */
export async function markInUse(storeDirectory: string): Promise<void> {
  const path = join(storeDirectory, IN_USE_FILE);
  const now = new Date();
  try {
    await utimes(path, now, now);
  } catch {
    await writeFile(path, "");
  }
}

/** Returns the identity of a store's file, which differs if it was replaced; undefined if there is none. @throws Error if `stat` fails. */
export async function identityOfStore(storeDirectory: string): Promise<string | undefined> {
  try {
    const { dev, ino } = await stat(join(storeDirectory, DATA_FILE), { bigint: true });
    return `${dev}:${ino}`;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/**
 * Moves a store aside, and deletes it in the background. Processes that have it open lose nothing.
 * @param identity Identity of the store to discard: one that another process has put in its place stays.
 * @throws Error if it cannot be moved.
 */
export async function discardStore(
  directory: string,
  storeDirectory: string,
  identity: string | undefined,
): Promise<void> {
  if ((await identityOfStore(storeDirectory)) !== identity) return;
  const aside = join(directory, `${ASIDE_PREFIX}${process.pid}-${Date.now().toString(36)}`);
  try {
    await rename(storeDirectory, aside);
  } catch (error) {
    if (isMissing(error)) return; // Another process was quicker.
    throw error;
  }
  rm(aside, { recursive: true, force: true }).catch(() => {}); // What remains is deleted at the next opening.
}

/** Deletes stores of other versions that no process uses, and remains of discarded ones. Never throws. */
export async function sweepAbandonedStores(directory: string, storeDirectory: string): Promise<void> {
  try {
    for (const name of await readdir(directory)) {
      const path = join(directory, name);
      if (!name.startsWith(PREFIX) || path === storeDirectory) continue;
      if (name.startsWith(ASIDE_PREFIX) || (await isAbandoned(path))) {
        await rm(path, { recursive: true, force: true });
      }
    }
  } catch {
    // The space stays occupied until the next call.
  }
}

async function isAbandoned(storeDirectory: string): Promise<boolean> {
  const used = await stat(join(storeDirectory, IN_USE_FILE)).catch(() => stat(storeDirectory));
  return Date.now() - used.mtimeMs > ABANDONED_AFTER_MS;
}

/** Makes a directory and its parents. `recursive: true` never returns if the system answers ENOENT to everything, as below /proc. */
async function makeDirectories(path: string): Promise<void> {
  try {
    await mkdir(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST" && (await stat(path)).isDirectory()) return;
    if (code !== "ENOENT" || dirname(path) === path) throw error;
    await makeDirectories(dirname(path));
    await makeDirectory(path);
  }
}

async function makeDirectory(path: string): Promise<void> {
  await mkdir(path).catch((error: NodeJS.ErrnoException) => {
    // Another process was quicker.
    if (error.code !== "EEXIST") throw error;
  });
}

async function writeUnlessPresent(path: string, bytes: Buffer): Promise<void> {
  try {
    await writeFile(path, bytes, { flag: "wx" });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") {
      await rm(path, { force: true }).catch(() => {});
      throw error;
    }
  }
}
