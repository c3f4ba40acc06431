import { createHash } from "node:crypto";
import { mkdir, readdir, rename, rm, stat, statfs, utimes, writeFile } from "node:fs/promises";
import { endianness, hostname } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isMissing, messageOf } from "../errors.js";
import type { Log } from "../observe/log.js";
import { type ChunkCache, createNullCache } from "./chunk-cache.js";
import { createDiskChunkCache, type DiskChunkCache } from "./disk-chunk-cache.js";
import { DATA_FILE, isUnusable, type LmdbStore, LOCK_FILE, openLmdbStore } from "./lmdb-store.js";
import { STORED_FORMAT } from "./stored-value.js";

/** Options of {@link openChunkCache}. */
export interface OpenChunkCacheOptions {
  /** Made if it is absent; several processes may share it, also of different versions. */
  readonly directory: string;
  /** Bound of the cached chunks, index included. The file takes at most 1.5 times as much. */
  readonly maxBytes: number;
  readonly log: Log;
  /** Version of this package: a cache of another version is never read. */
  readonly version: string;
  /** Bytes of chunks that may wait to be written; beyond that, chunks are dropped. Default 16 MiB. */
  readonly pendingMaxBytes?: number;
  /** Milliseconds between writes of scores and checks of the directory. Default 1,000; 0: never. */
  readonly flushIntervalMs?: number;
  /** Milliseconds after which an open store counts as sound, even if this process dies. Default 10,000. */
  readonly provenAfterMs?: number;
}

/** A cache that is maintained by a timer, or by tests and benchmarks themselves. */
export interface MaintainedChunkCache extends ChunkCache {
  /** Waits until the cache is reopened, if it is broken, and everything given to `put` is written. */
  settle(): Promise<void>;
  /** Does the work of the timer: writes scores, and reopens the cache if its file is gone. */
  maintain(): Promise<void>;
}

const PENDING_MAX_BYTES = 16 * 1024 ** 2;
const FLUSH_INTERVAL_MS = 1_000;
const MARK_INTERVAL_MS = 10_000;
const PROVEN_AFTER_MS = 10_000;
/** Failures within an hour after which the cache stays off. */
const REOPENINGS_MAX = 5;
const REOPENINGS_PERIOD_MS = 3_600_000;
const OPEN_ATTEMPTS_MAX = 5;
const OPEN_PAUSE_MS = 20;
/** Space on the disk for other programs, and for lmdb's own pages: it prints to standard error if there is none. */
const DISK_RESERVE_BYTES = 16 * 1024 ** 2;

/**
 * Opens the chunk cache in `directory`. A store is discarded if two processes in a row died with it, or LMDB refuses it. If no store can be
 * opened, every get is a miss, and one warning is logged. Blocks while another process holds the write lock.
 */
export async function openChunkCache(options: OpenChunkCacheOptions): Promise<ChunkCache> {
  return (await openMaintainedChunkCache(options)) ?? createNullCache();
}

