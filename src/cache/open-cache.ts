import { createHash } from "node:crypto";
import { mkdir, readdir, rename, rm, stat, statfs, utimes, writeFile } from "node:fs/promises";
import { endianness, hostname } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isMissing, messageOf } from "../errors.js";
import { joined } from "../event-loop/joined.js";
import type { Log } from "../observe/log.js";
import { type ChunkCache, createNullCache } from "./chunk-cache.js";
import { createDiskChunkCache } from "./disk-chunk-cache.js";
import { DATA_FILE, isUnusable, type LmdbStore, LOCK_FILE, openLmdbStore } from "./lmdb-store.js";
import { STORED_FORMAT } from "./stored-value.js";

/** Options of {@link openChunkCache}. */
interface OpenChunkCacheOptions {
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
/** Milliseconds between marks that this process uses the store. */
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
  const { directory, maxBytes, log, pendingMaxBytes = PENDING_MAX_BYTES } = options;
  const folder = createStoreFolder(options);
  /** Milliseconds since process start of the reopenings within the last hour. */
  let reopenings: number[] = [];
  let markedAt = Date.now();
  let isClosed = false;
  let isOff = false;

  async function turnOff(problem: string): Promise<void> {
    isOff = true;
    log.warn(`chunk cache: ${problem}`);
    await folder.removeMark();
  }

  async function openAgain(reason: string, discard: boolean): Promise<void> {
    const now = performance.now();
    reopenings = [...reopenings.filter((at) => now - at < REOPENINGS_PERIOD_MS), now];
    if (reopenings.length > REOPENINGS_MAX)
      return turnOff(
        `${reason}; it has been opened ${REOPENINGS_MAX} times within an hour and stays off now`,
      );
    log.warn(`chunk cache: ${reason}; it starts over`);
    try {
      if (discard) await folder.discard();
      const opened = await folder.open();
      if (isClosed) await opened.close();
      else cache.attach(opened);
    } catch (error) {
      await turnOff(`it cannot be opened again and stays off: ${messageOf(error)}`);
    }
  }

  const reopen = joined(async (reason: string, discard: boolean) => {
    const detached = cache.detach();
    await openAgain(reason, discard);
    // Only now, because requests of the iteration that found it broken may have held views. Not awaited, because it may hang.
    detached?.close().catch(() => {});
  });

  const cache = createDiskChunkCache({
    ...{ maxBytes, pendingMaxBytes, log },
    hasRoomFor: folder.hasRoomFor,
    onBroken(reason) {
      if (!isClosed) void reopen(reason, true);
    },
  });

  try {
    cache.attach(await folder.open());
  } catch (error) {
    log.warn(`chunk cache: ${directory} cannot be used, every chunk will be made again: ${messageOf(error)}`);
    await folder.removeMark();
    return undefined;
  }

  async function maintain(): Promise<void> {
    if (isOff || reopen.running !== undefined) return reopen.running;
    if (await folder.isReplaced()) {
      if (!isClosed) await reopen("its directory was removed or replaced", false);
      return;
    }
    await cache.flush();
    if (!folder.isMarkDue() && Date.now() - markedAt < MARK_INTERVAL_MS) return;
    markedAt = Date.now();
    await folder.mark();
  }
  const maintainOnce = joined(() =>
    maintain().catch((error: unknown) => log.debug(`chunk cache: ${messageOf(error)}`)),
  );
  const intervalMs = options.flushIntervalMs ?? FLUSH_INTERVAL_MS;
  const timer = intervalMs > 0 ? setInterval(maintainOnce, intervalMs).unref() : undefined;

  const { get, admits, put, byteLengthOf, putAndWait } = cache;
  return {
    ...{ get, admits, put, byteLengthOf, putAndWait, maintain },
    get stats() {
      return cache.stats;
    },
    async settle() {
      await reopen.running;
      await cache.settle();
    },
    async close() {
      if (isClosed) return;
      isClosed = true;
      clearInterval(timer);
      await maintainOnce.running;
      await reopen.running;
      await cache.close();
      // The store has worked until an orderly end: deaths before do not count.
      if (!isOff) await folder.mark(true);
      await folder.removeMark();
    },
  };
}

/**
 * The directory of the store of one stamp, with the files beside it. Versions of the package that run side by side (a rolling update)
 * never read or delete each other's chunks.
 */
