import { randomBytes } from "node:crypto";
import { crc32 } from "node:zlib";
import type { Database } from "lmdb";
import * as lmdb from "lmdb";
import { messageOf } from "../errors.js";
import type { Log } from "../observe/log.js";
import { CACHE_KEY_BYTES, type CacheKey, cacheKeyOf } from "./chunk-cache.js";

/**
 * Length of the header of a stored value, little-endian: magic with format number (4 bytes), payload length (4), CRC-32 of
 * the payload (4), key (20), put number (4), zeros (4). The payload follows; 40 bytes align it for any item size.
 */
export const STORED_HEADER_BYTES = 40;

/** Offset of the put number, a random number that tells puts of one key apart. */
const PUT_NUMBER_OFFSET = 32;

/** Rises with every change of what is written, here or in `lmdb-store`. */
export const STORED_FORMAT = 3;

/** First four bytes of a stored value: "zpc" and the format. */
const MAGIC = 0x7a706300 | STORED_FORMAT;

/**
 * Packs a chunk for writing: header and a copy of `bytes`.
 * @returns Memory of its own, not from Buffer's pool, because another thread reads it.
 */
export function packStoredValue(key: Uint8Array, bytes: Uint8Array): Buffer {
  const stored = Buffer.allocUnsafeSlow(STORED_HEADER_BYTES + bytes.length);
  stored.set(bytes, STORED_HEADER_BYTES);
  writeHeader(stored, key, crc32(bytes));
  return stored;
}

/**
 * Packs a chunk for writing without a copy. The header goes into the {@link STORED_HEADER_BYTES} before `bytes`.
 * @param checksum CRC-32 of `bytes`, if known.
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

/** Returns the payload of a stored value, as a view. */
export function payloadOf(stored: Uint8Array): Uint8Array {
  return new Uint8Array(
    stored.buffer,
    stored.byteOffset + STORED_HEADER_BYTES,
    stored.length - STORED_HEADER_BYTES,
  );
}

/** Returns the number that tells a stored value from others of its key. */
export function putNumberOf(stored: Uint8Array): number {
  return uint32At(stored, PUT_NUMBER_OFFSET);
}

/** Tells if a stored value is the one that was written under `key`. Reads all of it (4.4 GB/s measured). */
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
 * Reads a stored value, undefined if there is none. Often read values are not copied, but read in place, by a view of LMDB's map.
 *
 * A view of the map outlives the transaction it was made in, and LMDB reuses the pages of removed values. But LMDB never changes
 * a page that is in use: a transaction writes a copy, with its own number. While the leaf page that leads to a value has
 * the same number as when the view was made, no process has removed, replaced or moved the value. LMDB compares that number when it
 * looks the key up (`ifNotTxnId`), and the read transaction of the look-up protects the pages.
 */
export type ReadValue = (key: CacheKey) => Uint8Array | undefined;

/** Exports of lmdb that its types lack. */
interface Untyped {
  getLastTxnId(): number;
  readonly nativeAddon: {
    /** Makes a Buffer of the map itself, for the key in the key buffer. */
    getSharedByBinary(database: number, keyByteLength: number): Buffer | undefined;
  };
}
/** A database with members that lmdb's types lack. */
type OpenDatabase = Database<Buffer, Uint8Array> & {
  readonly dbAddress: number;
  writeKey(key: Uint8Array, target: Uint8Array, start: number): number;
  /** @returns An object without bytes if the leaf page still has the number `ifNotTxnId`. */
  getBinaryFast(key: Uint8Array, options?: { readonly ifNotTxnId: number }): Buffer | undefined;
};

/** Smaller values may share a page with others, and are copied fast. */
const MIN_BYTES = 16 * 1024;
/** From this size on lmdb does not copy. */
const MAX_BYTES = 16 * 1024 ** 2;
/** Making a view takes as long as copying half a megabyte. */
const READS_BEFORE_VIEW = 3;

const { getLastTxnId, nativeAddon } = lmdb as unknown as Untyped;

/**
 * Creates the reader of a database of values. Its views are valid until the next read, await, or return to the event loop. Reading in
 * place takes private parts of lmdb: if a test value is not read right in this way, all values are copied by the public call.
 * @param probes Database for the test value, which is written unless it is there.
 */
export function createValueReader(
  values: Database<Buffer, Uint8Array>,
  probes: Database<Buffer, Uint8Array>,
  log: Pick<Log, "warn"> | undefined,
): ReadValue {
  try {
    testReadingInPlace(probes);
    return createReaderInPlace(values);
  } catch (error) {
    log?.warn(`chunk cache: chunks are copied, since they cannot be read in place: ${messageOf(error)}`);
    return ({ bytes }) => viewOf(values.getBinaryFast(bytes));
  }
}

/** @throws Error if values are not read in place as they are by the public call */
function testReadingInPlace(database: Database<Buffer, Uint8Array>): void {
  const key = cacheKeyOf("a value that is read in place");
  const read = createReaderInPlace(database);
  if (!database.doesExist(key.bytes)) database.putSync(key.bytes, randomBytes(MIN_BYTES));
  for (let reads = 0; reads < READS_BEFORE_VIEW + 3; reads++) {
    const expected = Buffer.from(viewOf(database.getBinaryFast(key.bytes)) ?? []);
    if (Buffer.compare(read(key) ?? new Uint8Array(1), expected) !== 0)
      throw new Error("expected the value that was written, received another one");
  }
}

/** Returns what `getBinaryFast` found, whose own `length` differs from its `byteLength`. */
function viewOf(found: Buffer | undefined): Uint8Array | undefined {
  return found && new Uint8Array(found.buffer, found.byteOffset, found.length);
}

function createReaderInPlace(database: Database<Buffer, Uint8Array>): ReadValue {
  const values = database as OpenDatabase;
  const keyBuffer = keyBufferOf(values);

  function makeView(key: CacheKey): Uint8Array | undefined {
    const shared = nativeAddon.getSharedByBinary(values.dbAddress, values.writeKey(key.bytes, keyBuffer, 0));
    return shared && new Uint8Array(shared.buffer, shared.byteOffset, shared.length);
  }

  return function read(key) {
    const before = key.known?.reader === read ? key.known : undefined;
    const found = values.getBinaryFast(key.bytes, before?.view && before);
    if (found === undefined) return undefined;
    if (!(found instanceof Uint8Array)) return before?.view;
    const copy = new Uint8Array(found.buffer, found.byteOffset, found.length);
    if (copy.length < MIN_BYTES || copy.length >= MAX_BYTES) return copy;
    const ifNotTxnId = getLastTxnId();
    if (before?.ifNotTxnId !== ifNotTxnId)
      key.known = { reader: read, ifNotTxnId, reads: 1, view: undefined, payload: undefined };
    else if (++before.reads > READS_BEFORE_VIEW) before.view = makeView(key);
    return copy;
  };
}

/** Returns the buffer that lmdb reads keys from. lmdb does not export it, so it is caught while lmdb writes a key. */
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
