import { createHash } from "node:crypto";
import { mkdir, readdir, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { endianness } from "node:os";
import { dirname, join } from "node:path";
import { isMissing } from "../../errors.js";
import { DATA_FILE, LOCK_FILE } from "./lmdb-store.js";
import { STORED_FORMAT } from "./stored-value.js";

/**
 * Names in the cache directory. Each version keeps its chunks in a sub-directory of its own, so that two versions that
 * run side by side (a rolling update) never read or clear each other's. What is not named like this is not touched.
 */
const PREFIX = "zpublish-chunks-";
const ASIDE_PREFIX = `${PREFIX}aside-`;
/** Touched by every process that uses a sub-directory, more often than {@link ABANDONED_AFTER_MS}. */
const IN_USE_FILE = "in-use";
const ABANDONED_AFTER_MS = 5 * 60_000;
/** More than lmdb needs for the readers that `lmdb-store` allows. */
const LOCK_FILE_BYTES = 128 * 1024;

/** What the values of a cache mean: equal stamps may read each other's. */
export function cacheStamp(version: string): string {
  return JSON.stringify({ zpublish: version, format: STORED_FORMAT, byteOrder: endianness() });
}

/** The sub-directory for chunks of one stamp. */
export function storeDirectoryOf(directory: string, stamp: string): string {
  return join(directory, PREFIX + createHash("sha256").update(stamp).digest("hex").slice(0, 16));
}

/**
 * Makes the directory of a store where there is none.
 * @throws Error Where nothing can be written there.
 */
export async function prepareStoreDirectory(storeDirectory: string): Promise<void> {
  await makeDirectories(storeDirectory);
  // On a full disk lmdb would extend its lock file, map it, and die of SIGBUS: zeros written here fail like any write.
  await writeUnlessThere(join(storeDirectory, LOCK_FILE), Buffer.alloc(LOCK_FILE_BYTES));
  await markInUse(storeDirectory);
}

/** Tells other versions that the directory is in use. @throws Error Where nothing can be written there. */
export async function markInUse(storeDirectory: string): Promise<void> {
  const path = join(storeDirectory, IN_USE_FILE);
  const now = new Date();
  try {
    await utimes(path, now, now);
  } catch {
    await writeFile(path, "");
  }
}

/** Tells whether a store's file was removed or replaced; undefined where there is none. @throws Error Where it cannot be looked at. */
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
 * Moves a store out of the way, and deletes it in the background: processes that have it open lose nothing.
 * @param identity The store that is meant: one that another process has replaced already stays.
 * @throws Error Where it cannot be moved.
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
  rm(aside, { recursive: true, force: true }).catch(() => {}); // What stays is swept at the next opening.
}

/** Deletes stores of other versions that nobody uses any more, and remains of discarded ones. Never throws. */
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
    // Space that stays taken; tried again later.
  }
}

async function isAbandoned(storeDirectory: string): Promise<boolean> {
  const used = await stat(join(storeDirectory, IN_USE_FILE)).catch(() => stat(storeDirectory));
  return Date.now() - used.mtimeMs > ABANDONED_AFTER_MS;
}

/** Not `recursive: true`: that never returns where the system answers ENOENT to everything, as below /proc. */
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

async function writeUnlessThere(path: string, bytes: Buffer): Promise<void> {
  try {
    await writeFile(path, bytes, { flag: "wx" });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") {
      await rm(path, { force: true }).catch(() => {});
      throw error;
    }
  }
}
