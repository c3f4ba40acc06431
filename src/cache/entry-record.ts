/** Bookkeeping of one entry, kept beside its value: score (float64), bytes on disk (uint32), little-endian. */
export const ENTRY_RECORD_BYTES = 12;

/** The record of an entry. @param byteLength Of the stored value. */
export function packEntryRecord(score: number, byteLength: number): Buffer {
  const record = Buffer.allocUnsafeSlow(ENTRY_RECORD_BYTES);
  record.writeDoubleLE(score, 0);
  record.writeUInt32LE(byteLength, 8);
  return record;
}

/** An entry as eviction sees it. */
export interface CacheEntry {
  /** 20 bytes, owned by the holder. */
  readonly key: Uint8Array;
  /** See `access-score`. */
  readonly score: number;
  /** Of the stored value. */
  readonly byteLength: number;
}

/** The opposite of {@link packEntryRecord}; undefined where the record is none. */
export function parseEntryRecord(key: Uint8Array, record: Uint8Array): CacheEntry | undefined {
  if (record.length !== ENTRY_RECORD_BYTES) return undefined;
  const view = new DataView(record.buffer, record.byteOffset, ENTRY_RECORD_BYTES);
  const score = view.getFloat64(0, true);
  if (Number.isNaN(score)) return undefined;
  return { key, score, byteLength: view.getUint32(8, true) };
}