function createStoreFolder({ directory, maxBytes, log, version, provenAfterMs }: OpenChunkCacheOptions) {
  const stamp = cacheStamp(version);
  const path = join(directory, STORE_PREFIX + createHash("sha256").update(stamp).digest("hex").slice(0, 16));
  let identity: string | undefined;
  let mark: string | undefined;
  let isMarkedSound = false;
  let openedAt = 0;
  const isProven = () => performance.now() - openedAt >= (provenAfterMs ?? PROVEN_AFTER_MS);

  async function openMarked(): Promise<LmdbStore> {
    await prepareStore(path);
    await removeMark();
    mark = await writeMark(path, await deathsInRow(path));
    isMarkedSound = false;
    openedAt = performance.now();
    const opened = openLmdbStore(path, { maxBytes, stamp, log });
    identity = await identityOfStore(path);
    return opened;
  }

  async function startOver(reason: string, found: string | undefined): Promise<void> {
    log.warn(`chunk cache: ${reason}; it starts over`);
    await discardStore(directory, path, found);
  }

  async function removeMark(): Promise<void> {
    if (mark === undefined) return;
    await rm(join(path, mark), { force: true }).catch(() => {});
    own.delete(mark);
    mark = undefined;
  }

  return {
    /** Opens the store, or a new one if processes died with it or LMDB refuses it. @throws Error if neither can be opened. */
    async open(): Promise<LmdbStore> {
      void sweepAbandonedStores(directory, path);
      for (let attempt = 1; ; attempt++) {
        const found = await identityOfStore(path);
        try {
          if ((await deathsInRow(path)) >= DEATHS_MAX)
            await startOver("two processes in a row died soon after they had opened it", found);
          return await openMarked();
        } catch (error) {
          // Another process may discard it meanwhile.
          if (attempt === OPEN_ATTEMPTS_MAX || !(isMissing(error) || isUnusable(error))) throw error;
          if (isUnusable(error)) await startOver(messageOf(error), found);
          await sleep(attempt * OPEN_PAUSE_MS * (1 + Math.random()));
        }
      }
    },
    /** Moves the store aside that was opened, unless another process has put another one in its place. */
    discard: () => discardStore(directory, path, identity),
    isReplaced: async () => (await identityOfStore(path).catch(() => identity)) !== identity,
    async hasRoomFor(byteLength: number): Promise<boolean> {
      const space = await statfs(path).catch(() => undefined);
      // The directory is gone. Until `maintain` finds out, the open file still takes writes.
      if (space === undefined) return true;
      const { bavail, bsize } = space;
      return bavail * bsize >= byteLength + Math.min(DISK_RESERVE_BYTES, maxBytes / 8);
    },
    /** True if the store has worked for long enough, and other processes do not know it yet. */
    isMarkDue: () => !isMarkedSound && isProven(),
    /** Tells other processes that this one lives, and if the store has worked for a while. Deletes what none uses. Never throws. */
    async mark(isSound = isProven()): Promise<void> {
      if (mark === undefined) return;
      isMarkedSound = isSound;
      mark = await renewMark(path, mark, isSound);
      await markInUse(path).catch(() => {});
      await sweepAbandonedStores(directory, path);
    },
    removeMark,
  };
}

/** Prefix of all names in the cache directory; other names are not touched. */
const STORE_PREFIX = "zpublish-chunks-";
const ASIDE_PREFIX = `${STORE_PREFIX}aside-`;
/** File that every process touches which uses the store, more often than {@link ABANDONED_AFTER_MS}. */
const IN_USE_FILE = "in-use";
const ABANDONED_AFTER_MS = 5 * 60_000;
/** Size of the lock file: more than lmdb needs for the readers that `lmdb-store` allows. */
const LOCK_FILE_BYTES = 128 * 1024;

/** Makes the stamp of a cache. Processes with equal stamps read each other's values. */
export function cacheStamp(version: string): string {
  return JSON.stringify({ zpublish: version, format: STORED_FORMAT, byteOrder: endianness() });
}

/** Makes the directory of a store, unless it exists. @throws Error if nothing can be written there. */
async function prepareStore(path: string): Promise<void> {
  await makeDirectories(path);
  // On a full disk lmdb would extend its lock file, map it, and die of SIGBUS. Zeros written here fail like any write.
  await writeUnlessPresent(join(path, LOCK_FILE), Buffer.alloc(LOCK_FILE_BYTES));
  await markInUse(path);
}

/** Marks a store as in use, for other versions. */
async function markInUse(path: string): Promise<void> {
  const now = new Date();
  await utimes(join(path, IN_USE_FILE), now, now).catch(() => writeFile(join(path, IN_USE_FILE), ""));
}

