import { statfs } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { isMissing, messageOf } from "../errors.js";
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
import { type ChunkCache, createNullCache } from "./chunk-cache.js";
import { DEATHS_MAX, deathsInRow, type OpenMark, writeOpenMark } from "./crash-marker.js";
import { createDiskChunkCache, type DiskChunkCache } from "./disk-chunk-cache.js";
import { isUnusable, type LmdbStore, openLmdbStore } from "./lmdb-store.js";

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
