import { randomFillSync } from "node:crypto";
import type { Database } from "lmdb";
import { CACHE_KEY_BYTES } from "./cache-key.js";
import type { CacheEntry, EntryIndex } from "./victim-pool.js";

/** Bytes of the record beside each value: score (float64), length of the stored value (uint32), little-endian. */
const ENTRY_RECORD_BYTES = 12;

/** Packs the record of an entry. @param byteLength Length of the stored value. */
export function packEntryRecord(score: number, byteLength: number): Buffer {
  const record = Buffer.allocUnsafeSlow(ENTRY_RECORD_BYTES);
  record.writeDoubleLE(score, 0);
  record.writeUInt32LE(byteLength, 8);
  return record;
}

/** Creates the index of the entries in a database of records. */
export function createEntryIndex(records: Database<Buffer, Uint8Array>): EntryIndex {
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
