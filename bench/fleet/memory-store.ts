import { idOf } from "../../src/cache/chunk-cache.js";
import type { LmdbStore, StoreBatch } from "../../src/cache/lmdb-store.js";
import { bytesOnDisk, type CacheEntry } from "../../src/cache/policy.js";

/** Page size of small caches. The writer leaves eight pages free for the index: here, one chunk. */
export const PAGE_BYTES = 4_096;
/** Bytes of LMDB's index per entry: a place in the table of values and a record, in leaves that are two thirds full. */
const INDEX_BYTES = 88 * 1.5;

/** Creates a store that keeps scores and lengths of entries, and no values. @param random Draws the samples. */
export function createMemoryStore(random: () => number): LmdbStore {
  const slots: CacheEntry[] = [];
  const slotById = new Map<string, number>();
  let usedBytes = 0;
  let clock = 0;

  function put(entry: CacheEntry): void {
    const id = idOf(entry.key);
    const slot = slotById.get(id);
    if (slot !== undefined) {
      // Another object: the pool of victims compares those that it sampled with those of now.
      slots[slot] = entry;
      return;
    }
    slotById.set(id, slots.length);
    slots.push(entry);
    usedBytes += bytesOf(entry);
  }

  function remove(key: Uint8Array): void {
    const id = idOf(key);
    const slot = slotById.get(id);
    if (slot === undefined) return;
    usedBytes -= bytesOf(slots[slot]!);
    slotById.delete(id);
    const last = slots.pop()!;
    if (slot === slots.length) return;
    slots[slot] = last;
    slotById.set(idOf(last.key), slot);
  }

  function entry(key: Uint8Array): CacheEntry | undefined {
    const slot = slotById.get(idOf(key));
    return slot === undefined ? undefined : slots[slot];
  }

  return {
    has: (key) => slotById.has(idOf(key)),
    entry,
    sample: (limit) =>
      // Entries lie by time here, not by hash: neighbours would be no random sample.
      Array.from(
        { length: Math.min(limit, slots.length) },
        () => slots[Math.floor(random() * slots.length)]!,
      ),
    usage: () => ({ usedBytes, fileBytes: usedBytes, entries: slots.length, pageSize: PAGE_BYTES }),
    clock: () => clock,
    async write(batch: StoreBatch) {
      for (const { key, stored, score } of batch.puts) put({ key, score, byteLength: stored.length });
      for (const key of batch.removes) remove(key);
      for (const changed of batch.scores) if (entry(changed.key) !== undefined) put(changed);
      clock = batch.clock ?? clock;
    },
    read: () => undefined,
    async flushed() {},
    freeStaleReaders() {},
    async close() {},
  };
}

function bytesOf({ byteLength }: CacheEntry): number {
  return bytesOnDisk(byteLength, PAGE_BYTES) + INDEX_BYTES;
}
