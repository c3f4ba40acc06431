import { type BoundedMap, createBoundedMap } from "../collections/bounded-map.js";
import { messageOf } from "../errors.js";
import type { Log } from "../observe/log.js";
import type { CacheKey, ChunkCache, ChunkCacheStats, ReleasableChunk } from "./chunk-cache.js";
import type { LmdbStore } from "./lmdb-store.js";
import { type CachePolicy, cacheLimitsOf, createCachePolicy } from "./policy.js";
import { createStoreWriter, type StoreWriter, withDeadline } from "./store-writer.js";
import { isIntact, payloadOf, putNumberOf, STORED_HEADER_BYTES } from "./stored-value.js";

/** Bounds of a cache, and its access to the disk. */
interface DiskChunkCacheOptions {
  readonly maxBytes: number;
  /** Bound of the bytes that wait to be written. */
  readonly pendingMaxBytes: number;
  readonly log: Log;
  /** Tells if the disk takes so many more bytes; called before each batch. */
  hasRoomFor(byteLength: number): Promise<boolean>;
  /** Called when the store cannot be used any more; `attach` may follow. */
  onBroken(reason: string): void;
}

/** A chunk cache over a store that may come and go. */
interface DiskChunkCache extends ChunkCache {
  /** Gives the cache a store. It has none at first, and every get is a miss. */
  attach(store: LmdbStore): void;
  /** Takes the store away: every get is a miss until the next `attach`. */
  detach(): LmdbStore | undefined;
  /** Writes the scores of entries that were read; called about once a second. */
  flush(): Promise<void>;
  /** Waits until everything given to `put` is written or dropped. */
  settle(): Promise<void>;
}

/** A store, and what works on it until `detach`. */
interface AttachedStore {
  readonly store: LmdbStore;
  readonly policy: CachePolicy;
  readonly writer: StoreWriter;
}

const MAX_VERIFIED = 131_072;
const CLOSE_DEADLINE_MS = 5_000;
/** Milliseconds until a failure of writing is logged again: a disk that is nearly full fails and works by turns. */
const REPEAT_WARNING_MS = 600_000;

/** Creates a cache without a store. Opening, recovery and timers are in `open-cache`. */
export function createDiskChunkCache(options: DiskChunkCacheOptions): DiskChunkCache {
  const { maxBytes, log } = options;
  const limits = cacheLimitsOf(maxBytes);
  /** Put numbers by key of the values whose checksums were verified since the store was attached. */
  const verified = createBoundedMap<number>({ maxEntries: MAX_VERIFIED });
  const counts = { hits: 0, misses: 0, puts: 0, drops: 0, evictions: 0, errors: 0 };
  const writing = createWriteWarnings(log);
  let attached: AttachedStore | undefined;

  function fail(reason: string): void {
    counts.errors++;
    if (attached !== undefined) options.onBroken(reason);
  }

  /** Runs something that reads the store. @returns undefined if that fails. */
  function attempt<T>(read: () => T): T | undefined {
    try {
      return read();
    } catch (error) {
      fail(`reading failed: ${messageOf(error)}`);
      return undefined;
    }
  }

  return {
    get(key, isAgain = false) {
      const from = attached;
      const found = from && attempt(() => findChunk(from, key, verified));
      if (isAgain) return found;
      if (found === undefined) {
        counts.misses++;
        return undefined;
      }
      counts.hits++;
      attached?.policy.recordHit(key);
      return found;
    },

    admits(key, byteLength, cost) {
      if (attached === undefined || byteLength + STORED_HEADER_BYTES > limits.valueBytes) return false;
      const { policy, writer } = attached;
      return attempt(() => policy.admits(key, cost, writer.isFull)) ?? false;
    },

    put(key, chunk) {
      if (attached !== undefined) attached.writer.put(key, chunk);
      else release(chunk);
    },

    byteLengthOf({ id, bytes }) {
      const waiting = attached?.writer.pending.get(id)?.stored.length;
      const stored = waiting ?? attempt(() => attached?.store.entry(bytes)?.byteLength);
      return stored && stored - STORED_HEADER_BYTES;
    },

    async putAndWait(key, chunk) {
      const to = attached;
      const { length } = chunk instanceof Uint8Array ? chunk : chunk.bytes;
      while (to?.writer.isCrowded(length)) await to.writer.settle();
      // Another store may have taken its place meanwhile.
      if (to === undefined || to !== attached) {
        release(chunk);
        return false;
      }
      to.writer.put(key, chunk);
      while (to.writer.pending.has(key.id)) await to.writer.settle();
      return to === attached && to.store.has(key.bytes);
    },

    get stats(): ChunkCacheStats {
      const { usedBytes = 0, entries = 0 } = attached?.writer.usage ?? {};
      return {
        ...counts,
        byteLength: usedBytes,
        maxBytes,
        entries,
        isOff: attached === undefined,
        isWriteFailing: writing.isFailing,
      };
    },

    attach(store) {
      verified.clear();
      const policy = createCachePolicy(store, limits.sketchWidth);
      const { pendingMaxBytes, hasRoomFor, onBroken } = options;
      const writer = createStoreWriter(store, {
        ...{ policy, limits, pendingMaxBytes, counts, hasRoomFor, onBroken },
        onFailedWrite: writing.fail,
        onWritten: writing.succeed,
      });
      attached = { store, policy, writer };
      writing.isFailing = false;
    },

    detach() {
      const detached = attached;
      attached = undefined;
      detached?.writer.stop();
      verified.clear();
      return detached?.store;
    },

    async flush() {
      await attached?.writer.flush();
    },

    async settle() {
      await attached?.writer.settle();
    },

    async close() {
      await closeInTime(this, log);
    },
  };
}

