/**
 * The environment of LMDB (lmdb 3.5.6). Traps of lmdb, learnt from its source and by trying:
 *
 * - `getBinaryFast` copies a value of up to 16 MiB into one buffer that all databases of the thread share. It returns
 *   that buffer with its own `length` property overwritten: `byteLength` is still 16 MiB, and native code that is
 *   handed the Buffer sends all of it. The true view is `new Uint8Array(b.buffer, b.byteOffset, b.length)`, valid until
 *   the next read of any database in this thread (`sample` and `entry` below included). No commit and no iteration of
 *   the event loop touches it. A longer value comes as a view of the map itself, valid until the read transaction is
 *   reset: by a timer of 0 ms, or in a microtask after a commit. So both are valid until the caller returns to the event
 *   loop, awaits, or reads again.
 * - `getAsync` with binary keys crashes the process, every time (kriszyp/lmdb-js#340 too). `stored-value` reads values.
 * - A key longer than 1,978 bytes is refused and `close` after that crashes: keys here have a fixed length.
 * - The map grows by itself when it is full (so `mapSize` bounds nothing) and is then remapped under views of it:
 *   the map is made so large that this never happens. That takes address space, not memory.
 * - A failed commit rejects with an error whose `commitError` is another promise, rejected too. Unless both are handled,
 *   the process ends. `eventTurnBatching` makes a promise that no caller gets: it is off, and `batch` is used instead. lmdb
 *   also prints the error to standard error.
 * - If a write transaction cannot begin, the promise never settles and a mutex stays locked (`WriteWorker::Write`
 *   returns early): callers need a deadline, and such an environment must be abandoned, not closed.
 * - Opening an environment takes the write lock, synchronously: it hangs while another process holds the lock.
 * - After a failed commit `close` and `flushed` never settle, until another commit succeeds.
 * - `getStats` is O(1): LMDB stores page counts with each transaction, so they are right with any number of processes.
 * - Freed pages are reused only after the transaction that freed them is flushed and no reader needs them; the file
 *   never shrinks.
 * - A damaged page can crash the process (offsets are used unchecked): see `open-cache`.
 */
import { randomFillSync } from "node:crypto";
import { type Database, open, type RootDatabase } from "lmdb";
import type { Log } from "../observe/log.js";
import { CACHE_KEY_BYTES, type CacheKey } from "./chunk-cache.js";
import { type CacheEntry, type EntryIndex, pageSizeOf } from "./policy.js";
import { createValueReader, type ReadValue } from "./stored-value.js";

/** Values and their records in one LMDB environment, shared with other processes. */
export interface LmdbStore extends EntryIndex {
  /** Reads a stored value: a view that is valid until the next read, await, or return to the event loop. */
  read(key: CacheKey): Uint8Array | undefined;
  has(key: Uint8Array): boolean;
  /** Returns the use of the store at its last transaction, of any process. */
  usage(): StoreUsage;
  /** Reads the clock that all processes share; 0 in a new store. */
  clock(): number;
  /**
   * Applies all of `batch` in one transaction.
   * @returns A promise that settles when it is visible to all processes. May never settle: see the head of this file.
   */
  write(batch: StoreBatch): Promise<void>;
  /** Waits until all writes are on the disk, and pages freed before can be reused. May never settle. */
  flushed(): Promise<void>;
  /** Frees the read transactions of dead processes, so that their pages can be reused. */
  freeStaleReaders(): void;
  close(): Promise<void>;
}

/** Changes of one transaction. Buffers must not change until it settles. */
interface StoreBatch {
  readonly puts: readonly StorePut[];
  readonly removes: readonly Uint8Array[];
  /** Entries whose score changed; those that are gone are skipped. */
  readonly scores: readonly CacheEntry[];
  /** New clock; undefined if it does not change. */
  readonly clock: number | undefined;
}

/** A value to be written. */
export interface StorePut {
  readonly key: Uint8Array;
  /** Header and payload: see `stored-value`. */
  readonly stored: Buffer;
  readonly score: number;
}

