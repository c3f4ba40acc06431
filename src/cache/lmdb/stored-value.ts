import { crc32 } from "node:zlib";
import type { Database } from "lmdb";
import * as lmdb from "lmdb";
import { createRecentMap } from "../../collections/recent-map.js";
import { CACHE_KEY_BYTES, type CacheKey } from "../cache-key.js";

/**
 * Layout of a value on disk, little-endian: magic with format number (4), payload length (4), CRC-32 of the payload
 * (4), the key (20), a random number that tells this put from others (4), zeros (4), payload. 40 bytes keep the payload
 * aligned for any item size.
 */
export const STORED_HEADER_BYTES = 40;

const PUT_NUMBER_OFFSET = 32;

/** Rises with every change of what is written, here or in `entry-records`. */
export const STORED_FORMAT = 3;

/** What a stored value begins with: "zpc" and the format. */
export const MAGIC = 0x7a706300 | STORED_FORMAT;

/**
 * A value ready to be written: header and a copy of `bytes`.
 * @returns Memory of its own, not from Buffer's pool: it is read by another thread.
 */
export function packStoredValue(key: Uint8Array, bytes: Uint8Array): Buffer {
  const stored = Buffer.allocUnsafeSlow(STORED_HEADER_BYTES + bytes.length);
  stored.set(bytes, STORED_HEADER_BYTES);
  writeHeader(stored, key, crc32(bytes));
  return stored;
}

/**
 * The same without a copy, where the memory before `bytes`, {@link STORED_HEADER_BYTES} of it, is free for the header.
 * @param checksum CRC-32 of `bytes`, where it is known.
 * @returns A view of the memory of `bytes`.
 */
export function packInPlace(key: Uint8Array, bytes: Uint8Array, checksum = crc32(bytes)): Buffer {
  const start = bytes.byteOffset - STORED_HEADER_BYTES;
  if (start < 0)
    throw new Error(`expected ${STORED_HEADER_BYTES} bytes before the chunk, received ${bytes.byteOffset}`);
  const stored = Buffer.from(bytes.buffer as ArrayBuffer, start, STORED_HEADER_BYTES + bytes.length);
  writeHeader(stored, key, checksum);
  return stored;
}

function writeHeader(stored: Buffer, key: Uint8Array, checksum: number): void {
  stored.writeUInt32LE(MAGIC, 0);
  stored.writeUInt32LE(stored.length - STORED_HEADER_BYTES, 4);
  stored.writeUInt32LE(checksum, 8);
  stored.set(key, 12);
  stored.writeUInt32LE(Math.floor(Math.random() * 2 ** 32), PUT_NUMBER_OFFSET);
  stored.writeUInt32LE(0, PUT_NUMBER_OFFSET + 4);
}

/** The payload of a stored value: a view into `stored`. */
export function payloadOf(stored: Uint8Array): Uint8Array {
  return new Uint8Array(
    stored.buffer,
    stored.byteOffset + STORED_HEADER_BYTES,
    stored.length - STORED_HEADER_BYTES,
  );
}

/** The number that tells a stored value from others of its key. */
export function putNumberOf(stored: Uint8Array): number {
  return uint32At(stored, PUT_NUMBER_OFFSET);
}

/** Whether a stored value is the one that was written under `key`: reads all of it (4.4 GB/s measured). */
export function isIntact(key: Uint8Array, stored: Uint8Array): boolean {
  const byteLength = stored.length - STORED_HEADER_BYTES;
  if (byteLength < 0 || uint32At(stored, 0) !== MAGIC || uint32At(stored, 4) !== byteLength) return false;
  for (let i = 0; i < CACHE_KEY_BYTES; i++) {
    if (stored[12 + i] !== key[i]) return false;
  }
  return crc32(payloadOf(stored)) === uint32At(stored, 8);
}

function uint32At(bytes: Uint8Array, offset: number): number {
  return (
    (bytes[offset]! | (bytes[offset + 1]! << 8) | (bytes[offset + 2]! << 16) | (bytes[offset + 3]! << 24)) >>>
    0
  );
}