/**
 * Finds a chunk.
 * @param verified Put numbers by key: the checksum is verified at the first read of each put.
 * @throws Error if a stored chunk is damaged. The entry is not removed alone: lmdb would free as many pages as the damaged page says.
 */
function findChunk(
  { store, writer }: AttachedStore,
  key: CacheKey,
  verified: BoundedMap<number>,
): Uint8Array | undefined {
  const { bytes, id } = key;
  const waiting = writer.pending.get(id);
  if (waiting !== undefined) return payloadOf(waiting.stored);
  const stored = store.read(key);
  if (stored === undefined) return undefined;
  const { known } = key;
  const isInPlace = known?.view === stored;
  if (isInPlace && known.payload !== undefined) return known.payload;
  const putNumber = putNumberOf(stored);
  if (verified.get(id) !== putNumber) {
    if (!isIntact(bytes, stored)) throw new Error("a stored chunk is not what was written");
    verified.set(id, putNumber);
  }
  const payload = payloadOf(stored);
  if (isInPlace) known.payload = payload;
  return payload;
}

/** Writes what waits, and closes the store. Never throws. */
async function closeInTime(cache: DiskChunkCache, log: Log): Promise<void> {
  try {
    const written = cache.settle().then(() => cache.flush());
    await withDeadline(written, CLOSE_DEADLINE_MS);
    await withDeadline(cache.detach()?.close() ?? Promise.resolve(), CLOSE_DEADLINE_MS);
  } catch (error) {
    cache.detach();
    log.warn(`chunk cache: it could not be closed properly: ${messageOf(error)}`);
  }
}

/** Creates the log of writes that fail: a line when they begin to fail, and one when writing works again. */
function createWriteWarnings(log: Log) {
  let hasWarned = false;
  let warnedAtMs = Number.NEGATIVE_INFINITY;
  const writing = {
    /** Whether the last write failed. */
    isFailing: false,
    fail(problem: string): void {
      writing.isFailing = true;
      if (hasWarned || Date.now() - warnedAtMs < REPEAT_WARNING_MS) return;
      hasWarned = true;
      warnedAtMs = Date.now();
      log.warn(`chunk cache: writing failed: ${problem}`);
    },
    succeed(): void {
      writing.isFailing = false;
      if (hasWarned) log.warn("chunk cache: writing works again");
      hasWarned = false;
    },
  };
  return writing;
}

/** Gives lent memory back. */
function release(chunk: Uint8Array | ReleasableChunk): void {
  if (!(chunk instanceof Uint8Array)) chunk.release();
}