/** Use of a store: bytes of whole pages. */
export interface StoreUsage {
  /** Pages in use, which the bound of the operator limits. */
  readonly usedBytes: number;
  /** High-water mark of the file. */
  readonly fileBytes: number;
  readonly entries: number;
  readonly pageSize: number;
}

/** File name of the data in a store's directory. */
export const DATA_FILE = "data.mdb";
/** File name of the lock table. */
export const LOCK_FILE = "lock.mdb";

const BINARY = { encoding: "binary", keyEncoding: "binary", cache: false, compression: false } as const;
const CLOCK_KEY = Buffer.from("clock");
const STAMP_KEY = Buffer.from("stamp");
/** Larger than any file that processes with different bounds may make of it. */
const MAP_BYTES_MIN = 64 * 1024 ** 3;
const MAX_READERS = 1024;

/** The content of the store is unusable, so that discarding it helps. */
class UnusableStoreError extends Error {}

/** Tells if an error is about the content of the file, not the system around it (rights, space, memory). */
export function isUnusable(error: unknown): boolean {
  if (error instanceof UnusableStoreError) return true;
  // LMDB's own codes are negative, the system's positive.
  return error instanceof Error && "code" in error && typeof error.code === "number" && error.code < 0;
}

interface PageCounts {
  readonly pageSize: number;
  readonly treeBranchPageCount: number;
  readonly treeLeafPageCount: number;
  readonly overflowPages: number;
  readonly entryCount: number;
  readonly lastPageNumber: number;
}

/**
 * Opens the store in `directory`, or makes it. Blocks while another process writes.
 * @param options `stamp`: version of the values. A store with another stamp is not opened.
 * @throws Error if it cannot be opened, or has another stamp: see {@link isUnusable}.
 */
export function openLmdbStore(
  directory: string,
  options: { maxBytes: number; stamp: string; log?: Log },
): LmdbStore {
  const environment = open({
    ...BINARY,
    path: directory,
    noSubdir: false,
    maxDbs: 8,
    maxReaders: MAX_READERS,
    eventTurnBatching: false,
    pageSize: pageSizeOf(options.maxBytes),
    mapSize: Math.max(MAP_BYTES_MIN, options.maxBytes * 4),
  }) as RootDatabase<Buffer, Uint8Array>;
  try {
    const values = environment.openDB({ ...BINARY, name: "values" });
    const records = environment.openDB({ ...BINARY, name: "records" });
    const info = environment.openDB({ ...BINARY, name: "info" });
    checkStamp(info, options.stamp);
    return createStore(environment, values, records, info, createValueReader(values, info, options.log));
  } catch (error) {
    environment.close().catch(() => {});
    throw error;
  }
}

function checkStamp(info: Database<Buffer, Uint8Array>, stamp: string): void {
  const found = info.getBinary(STAMP_KEY)?.toString();
  if (found === stamp) return;
  if (found !== undefined)
    throw new UnusableStoreError(`it was made by another version: expected ${stamp}, found ${found}`);
  info.putSync(STAMP_KEY, Buffer.from(stamp));
}

