import { createRecentMap } from "../collections/recent-map.js";
import { messageOf } from "../errors.js";
import type { Log } from "../observe/log.js";
import { type CacheKey, idOf } from "./cache-key.js";
import { cacheLimitsOf } from "./cache-limits.js";
import { type CachePolicy, createCachePolicy } from "./cache-policy.js";
import type { ChunkCache, ChunkCacheStats } from "./chunk-cache.js";
import { DeadlineError, withDeadline } from "./deadline.js";
import { isUnusable, type LmdbStore, type StorePut, type StoreUsage } from "./lmdb-store.js";
import {
  isIntact,
  packInPlace,
  packStoredValue,
  payloadOf,
  putNumberOf,
  STORED_HEADER_BYTES,
} from "./stored-value.js";

/** What this stage needs to know of the place it stores in. */
export interface DiskChunkCacheOptions {
  readonly maxBytes: number;
  readonly pendingMaxBytes: number;
  readonly log: Log;
  /** Whether so many more bytes can be written: asked before each batch. */
  hasRoomFor(byteLength: number): Promise<boolean>;
  /** Called once when the store cannot be used any more; `attach` may follow. */
  onBroken(reason: string): void;
}

/** A chunk cache over a store that may come and go. */
export interface DiskChunkCache extends ChunkCache {
  attach(store: LmdbStore): void;
  /** Takes the store away: every get is a miss until the next `attach`. */
  detach(): LmdbStore | undefined;
  /** Writes what is noted about accesses; called once a second or so. */
  flush(): Promise<void>;
  /** Waits until everything given to `put` is written or dropped. */
  settle(): Promise<void>;
}

/** A put that is not written yet. */
interface PendingPut extends StorePut {
  readonly release: (() => void) | undefined;
}

/** Puts that may wait whatever their size. */
const PENDING_MIN_PUTS = 3;
const BATCH_MAX_PUTS = 512;
/** By which the index may grow with one batch. */
const INDEX_PAGES_PER_BATCH = 8;
const VICTIMS_PER_BATCH_MAX = 4_096;
const VERIFIED_MAX = 131_072;
/** With fewer entries, what they take on average says little. */
const ENTRIES_TO_GO_BY = 64;
const WRITE_DEADLINE_MS = 30_000;
const CLOSE_DEADLINE_MS = 5_000;
const BACK_OFF_MS = 10_000;
const SAY_AGAIN_MS = 3_600_000;
const NOTHING_USED: StoreUsage = Object.freeze({ usedBytes: 0, fileBytes: 0, entries: 0, pageSize: 4_096 });