/** Returns the identity of a store's file, which differs if it was replaced; undefined if there is none. */
async function identityOfStore(path: string): Promise<string | undefined> {
  try {
    const { dev, ino } = await stat(join(path, DATA_FILE), { bigint: true });
    return `${dev}:${ino}`;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** Moves a store aside if it has this identity, and deletes it in the background. Processes that have it open lose nothing. */
async function discardStore(directory: string, path: string, identity: string | undefined): Promise<void> {
  if ((await identityOfStore(path)) !== identity) return;
  const aside = join(directory, `${ASIDE_PREFIX}${process.pid}-${Date.now().toString(36)}`);
  try {
    await rename(path, aside);
  } catch (error) {
    if (isMissing(error)) return; // Another process was quicker.
    throw error;
  }
  rm(aside, { recursive: true, force: true }).catch(() => {}); // What remains is deleted at the next opening.
}

/** Deletes stores of other versions that no process uses, and remains of discarded ones. Never throws. */
async function sweepAbandonedStores(directory: string, used: string): Promise<void> {
  try {
    for (const name of await readdir(directory)) {
      const path = join(directory, name);
      if (!name.startsWith(STORE_PREFIX) || path === used) continue;
      if (name.startsWith(ASIDE_PREFIX) || (await isAbandoned(path)))
        await rm(path, { recursive: true, force: true });
    }
  } catch {
    // The space stays occupied until the next call.
  }
}

async function isAbandoned(path: string): Promise<boolean> {
  const used = await stat(join(path, IN_USE_FILE)).catch(() => stat(path));
  return Date.now() - used.mtimeMs > ABANDONED_AFTER_MS;
}

/** Makes a directory and its parents. `recursive: true` never returns if the system answers ENOENT to everything, as below /proc. */
async function makeDirectories(path: string): Promise<void> {
  const make = () =>
    mkdir(path).catch(async (error: NodeJS.ErrnoException) => {
      // It is there, or another process was quicker.
      if (error.code !== "EEXIST" || !(await stat(path)).isDirectory()) throw error;
    });
  await make().catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT" || dirname(path) === path) throw error;
    await makeDirectories(dirname(path));
    await make();
  });
}

async function writeUnlessPresent(path: string, bytes: Buffer): Promise<void> {
  try {
    await writeFile(path, bytes, { flag: "wx" });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return;
    await rm(path, { force: true }).catch(() => {});
    throw error;
  }
}

/**
 * Prefix of marks: empty files beside a store, `open-STATE-HOST-PID-TIME-COUNT`, one for each process that has it open. They are written
 * before LMDB opens the store, since LMDB ends the process on a damaged page.
 */
const MARK_PREFIX = "open-";
/** State once the store has worked for a while, so that the end of the process says nothing about it. Before: the deaths in a row. */
const SOUND = "sound";
/** Processes that die in a row, soon after they have opened a store, until the store counts as damaged. */
const DEATHS_MAX = 2;
/** Age of a mark that was not renewed, from which its process counts as dead. */
const RENEWED_WITHIN_MS = 60_000;
/** Containers that share a directory do not share process ids. */
const HOST = createHash("sha256").update(hostname()).digest("hex").slice(0, 8);

/** Marks of this process, which may open several caches. */
const own = new Set<string>();
let written = 0;

/** Writes this process's mark. @returns Its name. @throws Error if nothing can be written there. */
async function writeMark(path: string, deaths: number): Promise<string> {
  const name = `${MARK_PREFIX}${deaths}-${HOST}-${process.pid}-${Date.now()}-${++written}`;
  own.add(name);
  await writeFile(join(path, name), "");
  return name;
}

/** Renews a mark. If the store is sound, those of dead processes are deleted. @returns Its name from then on. */
async function renewMark(path: string, name: string, isSound: boolean): Promise<string> {
  const renewed = isSound ? name.replace(/-\w+/, `-${SOUND}`) : name;
  try {
    own.add(renewed);
    // Written again if another process deleted it while this one was stopped.
    await rename(join(path, name), join(path, renewed)).catch(() => writeFile(join(path, renewed), ""));
    if (renewed !== name) own.delete(name);
    const now = new Date();
    await utimes(join(path, renewed), now, now);
    for (const mark of isSound ? await readMarks(path) : [])
      if (!mark.isLiving) await rm(join(path, mark.name), { force: true });
  } catch {
    // The directory is gone, or takes no writes now.
  }
  return renewed;
}

/**
 * Counts the processes that died in a row soon after they had opened the store. Processes that had it open at once count as one. While a
 * living process has the store open, no further death counts.
 */
async function deathsInRow(path: string): Promise<number> {
  const marks = await readMarks(path);
  const most = (of: typeof marks) => Math.max(...of.map(({ deaths }) => deaths));
  const living = marks.filter(({ isLiving }) => isLiving);
  if (living.length > 0) return most(living);
  const dead = marks.filter(({ isSound }) => !isSound);
  return dead.length === 0 ? 0 : most(dead) + 1;
}

async function readMarks(path: string) {
  const names = await readdir(path).catch(() => []);
  const marks = names.filter((name) => name.startsWith(MARK_PREFIX));
  return Promise.all(
    marks.map(async (name) => {
      const [state, host, pid] = name.slice(MARK_PREFIX.length).split("-");
      const isLiving = own.has(name) || (await isRenewed(join(path, name), host, Number(pid)));
      return { name, isSound: state === SOUND, deaths: Number(state) || 0, isLiving };
    }),
  );
}

async function isRenewed(mark: string, host: string | undefined, pid: number): Promise<boolean> {
  const found = await stat(mark).catch(() => undefined);
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