function createStore(
  environment: RootDatabase<Buffer, Uint8Array>,
  values: Database<Buffer, Uint8Array>,
  records: Database<Buffer, Uint8Array>,
  info: Database<Buffer, Uint8Array>,
  read: ReadValue,
): LmdbStore {
  const { entry, sample } = createEntryIndex(records);
  let lastWriteFailed = false;

  /** Queues the writes of a batch. lmdb's own thread copies the values. */
  function applyBatch(batch: StoreBatch): void {
    for (const { key, stored, score } of batch.puts) {
      values.put(key, stored);
      records.put(key, packEntryRecord(score, stored.length));
    }
    for (const key of batch.removes) {
      values.remove(key);
      records.remove(key);
    }
    for (const { key, score, byteLength } of batch.scores) {
      if (values.doesExist(key)) records.put(key, packEntryRecord(score, byteLength));
    }
    if (batch.clock !== undefined) {
      const bytes = Buffer.allocUnsafeSlow(8);
      bytes.writeDoubleLE(batch.clock, 0);
      info.put(CLOCK_KEY, bytes);
    }
  }

  function clock(): number {
    const found = info.getBinary(CLOCK_KEY);
    const read = found?.length === 8 ? found.readDoubleLE(0) : 0;
    return Number.isFinite(read) ? read : 0;
  }

  async function write(batch: StoreBatch): Promise<void> {
    let failure: unknown;
    const committed = environment.batch(() => {
      try {
        applyBatch(batch);
      } catch (error) {
        // Thrown through lmdb, it would leave a promise behind that is not handled.
        failure = error;
      }
    });
    await committed.catch(async (error: unknown) => {
      failure = await reasonOf(error);
    });
    lastWriteFailed = failure !== undefined;
    if (lastWriteFailed) throw failure;
  }

  return {
    read,
    has: (key) => values.doesExist(key),
    entry,
    sample,
    usage() {
      const v = values.getStats() as PageCounts;
      const r = records.getStats() as PageCounts;
      return {
        usedBytes: (pagesOf(v) + pagesOf(r)) * v.pageSize,
        fileBytes: (v.lastPageNumber + 1) * v.pageSize,
        entries: r.entryCount,
        pageSize: v.pageSize,
      };
    },
    clock,
    write,
    async flushed() {
      await environment.flushed;
    },
    freeStaleReaders() {
      environment.readerCheck();
    },
    async close() {
      if (lastWriteFailed) {
        await write({ puts: [], removes: [], scores: [], clock: clock() }).catch(() => {});
        // `close` would wait for a flush of the failed write, which never comes. The end of the process closes the store.
        if (lastWriteFailed) return;
      }
      await environment.close();
    },
  };
}

function pagesOf(counts: PageCounts): number {
  return counts.treeBranchPageCount + counts.treeLeafPageCount + counts.overflowPages;
}

/** Returns the reason of a failed commit, and handles the second promise. */
async function reasonOf(error: unknown): Promise<unknown> {
  const behind = error instanceof Error && "commitError" in error ? error.commitError : undefined;
  if (!(behind instanceof Promise)) return error;
  return behind.then(
    () => error,
    (reason: unknown) => reason,
  );
}

/** Bytes of the record beside each value: score (float64), length of the stored value (uint32), little-endian. */
const ENTRY_RECORD_BYTES = 12;

/** Packs the record of an entry. @param byteLength Length of the stored value. */
function packEntryRecord(score: number, byteLength: number): Buffer {
  const record = Buffer.allocUnsafeSlow(ENTRY_RECORD_BYTES);
  record.writeDoubleLE(score, 0);
  record.writeUInt32LE(byteLength, 8);
  return record;
}

/** Creates the index of the entries in a database of records. */
function createEntryIndex(records: Database<Buffer, Uint8Array>): EntryIndex {
  const randomKey = Buffer.alloc(CACHE_KEY_BYTES);

  function collect(range: { start?: Uint8Array; limit: number }): CacheEntry[] {
    const found: CacheEntry[] = [];
    for (const { key, value } of records.getRange(range)) {
      const parsed =
        key.length === CACHE_KEY_BYTES ? parseEntryRecord(Uint8Array.from(key), value) : undefined;
      if (parsed !== undefined) found.push(parsed);
    }
    return found;
  }

  return {
    entry(key) {
      const record = records.getBinaryFast(key);
      return record === undefined ? undefined : parseEntryRecord(key, record);
    },
    sample(limit) {
      randomFillSync(randomKey);
      const found = collect({ start: randomKey, limit });
      // Past the last key it continues at the first: small caches would see their first keys too rarely otherwise.
      return found.length < limit ? found.concat(collect({ limit: limit - found.length })) : found;
    },
  };
}

/** Parses what {@link packEntryRecord} packed; undefined if it is no record. */
function parseEntryRecord(key: Uint8Array, record: Uint8Array): CacheEntry | undefined {
  if (record.length !== ENTRY_RECORD_BYTES) return undefined;
  const view = new DataView(record.buffer, record.byteOffset, ENTRY_RECORD_BYTES);
  const score = view.getFloat64(0, true);
  if (Number.isNaN(score)) return undefined;
  return { key, score, byteLength: view.getUint32(8, true) };
}