/** Opens the chunk cache as {@link openChunkCache} does, with more handles; undefined if it cannot be opened. */
export async function openMaintainedChunkCache(
  options: OpenChunkCacheOptions,
): Promise<MaintainedChunkCache | undefined> {
  const { directory, maxBytes, log, provenAfterMs = PROVEN_AFTER_MS } = options;
  const stamp = cacheStamp(options.version);
  const storeDirectory = storeDirectoryOf(directory, stamp);
  let identity: string | undefined;
  /** Milliseconds since process start of the reopenings within the last hour. */
  let reopenings: number[] = [];
  let reopening: Promise<void> | undefined;
  let maintaining: Promise<void> | undefined;
  let mark: OpenMark | undefined;
  let openedAt = 0;
  let markedAt = Date.now();
  let isClosed = false;
  let isOff = false;

  /**
   * Opens the store, or a new one if processes died with it or LMDB refuses it. Tries again if another process discards it
   * meanwhile.
   */
  async function openStore(): Promise<LmdbStore> {
    for (let attempt = 1; ; attempt++) {
      const found = await identityOfStore(storeDirectory);
      try {
        if ((await deathsInRow(storeDirectory)) >= DEATHS_MAX) {
          log.warn("chunk cache: two processes in a row died soon after they had opened it; it starts over");
          await discardStore(directory, storeDirectory, found);
        }
        return await openMarked();
      } catch (error) {
        if (attempt === OPEN_ATTEMPTS_MAX || !(isMissing(error) || isUnusable(error))) throw error;
        if (isUnusable(error)) {
          log.warn(`chunk cache: ${messageOf(error)}; it starts over`);
          await discardStore(directory, storeDirectory, found);
        }
        await sleep(attempt * OPEN_PAUSE_MS * (1 + Math.random()));
      }
    }
  }

  async function openMarked(): Promise<LmdbStore> {
    await prepareStoreDirectory(storeDirectory);
    await mark?.remove();
    mark = await writeOpenMark(storeDirectory, await deathsInRow(storeDirectory));
    openedAt = performance.now();
    const opened = openLmdbStore(storeDirectory, { maxBytes, stamp });
    identity = await identityOfStore(storeDirectory);
    return opened;
  }

  async function reopen(reason: string, discard: boolean): Promise<void> {
    const detached = cache.detach();
    const now = performance.now();
    reopenings = [...reopenings.filter((at) => now - at < REOPENINGS_PERIOD_MS), now];
    if (reopenings.length > REOPENINGS_MAX) {
      isOff = true;
      log.warn(
        `chunk cache: ${reason}; it has been opened ${REOPENINGS_MAX} times within an hour and stays off now`,
      );
      detached?.close().catch(() => {});
      await mark?.remove();
      return;
    }
    log.warn(`chunk cache: ${reason}; it starts over`);
    try {
      if (discard) await discardStore(directory, storeDirectory, identity);
      const opened = await openStore();
      if (isClosed) await opened.close();
      else cache.attach(opened);
    } catch (error) {
      isOff = true;
      log.warn(`chunk cache: it cannot be opened again and stays off: ${messageOf(error)}`);
      await mark?.remove();
    }
    // Only now, because requests of the iteration that found it broken may have held views. Not awaited, because it may hang.
    detached?.close().catch(() => {});
  }

  function startReopening(reason: string, discard: boolean): void {
    if (isClosed) return;
    reopening ??= reopen(reason, discard).finally(() => {
      reopening = undefined;
    });
  }

  async function hasRoomFor(byteLength: number): Promise<boolean> {
    const space = await statfs(storeDirectory).catch(() => undefined);
    // The directory is gone. Until `maintain` finds out, the open file still takes writes.
    if (space === undefined) return true;
    const { bavail, bsize } = space;
    return bavail * bsize >= byteLength + Math.min(DISK_RESERVE_BYTES, maxBytes / 8);
  }

  const cache: DiskChunkCache = createDiskChunkCache({
    maxBytes,
    pendingMaxBytes: options.pendingMaxBytes ?? PENDING_MAX_BYTES,
    log,
    hasRoomFor,
    onBroken: (reason) => startReopening(reason, true),
  });

  try {
    cache.attach(await openStore());
  } catch (error) {
    log.warn(`chunk cache: ${directory} cannot be used, every chunk will be made again: ${messageOf(error)}`);
    await mark?.remove();
    return undefined;
  }

  async function maintain(): Promise<void> {
    if (isOff || reopening !== undefined) return reopening;
    if ((await identityOfStore(storeDirectory).catch(() => identity)) !== identity) {
      startReopening("its directory was removed or replaced", false);
      return reopening;
    }
    await cache.flush();
    const isSound = performance.now() - openedAt >= provenAfterMs;
    if (isSound === mark?.isSound && Date.now() - markedAt < MARK_INTERVAL_MS) return;
    markedAt = Date.now();
    await mark?.renew(isSound);
    await markInUse(storeDirectory).catch(() => {});
    await sweepAbandonedStores(directory, storeDirectory);
  }

  function startMaintaining(): void {
    maintaining ??= maintain()
      .catch((error: unknown) => log.debug(`chunk cache: ${messageOf(error)}`))
      .finally(() => {
        maintaining = undefined;
      });
  }

  const intervalMs = options.flushIntervalMs ?? FLUSH_INTERVAL_MS;
  const timer = intervalMs > 0 ? setInterval(startMaintaining, intervalMs).unref() : undefined;
  sweepAbandonedStores(directory, storeDirectory);

  return {
    get: cache.get,
    admits: cache.admits,
    put: cache.put,
    byteLengthOf: cache.byteLengthOf,
    putAndWait: cache.putAndWait,
    get stats() {
      return cache.stats;
    },
    async settle() {
      await reopening;
      await cache.settle();
    },
    maintain,
    async close() {
      if (isClosed) return;
      isClosed = true;
      clearInterval(timer);
      await maintaining;
      await reopening;
      await cache.close();
      // The store has worked until an orderly end: deaths before do not count.
      if (!isOff) await mark?.renew(true);
      await mark?.remove();
    },
  };
}

/**
 * Prefix of all names in the cache directory; other names are not touched. Each version of the package has its own
 * sub-directory. So versions that run side by side (a rolling update) never read or delete each other's chunks.
 */
const STORE_PREFIX = "zpublish-chunks-";
const ASIDE_PREFIX = `${STORE_PREFIX}aside-`;
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
  return join(directory, STORE_PREFIX + createHash("sha256").update(stamp).digest("hex").slice(0, 16));
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
      if (!name.startsWith(STORE_PREFIX) || path === storeDirectory) continue;
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

const MARK_PREFIX = "open-";
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
  let name = `${MARK_PREFIX}${deaths}-${rest}`;
  let isMarkedSound = false;
  own.add(name);
  await writeFile(join(storeDirectory, name), "");

  async function becomeSound(): Promise<void> {
    const sound = `${MARK_PREFIX}${SOUND}-${rest}`;
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
      .filter((name) => name.startsWith(MARK_PREFIX))
      .map(async (name) => {
        const [state, host, pid] = name.slice(MARK_PREFIX.length).split("-");
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
