import type { Database } from "lmdb";
import * as lmdb from "lmdb";
import { createRecentMap } from "../collections/recent-map.js";
import type { CacheKey } from "./cache-key.js";

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
export function createMappedValues(database: Database<Buffer, Uint8Array>): ReadValue {
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
