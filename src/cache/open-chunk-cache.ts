import { statfs } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../errors.js";
import { isMissing } from "../is-missing.js";
import type { Log } from "../observe/log.js";
import {
  cacheStamp,
  discardStore,
  identityOfStore,
  markInUse,
  prepareStoreDirectory,
  storeDirectoryOf,
  sweepAbandonedStores,
} from "./cache-directory.js";
import type { ChunkCache } from "./chunk-cache.js";
import { createDiskChunkCache, type DiskChunkCache } from "./disk-chunk-cache.js";
import { findLmdbDamage } from "./find-lmdb-damage.js";
import { dataFileOf, type LmdbStore, openLmdbStore } from "./lmdb-store.js";
import { createNullCache } from "./null-chunk-cache.js";
import { probeLmdbStore } from "./probe-lmdb-store.js";

/** How a cache is opened. */
export interface OpenChunkCacheOptions {
  /** Made where it is absent; may be shared by processes, also of different versions. */
  readonly directory: string;
  /** Bound of what is kept; the file takes up to 1.3 times as much. */
  readonly maxBytes: number;
  readonly log: Log;
  /** Of this package: a cache of another one is never read. */
  readonly version: string;
  /** Chunks waiting to be written; beyond it they are dropped. Default 16 MiB. */
  readonly pendingMaxBytes?: number;
  /** How often notes on accesses are written and the directory is looked at. Default 1,000; 0: never. */
  readonly flushIntervalMs?: number;
  /** For how long a chunk is believed whose bytes were all looked at, if nobody writes into the file. Default 2,000. */
  readonly verifiedForMs?: number;
  /** How long another process may hold the write lock before this one does without the cache. Default 10,000. */
  readonly lockTimeoutMs?: number;
}

/** A cache with what tests and benchmarks need beside: waiting, and looking after it by hand. */
export interface OpenChunkCache extends ChunkCache {
  /** Waits until everything given to `put` is written, and accesses are noted. */
  settle(): Promise<void>;
  /** What the timer does: writes notes on accesses, and reopens the cache where its file is gone. */
  tend(): Promise<void>;
}

const PENDING_MAX_BYTES = 16 * 1024 ** 2;
const FLUSH_INTERVAL_MS = 1_000;
/**
 * A disk may give back other bytes than it took. A look at all bytes takes as long as sending them: 200 chunks of 590 KB that are
 * asked for 40 times a second each cost 1 % more than without, and any at most twice as much, as all do while chunks are being written.
 */
const VERIFIED_FOR_MS = 2_000;
const MARK_INTERVAL_MS = 60_000;
/** After so many failures within an hour the cache stays off. */
const REOPENINGS_MAX = 5;
const REOPENINGS_PERIOD_MS = 3_600_000;
const OPEN_ATTEMPTS_MAX = 5;
const OPEN_PAUSE_MS = 20;
/** Left free on the disk for others, and for lmdb's own pages: it prints to standard error when it finds none. */
const DISK_RESERVE_BYTES = 16 * 1024 ** 2;

/**
 * Opens the chunk cache in `directory`. A damaged one is discarded; where none can be opened, everything is a miss,
 * which one warning says. Takes about 0.1 s where there is a cache already (see `probe-lmdb-store`), and up to two
 * seconds more for a large one on a slow disk.
 */
export async function openChunkCache(options: OpenChunkCacheOptions): Promise<ChunkCache> {
  return (await openTendedChunkCache(options)) ?? createNullCache();
}

