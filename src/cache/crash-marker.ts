import { createHash } from "node:crypto";
import { readdir, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";

/**
 * The mark of a process that has a store open: an empty file beside the store, `open-STATE-HOST-PID-TIME-COUNT`. It is written
 * before LMDB opens the store, since LMDB ends the process on a damaged page.
 */
export interface OpenMark {
  /** True once the store has worked for a while, so that the end of this process says nothing about it. */
  readonly isSound: boolean;
  /** Shows other processes that this one lives. If the store is sound, marks of dead processes are deleted. Never throws. */
  renew(isSound: boolean): Promise<void>;
  /** Removes the mark, at an orderly end. Never throws. */
  remove(): Promise<void>;
}

/** Processes that die in a row, soon after they have opened a store, until the store counts as damaged. */
export const DEATHS_MAX = 2;

const PREFIX = "open-";
/** State of a mark whose store has worked. The state of others is the number of deaths in a row before. */
const SOUND = "sound";
/** Age of a mark that was not renewed, from which its process counts as dead. */
const RENEWED_WITHIN_MS = 60_000;
/** Containers that share a directory do not share process ids. */
const HOST = createHash("sha256").update(hostname()).digest("hex").slice(0, 8);

/** Marks of this process, which may open several caches. */
const own = new Set<string>();
let written = 0;

/**
 * Writes this process's mark into a store's directory.
 * @param deaths Result of {@link deathsInRow}.
 * @throws Error if nothing can be written there.
 */
export async function writeOpenMark(storeDirectory: string, deaths: number): Promise<OpenMark> {
  const rest = `${HOST}-${process.pid}-${Date.now()}-${++written}`;
  let name = `${PREFIX}${deaths}-${rest}`;
  let isMarkedSound = false;
  own.add(name);
  await writeFile(join(storeDirectory, name), "");

  async function becomeSound(): Promise<void> {
    const sound = `${PREFIX}${SOUND}-${rest}`;
    own.add(sound);
    await rename(join(storeDirectory, name), join(storeDirectory, sound));
    own.delete(name);
    name = sound;
    isMarkedSound = true;
  }

  return {
    get isSound() {
      return isMarkedSound;
    },
    async renew(isSound) {
      try {
        if (isSound && !isMarkedSound) await becomeSound();
        const now = new Date();
        await utimes(join(storeDirectory, name), now, now);
        if (isMarkedSound) await removeDeadMarks(storeDirectory);
      } catch {
        // The directory is gone, or takes no writes now.
      }
    },
    async remove() {
      if (!own.has(name)) return;
      await rm(join(storeDirectory, name), { force: true }).catch(() => {});
      own.delete(name);
    },
  };
}

/**
 * Counts the processes that died in a row soon after they had opened the store. Processes that had it open at once count as one. While a
 * living process has the store open, no further death counts.
 */
export async function deathsInRow(storeDirectory: string): Promise<number> {
  const marks = await readMarks(storeDirectory);
  const most = (of: readonly Mark[]) => Math.max(...of.map(({ deaths }) => deaths));
  const living = marks.filter(({ isLiving }) => isLiving);
  if (living.length > 0) return most(living);
  const dead = marks.filter(({ isSound }) => !isSound);
  return dead.length === 0 ? 0 : most(dead) + 1;
}

async function removeDeadMarks(storeDirectory: string): Promise<void> {
  for (const { name, isLiving } of await readMarks(storeDirectory))
    if (!isLiving) await rm(join(storeDirectory, name), { force: true });
}

interface Mark {
  readonly name: string;
  readonly isSound: boolean;
  /** Deaths in a row before. */
  readonly deaths: number;
  readonly isLiving: boolean;
}

async function readMarks(storeDirectory: string): Promise<Mark[]> {
  const names = await readdir(storeDirectory).catch(() => []);
  return Promise.all(
    names
      .filter((name) => name.startsWith(PREFIX))
      .map(async (name) => {
        const [state, host, pid] = name.slice(PREFIX.length).split("-");
        const isLiving = own.has(name) || (await isRenewed(join(storeDirectory, name), host, Number(pid)));
        return { name, isSound: state === SOUND, deaths: Number(state) || 0, isLiving };
      }),
  );
}

async function isRenewed(path: string, host: string | undefined, pid: number): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  if (found === undefined || Date.now() - found.mtimeMs > RENEWED_WITHIN_MS) return false;
  return host !== HOST || (pid !== process.pid && isRunning(pid));
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}
