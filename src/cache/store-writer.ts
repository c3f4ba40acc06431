import { messageOf } from "../errors.js";
import { rerunning } from "../event-loop/joined.js";
import { withinTime } from "../event-loop/settles-within.js";
import { type CacheKey, type ChunkCacheStats, idOf, type ReleasableChunk } from "./chunk-cache.js";
import { isUnusable, type LmdbStore, type StorePut, type StoreUsage } from "./lmdb-store.js";
import { bytesOnDisk, type CacheLimits, type CachePolicy, entriesWhenFull } from "./policy.js";
import { packInPlace, packStoredValue, STORED_HEADER_BYTES } from "./stored-value.js";

/** Writes into one store in the background: chunks in batches, with the evictions that make room for them, and scores. */
export interface StoreWriter {
  /** Puts that are not visible in the store yet, by the id of their key. */
  readonly pending: ReadonlyMap<string, StorePut>;
  /** Use of the store at the last transaction of this process. */
  readonly usage: StoreUsage;
  /** True if something must be evicted for the next chunk. */
  readonly isFull: boolean;
  /** Tells if a chunk of this length would be dropped now, because too much waits to be written. */
  isCrowded(byteLength: number): boolean;
  /** Queues a chunk, or drops it and counts that. */
  put(key: CacheKey, chunk: Uint8Array | ReleasableChunk): void;
  /** Writes the clock, and the scores that have changed. */
  flush(): Promise<void>;
  /** Waits until everything given to `put` is written or dropped. */
  settle(): Promise<void>;
  /** Drops all waiting puts. Nothing is reported after that, even if a write is under way. */
  stop(): void;
}

/** Options and callbacks of a {@link StoreWriter}. */
interface StoreWriterOptions {
  readonly policy: CachePolicy;
  readonly limits: CacheLimits;
  readonly pendingMaxBytes: number;
  /** Counts of the cache, which outlive a store. */
  readonly counts: { -readonly [name in "puts" | "drops" | "evictions" | "errors"]: ChunkCacheStats[name] };
  hasRoomFor(byteLength: number): Promise<boolean>;
  /** Called when the store cannot be used any more. */
  onBroken(reason: string): void;
  /** Called when a write failed that may succeed later, on a disk that has room again. */
  onFailedWrite(problem: string): void;
  /** Called when chunks were written. Scores, which are small, may be written on a disk that is full for chunks. */
  onWritten(): void;
}

/** A put that is not written yet. */
interface PendingPut extends StorePut {
  readonly release: (() => void) | undefined;
}

/** Puts that may wait whatever their size. */
const PENDING_MIN_PUTS = 3;
const BATCH_MAX_PUTS = 512;
/** Pages by which the index may grow with one batch. */
const INDEX_PAGES_PER_BATCH = 8;
const VICTIMS_PER_BATCH_MAX = 4_096;
const WRITE_DEADLINE_MS = 30_000;
/** Milliseconds without writes after a failed one. */
const BACK_OFF_MS = 10_000;
/** Units of the clock from which its advance is written. */
const CLOCK_STEP_MIN = 0.05;

/** Creates the writer of a store, and advances the policy to the store's clock. */
export function createStoreWriter(store: LmdbStore, options: StoreWriterOptions): StoreWriter {
  const { policy, limits, counts, pendingMaxBytes } = options;
  const waiting = createPendingPuts(pendingMaxBytes);
  const { puts: pending } = waiting;
  let usage = store.usage();
  let noWritesUntil = 0;
  let isStopped = false;
  policy.endPeriod(store.clock(), entriesWhenFull(limits, usage));

  /** Drops all waiting puts, and backs off: the disk may have room again later. After `stop` nothing is reported. */
  function failWriting(error: unknown): void {
    if (isStopped) return;
    counts.errors++;
    counts.drops += waiting.drop();
    noWritesUntil = Date.now() + BACK_OFF_MS;
    if (error instanceof DeadlineError || isUnusable(error)) options.onBroken(messageOf(error));
    else options.onFailedWrite(messageOf(error));
  }

  async function writePending(): Promise<void> {
    while (pending.size > 0) {
      const { puts, byteLength } = nextBatch(waiting, store, limits.batchBytes, usage.pageSize);
      if (puts.length === 0) continue;
      if (!(await options.hasRoomFor(byteLength))) throw new Error("no space left on device");
      if (isStopped) return;
      usage = store.usage();
      if (usage.fileBytes > limits.fileBytesMax) {
        options.onBroken(
          `its file has grown to ${usage.fileBytes} bytes, with a bound of ${limits.maxBytes}`,
        );
        return;
      }
      if (usage.fileBytes > limits.fileBytesTight) store.freeStaleReaders();
      const removes = takeVictims(byteLength, usage, options);
      try {
        await writeBatch(puts, removes);
      } finally {
        policy.forgetTaken();
      }
    }
  }

  async function writeBatch(puts: readonly PendingPut[], removes: Uint8Array[]): Promise<void> {
    await withDeadline(store.write({ puts, removes, scores: [], clock: undefined }), WRITE_DEADLINE_MS);
    if (isStopped) return;
    options.onWritten();
    counts.puts += puts.length;
    counts.evictions += removes.length;
    for (const put of puts) waiting.forget(put);
    if (usage.fileBytes > limits.fileBytesFlushed) await withDeadline(store.flushed(), WRITE_DEADLINE_MS);
    if (!isStopped) usage = store.usage();
  }

  function mayPut({ id }: CacheKey, byteLength: number): boolean {
    if (byteLength + STORED_HEADER_BYTES > limits.valueBytes || pending.has(id)) return false;
    if (Date.now() >= noWritesUntil && !waiting.isCrowded(byteLength)) return true;
    counts.drops++;
    return false;
  }

  const startWriting = rerunning(() => writePending().catch(failWriting));

  return {
    pending,
    get usage() {
      return usage;
    },
    get isFull() {
      return usage.usedBytes + waiting.byteLength > limits.fullBytes;
    },
    isCrowded: waiting.isCrowded,

    put(key, chunk) {
      const lent = chunk instanceof Uint8Array ? undefined : chunk;
      const bytes = chunk instanceof Uint8Array ? chunk : chunk.bytes;
      if (!mayPut(key, bytes.length)) {
        lent?.release();
        return;
      }
      const stored =
        lent === undefined ? packStoredValue(key.bytes, bytes) : packInPlace(key.bytes, bytes, lent.checksum);
      const release = lent && (() => lent.release());
      waiting.add({ key: key.bytes, stored, score: policy.scoreOf(key), release }, key.id);
      void startWriting();
    },

    async flush() {
      if (isStopped || Date.now() < noWritesUntil) return;
      try {
        usage = store.usage();
        const before = store.clock();
        const { clock, changed } = policy.endPeriod(before, entriesWhenFull(limits, usage));
        // While there is room nothing is evicted, so the clock can wait.
        if (changed.length === 0 && clock - before < CLOCK_STEP_MIN) return;
        await withDeadline(store.write({ puts: [], removes: [], scores: changed, clock }), WRITE_DEADLINE_MS);
      } catch (error) {
        failWriting(error);
      }
    },

    async settle() {
      await startWriting.running;
    },

    stop() {
      isStopped = true;
      counts.drops += waiting.drop();
    },
  };
}