/**
 * Often read values are read where they lie in LMDB's map instead of being copied.
 *
 * A view of the map outlives the transaction it was made in, and LMDB gives the pages of removed values to others. But LMDB
 * never changes a page that is in use: a transaction writes a copy, with its own number. So while the leaf page that leads
 * to a value has the number it had when the view was made, no process has removed, replaced or moved the value. LMDB
 * compares that number when it looks the key up (`ifNotTxnId`), and the lookup's read transaction keeps the pages.
 */
export type ReadValue = (key: CacheKey) => Uint8Array | undefined;

/** What lmdb exports, and what a database has, besides what the types say. */
interface Untyped {
  getLastTxnId(): number;
  readonly nativeAddon: {
    /** Makes a Buffer of the map itself, for the key in the key buffer. */
    getSharedByBinary(database: number, keyByteLength: number): Buffer | undefined;
  };
}
type OpenDatabase = Database<Buffer, Uint8Array> & {
  readonly dbAddress: number;
  writeKey(key: Uint8Array, target: Uint8Array, start: number): number;
  /** @returns An object without bytes if the leaf page still has the number `ifNotTxnId`. */
  getBinaryFast(key: Uint8Array, options?: { readonly ifNotTxnId: number }): Buffer | undefined;
};

/** What is known of a value while its leaf page stays. */
interface KnownValue {
  /** The number of its leaf page. */
  readonly ifNotTxnId: number;
  reads: number;
  view: Uint8Array | undefined;
}

/** Smaller values may share a page with others, and are copied fast. */
const MIN_BYTES = 16 * 1024;
/** From here on lmdb does not copy. */
const MAX_BYTES = 16 * 1024 ** 2;
/** Making a view takes as long as copying half a megabyte. */
const READS_BEFORE_VIEW = 3;
const MAX_VALUES = 2_048;

const { getLastTxnId, nativeAddon } = lmdb as unknown as Untyped;

/** Creates the lookup in a database of values. What it returns is valid until the next read, await, or return to the event loop. */
export function createValueReader(database: Database<Buffer, Uint8Array>): ReadValue {
  const values = database as OpenDatabase;
  const keyBuffer = keyBufferOf(values);
  const known = createRecentMap<KnownValue>(MAX_VALUES);

  function makeView(key: CacheKey): Uint8Array | undefined {
    const shared = nativeAddon.getSharedByBinary(values.dbAddress, values.writeKey(key.bytes, keyBuffer, 0));
    return shared && new Uint8Array(shared.buffer, shared.byteOffset, shared.length);
  }

  return (key) => {
    const before = known.get(key.id);
    const found = values.getBinaryFast(key.bytes, before?.view && before);
    if (found === undefined) return undefined;
    if (!(found instanceof Uint8Array)) return before?.view;
    const copy = new Uint8Array(found.buffer, found.byteOffset, found.length);
    if (copy.length < MIN_BYTES || copy.length >= MAX_BYTES) return copy;
    const ifNotTxnId = getLastTxnId();
    if (before?.ifNotTxnId !== ifNotTxnId) known.set(key.id, { ifNotTxnId, reads: 1, view: undefined });
    else if (++before.reads > READS_BEFORE_VIEW) before.view = makeView(key);
    return copy;
  };
}

/** Returns the buffer that lmdb reads keys from, which it does not export: caught while lmdb writes a key. */
function keyBufferOf(database: OpenDatabase): Uint8Array {
  const { writeKey } = database;
  let keyBuffer: Uint8Array | undefined;
  database.writeKey = (key, target, start) => {
    keyBuffer = target;
    return writeKey.call(database, key, target, start);
  };
  try {
    database.doesExist(Buffer.alloc(1));
  } finally {
    database.writeKey = writeKey;
  }
  if (keyBuffer === undefined) throw new Error("lmdb did not write the key it was asked for");
  return keyBuffer;
}
