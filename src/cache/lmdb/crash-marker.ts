import { readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

/**
 * Name of crash markers. The file is written beside a store before LMDB opens it, and removed when the store has worked for a
 * while. LMDB ends the process on a damaged page, so the marker of a dead process means that the store may be damaged.
 */
const PREFIX = "opened-by-";
/** Age at which a marker counts even if its process id is in use: its own process would have removed it. */
const MAX_AGE_MS = 120_000;

/** Markers of this process, which may open several caches. */
const own = new Set<string>();
let written = 0;

/**
 * Writes this process's marker into a store's directory.
 * @returns A function that removes the marker once, and never throws.
 * @throws Error if nothing can be written there.
 */
export async function writeCrashMarker(storeDirectory: string): Promise<() => Promise<void>> {
  const name = `${PREFIX}${process.pid}-${Date.now()}-${++written}`;
  const path = join(storeDirectory, name);
  own.add(name);
  await writeFile(path, "");
  return async () => {
    if (!own.has(name)) return;
    await rm(path, { force: true }).catch(() => {});
    own.delete(name);
  };
}

/** Tells if a process died soon after it had opened the store. Markers of live processes do not count. */
export async function hasCrashMarker(storeDirectory: string): Promise<boolean> {
  const names = await readdir(storeDirectory).catch(() => []);
  return names.some((name) => name.startsWith(PREFIX) && !own.has(name) && isLeft(name));
}

function isLeft(name: string): boolean {
  const [pid, at] = name.slice(PREFIX.length).split("-").map(Number);
  if (pid === process.pid || Date.now() - (at as number) > MAX_AGE_MS) return true;
  try {
    process.kill(pid as number, 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ESRCH";
  }
}