/** Creates a queue of puts that are not visible in the store yet. */
function createPendingPuts(maxBytes: number) {
  const puts = new Map<string, PendingPut>();
  let byteLength = 0;
  return {
    /** By the id of their key, from the one that is written next. */
    puts,
    get byteLength() {
      return byteLength;
    },
    /** A few may be large: a chunk larger than the bound would never be written otherwise. */
    isCrowded: (more: number): boolean => puts.size >= PENDING_MIN_PUTS && byteLength + more > maxBytes,
    add(put: PendingPut, id: string): void {
      puts.set(id, put);
      byteLength += put.stored.length;
    },
    /** Forgets a put that is not written, or is visible in the store. */
    forget(put: PendingPut): void {
      if (!puts.delete(idOf(put.key))) return;
      byteLength -= put.stored.length;
      put.release?.();
    },
    /** Does not release lent memory: a write that hangs may still read it. @returns Number of puts that were dropped. */
    drop(): number {
      const dropped = puts.size;
      puts.clear();
      byteLength = 0;
      return dropped;
    },
  };
}

/** Returns the front of the queue, as much as one transaction takes. */
function nextBatch(
  waiting: ReturnType<typeof createPendingPuts>,
  store: LmdbStore,
  maxBytes: number,
  pageSize: number,
): { readonly puts: readonly PendingPut[]; readonly byteLength: number } {
  const puts: PendingPut[] = [];
  let byteLength = 0;
  for (const put of waiting.puts.values()) {
    if (puts.length === BATCH_MAX_PUTS || byteLength >= maxBytes) break;
    if (store.has(put.key)) {
      waiting.forget(put); // Another process was quicker.
      continue;
    }
    puts.push(put);
    byteLength += bytesOnDisk(put.stored.length, pageSize);
  }
  return { puts, byteLength };
}

/** Takes victims until `incoming` more bytes fit. */
function takeVictims(
  incoming: number,
  usage: StoreUsage,
  { policy, limits }: StoreWriterOptions,
): Uint8Array[] {
  const isFileTight = usage.fileBytes + incoming > limits.fileBytesTight;
  const limit = isFileTight ? limits.usedBytesWhenTight : limits.maxBytes;
  const victims: Uint8Array[] = [];
  let excess = usage.usedBytes + incoming + INDEX_PAGES_PER_BATCH * usage.pageSize - limit;
  while (excess > 0 && victims.length < VICTIMS_PER_BATCH_MAX) {
    const victim = policy.takeVictim();
    if (victim === undefined) break;
    victims.push(victim.key);
    excess -= bytesOnDisk(victim.byteLength, usage.pageSize);
  }
  return victims;
}

/** A write took longer than its deadline. */
class DeadlineError extends Error {}

/**
 * Waits for a write until its deadline, since lmdb may never settle one (see `lmdb-store`).
 * @throws DeadlineError if it is not done in time; its later failure is ignored.
 */
export async function withDeadline(write: Promise<void>, deadlineMs: number): Promise<void> {
  return withinTime(
    write,
    deadlineMs,
    () => new DeadlineError(`a write did not finish within ${deadlineMs / 1000} s`),
  );
}