/** The cache itself; opening, recovery and timers are `open-chunk-cache`'s. Begins without a store. */
export function createDiskChunkCache(options: DiskChunkCacheOptions): DiskChunkCache {
  const { maxBytes, log } = options;
  const limits = cacheLimitsOf(maxBytes);
  /** The puts, by key, whose checksums were verified since the store was attached. */
  const verified = createRecentMap<number>(VERIFIED_MAX);
  /** Given to `put` and not yet visible in the store. */
  const pending = new Map<string, PendingPut>();
  let pendingBytes = 0;
  let store: LmdbStore | undefined;
  let policy: CachePolicy | undefined;
  let usage = NOTHING_USED;
  let writing: Promise<void> | undefined;
  let noWritesUntil = 0;
  let said = { text: "", at: Number.NEGATIVE_INFINITY };
  let isClosed = false;
  const counts = { hits: 0, misses: 0, puts: 0, drops: 0, evictions: 0, errors: 0 };

  function fail(reason: string): void {
    counts.errors++;
    breakDown(reason);
  }

  /** What waits is given up, and nothing written for a while: the disk may have room again later. */
  function failWriting(error: unknown): void {
    counts.errors++;
    drop();
    noWritesUntil = Date.now() + BACK_OFF_MS;
    if (error instanceof DeadlineError || isUnusable(error)) breakDown(messageOf(error));
    else sayOnce(`chunk cache: writing failed: ${messageOf(error)}`);
  }

  /** A disk that is nearly full fails and works by turns: of the same trouble one line an hour is enough. */
  function sayOnce(text: string): void {
    const now = performance.now();
    if (text === said.text && now - said.at < SAY_AGAIN_MS) return;
    said = { text, at: now };
    log.warn(text);
  }

  function breakDown(reason: string): void {
    if (store !== undefined) options.onBroken(reason);
  }

  /** One lookup; the checksum is verified at the first read of each put. */
  function find(key: CacheKey): Uint8Array | undefined {
    const { bytes, id } = key;
    const waiting = pending.get(id);
    if (waiting !== undefined) return payloadOf(waiting.stored);
    const stored = store?.read(key);
    if (stored === undefined) return undefined;
    const putNumber = putNumberOf(stored);
    if (verified.get(id) !== putNumber) {
      if (!isIntact(bytes, stored)) {
        // Not removed one by one: removing believes the damaged page's own word on how many pages to free.
        fail("a stored chunk is not what was written");
        return undefined;
      }
      verified.set(id, putNumber);
    }
    return payloadOf(stored);
  }

  /** Lent memory is not given back: a write that hangs may still read it. */
  function drop(): void {
    counts.drops += pending.size;
    pending.clear();
    pendingBytes = 0;
  }

  /** Of one that is not written, or written to the end. */
  function forgetPending(put: PendingPut): void {
    if (!pending.delete(idOf(put.key))) return;
    pendingBytes -= put.stored.length;
    put.release?.();
  }

  /** The front of the queue, as much as one transaction takes. */
  function nextBatch(current: LmdbStore): { puts: PendingPut[]; byteLength: number } {
    const puts: PendingPut[] = [];
    let byteLength = 0;
    for (const put of pending.values()) {
      if (puts.length === BATCH_MAX_PUTS || byteLength >= limits.batchBytes) break;
      if (current.has(put.key)) {
        forgetPending(put); // Another process was quicker.
        continue;
      }
      puts.push(put);
      byteLength += onDisk(put.stored.length);
    }
    return { puts, byteLength };
  }

  /**
   * How many entries there will be: by what those that are there take, and at first by what chunks usually do. The clock of a
   * cache that fills would otherwise run so fast that a chunk asked for twice counts as asked for once.
   */
  function entriesWhenFull(): number {
    const { entries, usedBytes } = usage;
    if (entries < ENTRIES_TO_GO_BY) return limits.sketchWidth / 2;
    return Math.max(entries, Math.min(entries * (maxBytes / usedBytes), limits.sketchWidth));
  }

  function onDisk(byteLength: number): number {
    const { pageSize } = usage;
    // Small values share pages, about two thirds full.
    return byteLength < pageSize / 4 ? byteLength * 1.5 : Math.ceil((byteLength + 24) / pageSize) * pageSize;
  }

  /** Entries that must go so that `incoming` more bytes fit. */
  function chooseVictims(incoming: number): Uint8Array[] {
    const isFileTight = usage.fileBytes + incoming > limits.fileBytesTight;
    const limit = isFileTight ? limits.usedBytesWhenTight : maxBytes;
    const victims: Uint8Array[] = [];
    let excess = usage.usedBytes + incoming + INDEX_PAGES_PER_BATCH * usage.pageSize - limit;
    while (excess > 0 && victims.length < VICTIMS_PER_BATCH_MAX) {
      const victim = policy?.takeVictim();
      if (victim === undefined) break;
      victims.push(victim.key);
      excess -= onDisk(victim.byteLength);
    }
    return victims;
  }

  async function writePending(): Promise<void> {
    while (store !== undefined && pending.size > 0) {
      const current = store;
      const { puts, byteLength } = nextBatch(current);
      if (puts.length === 0) continue;
      if (!(await options.hasRoomFor(byteLength))) throw new Error("no space left on device");
      if (store !== current) continue;
      usage = current.usage();
      if (usage.fileBytes > limits.fileBytesMax) {
        breakDown(`its file has grown to ${usage.fileBytes} bytes, with a bound of ${maxBytes}`);
        return;
      }
      if (usage.fileBytes > limits.fileBytesTight) current.freeStaleReaders();
      const removes = chooseVictims(byteLength);
      try {
        await writeBatch(current, puts, removes);
      } finally {
        policy?.forgetTaken();
      }
    }
  }

  async function writeBatch(current: LmdbStore, puts: PendingPut[], removes: Uint8Array[]): Promise<void> {
    await withDeadline(current.write({ puts, removes, scores: [], clock: undefined }), WRITE_DEADLINE_MS);
    if (store !== current) return;
    counts.puts += puts.length;
    counts.evictions += removes.length;
    for (const put of puts) forgetPending(put);
    if (usage.fileBytes > limits.fileBytesFlushed) await withDeadline(current.flushed(), WRITE_DEADLINE_MS);
    if (store === current) usage = current.usage();
  }

  function mayPut({ id }: CacheKey, byteLength: number): boolean {
    if (isClosed || byteLength + STORED_HEADER_BYTES > limits.valueBytes || pending.has(id)) return false;
    // Large ones may be a few: one that is larger than the bound would never be kept otherwise.
    const hasRoom = pending.size < PENDING_MIN_PUTS || pendingBytes + byteLength <= options.pendingMaxBytes;
    if (Date.now() >= noWritesUntil && hasRoom) return true;
    counts.drops++;
    return false;
  }

  function startWriting(): void {
    if (writing !== undefined) return;
    const current = store;
    writing = Promise.resolve()
      .then(writePending)
      .catch((error: unknown) => {
        // Taken away meanwhile: its failure says nothing of the one that is there now.
        if (store === current) failWriting(error);
      })
      .finally(() => {
        writing = undefined;
        if (pending.size > 0 && store !== undefined) startWriting();
      });
  }

  return {
    get(key, isAgain = false) {
      let found: Uint8Array | undefined;
      try {
        found = find(key);
      } catch (error) {
        fail(`reading failed: ${messageOf(error)}`);
      }
      if (isAgain) return found;
      if (found === undefined) {
        counts.misses++;
        return undefined;
      }
      counts.hits++;
      policy?.noteHit(key);
      return found;
    },

    admits(key, byteLength, cost) {
      if (policy === undefined || byteLength + STORED_HEADER_BYTES > limits.valueBytes) return false;
      try {
        return policy.admits(key, cost, usage.usedBytes + pendingBytes > limits.fullBytes);
      } catch (error) {
        fail(`reading failed: ${messageOf(error)}`);
        return false;
      }
    },

    put(key, chunk) {
      const lent = chunk instanceof Uint8Array ? undefined : chunk;
      const bytes = chunk instanceof Uint8Array ? chunk : chunk.bytes;
      if (policy === undefined || !mayPut(key, bytes.length)) {
        lent?.release();
        return;
      }
      const stored =
        lent === undefined ? packStoredValue(key.bytes, bytes) : packInPlace(key.bytes, bytes, lent.checksum);
      const release = lent && (() => lent.release());
      pending.set(key.id, { key: key.bytes, stored, score: policy.scoreOf(key), release });
      pendingBytes += stored.length;
      startWriting();
    },

    get stats(): ChunkCacheStats {
      const { usedBytes, entries } = usage;
      return { ...counts, byteLength: usedBytes, maxBytes, entries, isOff: store === undefined };
    },

    attach(opened) {
      store = opened;
      noWritesUntil = 0;
      verified.clear();
      policy = createCachePolicy(opened, limits.sketchWidth);
      usage = opened.usage();
      policy.endPeriod(opened.clock(), entriesWhenFull());
      if (pending.size > 0) startWriting();
    },

    detach() {
      const detached = store;
      store = undefined;
      policy = undefined;
      usage = NOTHING_USED;
      drop();
      verified.clear();
      return detached;
    },

    async flush() {
      const current = store;
      if (current === undefined || policy === undefined || isClosed || Date.now() < noWritesUntil) return;
      try {
        usage = current.usage();
        const before = current.clock();
        const period = policy.endPeriod(before, entriesWhenFull());
        // Below the bound nothing is evicted: what the clock says can wait until it has moved visibly.
        if (period.changed.length === 0 && period.clock - before < 0.05) return;
        await withDeadline(
          current.write({ puts: [], removes: [], scores: period.changed, clock: period.clock }),
          WRITE_DEADLINE_MS,
        );
      } catch (error) {
        if (store === current) failWriting(error);
      }
    },

    async settle() {
      while (writing !== undefined) await writing;
    },

    async close() {
      if (isClosed) return;
      try {
        await withDeadline(
          this.settle().then(() => this.flush()),
          CLOSE_DEADLINE_MS,
        );
        isClosed = true;
        await withDeadline(this.detach()?.close() ?? Promise.resolve(), CLOSE_DEADLINE_MS);
      } catch (error) {
        isClosed = true;
        this.detach();
        log.warn(`chunk cache: it could not be closed properly: ${messageOf(error)}`);
      }
    },
  };
}