/** {@link openChunkCache} with more handles; undefined where none can be opened. */
export async function openTendedChunkCache(
  options: OpenChunkCacheOptions,
): Promise<OpenChunkCache | undefined> {
  const { directory, maxBytes, log } = options;
  const stamp = cacheStamp(options.version);
  const storeDirectory = storeDirectoryOf(directory, stamp);
  let identity: string | undefined;
  /** When it was opened again lately. */
  let reopenings: number[] = [];
  let reopening: Promise<void> | undefined;
  let tending: Promise<void> | undefined;
  let markedAt = Date.now();
  let isClosed = false;
  let isOff = false;

  async function openStore(): Promise<LmdbStore> {
    const opened = await openSoundStore(options, storeDirectory, stamp);
    identity = await identityOfStore(storeDirectory);
    return opened;
  }

  /** Another process that begins anew in the same instant may put away what this one has just made: once more, then. */
  async function openReplaced(): Promise<LmdbStore> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await openStore();
      } catch (error) {
        if (!isMissing(error) || attempt === OPEN_ATTEMPTS_MAX) throw error;
        await sleep(attempt * OPEN_PAUSE_MS * (1 + Math.random()));
      }
    }
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
      return;
    }
    log.warn(`chunk cache: ${reason}; it begins anew`);
    try {
      // Whoever has replaced the file already has discarded it, too.
      if (discard && identity !== undefined && (await identityOfStore(storeDirectory)) === identity) {
        await discardStore(directory, storeDirectory);
      }
      const opened = await openReplaced();
      if (isClosed) await opened.close();
      else cache.attach(opened);
    } catch (error) {
      isOff = true;
      log.warn(`chunk cache: it cannot be opened again and stays off: ${messageOf(error)}`);
    }
    // Only now: requests of the event turn that found it broken may have held views. Not awaited: it may hang.
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
    // The directory is gone: `tend` will see it, and until then the open file still takes writes.
    if (space === undefined) return true;
    const { bavail, bsize } = space;
    return bavail * bsize >= byteLength + Math.min(DISK_RESERVE_BYTES, maxBytes / 8);
  }

  const cache: DiskChunkCache = createDiskChunkCache({
    maxBytes,
    pendingMaxBytes: options.pendingMaxBytes ?? PENDING_MAX_BYTES,
    log,
    verifiedForMs: options.verifiedForMs ?? VERIFIED_FOR_MS,
    hasRoomFor,
    onBroken: (reason) => startReopening(reason, true),
  });

  try {
    cache.attach(await openStore());
  } catch (error) {
    log.warn(`chunk cache: ${directory} cannot be used, every chunk will be made anew: ${messageOf(error)}`);
    return undefined;
  }

  async function tend(): Promise<void> {
    if (isOff || reopening !== undefined) return reopening;
    if ((await identityOfStore(storeDirectory).catch(() => identity)) !== identity) {
      startReopening("its directory was removed or replaced", false);
      return reopening;
    }
    await cache.flush();
    if (Date.now() - markedAt < MARK_INTERVAL_MS) return;
    markedAt = Date.now();
    await markInUse(storeDirectory).catch(() => {});
    await sweepAbandonedStores(directory, storeDirectory);
  }

  function startTending(): void {
    tending ??= tend()
      .catch((error: unknown) => log.debug(`chunk cache: ${messageOf(error)}`))
      .finally(() => {
        tending = undefined;
      });
  }

  const intervalMs = options.flushIntervalMs ?? FLUSH_INTERVAL_MS;
  const timer = intervalMs > 0 ? setInterval(startTending, intervalMs).unref() : undefined;
  sweepAbandonedStores(directory, storeDirectory);

  return {
    get: cache.get,
    admits: cache.admits,
    put: cache.put,
    get stats() {
      return cache.stats;
    },
    async settle() {
      await reopening;
      await cache.settle();
    },
    tend,
    async close() {
      if (isClosed) return;
      isClosed = true;
      clearInterval(timer);
      await tending;
      await reopening;
      await cache.close();
    },
  };
}

/** Looks before it opens: a damaged file would end the process. @throws Error Where none can be opened. */
async function openSoundStore(
  options: OpenChunkCacheOptions,
  storeDirectory: string,
  stamp: string,
): Promise<LmdbStore> {
  const found = await identityOfStore(storeDirectory);
  if (found !== undefined) {
    const damage = await damageOf(options, storeDirectory, stamp);
    if (damage !== undefined && (await identityOfStore(storeDirectory)) === found) {
      options.log.warn(`chunk cache: ${storeDirectory} is damaged and begins anew: ${damage}`);
      await discardStore(options.directory, storeDirectory);
    }
  }
  await prepareStoreDirectory(storeDirectory);
  return openLmdbStore(storeDirectory, { maxBytes: options.maxBytes, stamp });
}

/** @throws Error Where it cannot be read, or its lock is held. */
async function damageOf(
  { maxBytes, lockTimeoutMs }: OpenChunkCacheOptions,
  storeDirectory: string,
  stamp: string,
): Promise<string | undefined> {
  const damage = await findLmdbDamage(dataFileOf(storeDirectory));
  if (damage !== undefined) return damage;
  const outcome = await probeLmdbStore(storeDirectory, { maxBytes, stamp }, lockTimeoutMs);
  if (outcome.status === "blocked") throw new Error("another process holds its lock and does not let go");
  return outcome.status === "damaged" ? outcome.reason : undefined;
}
