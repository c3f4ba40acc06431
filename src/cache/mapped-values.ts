import type { Database } from "lmdb";
import * as lmdb from "lmdb";
import { createRecentMap } from "../recent-map.js";
import type { CacheKey } from "./cache-key.js";
import { hasPutId, PUT_ID_BYTES } from "./stored-value.js";

/**
 * Reads often used values where they lie in LMDB's map, which spares copying them: a sixth of what it takes to answer
 * a chunk of 590 KB.
 *
 * A view of the map outlives the transaction in which it was made, and LMDB gives the pages of removed values to others.
 * So every value has a number that no other put has, in its header and, in the same transaction, in a table of its own.
 * A view may be read when that table, asked in the transaction of now, has the number that the view has: then the value
 * was not removed (nor removed and put again elsewhere, by whatever process), and what it is made of stays where it is
 * until the transaction ends.
 */
export interface MappedValues {
  /** A value as it is stored; undefined where it has to be copied. Valid as long as what `lmdb-store` reads otherwise. */
  read(key: CacheKey): Uint8Array | undefined;
}

/** What lmdb exports without saying so in its types. */
interface NativeAddon {
  /** A Buffer of the map itself, for the key that lies in the buffer for keys. */
  getSharedByBinary?(database: number, keyByteLength: number): Buffer | undefined;
}

/** What a database has besides what its types say. */
type OpenDatabase = Database<Buffer, Uint8Array> & {
  readonly dbAddress: number;
  writeKey(key: Uint8Array, target: Uint8Array, start: number): number;
};

/**
 * Of a value of this size LMDB keeps all in pages of its own, which do not move while it is there; smaller ones share
 * pages and do.
 */
const MIN_BYTES = 16 * 1024;
/** Making a view costs 50 µs, as much as copying a megabyte: it is made when a value was read so often. */
const READS_BEFORE_VIEW = 3;
/** Values that reads are counted of, or views kept. */
const MAX_VALUES = 2_048;
/**
 * Binary interface of Node.js 20. V8 has not always allowed several buffers of one address, so views are made only where
 * it was tried (40,000 of 200 addresses); elsewhere values are copied.
 */
const TRIED_MODULES_VERSION = "115";

/**
 * @param values The values by key.
 * @param putIds Their numbers by key, written in the same transactions.
 */
export function createMappedValues(
  values: Database<Buffer, Uint8Array>,
  putIds: Database<Buffer, Uint8Array>,
): MappedValues {
  const { getSharedByBinary } = (lmdb as unknown as { nativeAddon?: NativeAddon }).nativeAddon ?? {};
  if (getSharedByBinary === undefined || process.versions.modules !== TRIED_MODULES_VERSION) {
    return { read: () => undefined };
  }
  const database = values as OpenDatabase;
  const keyBuffer = keyBufferOf(database);
  /** A view, or how often the value was read. */
  const known = createRecentMap<Uint8Array | number>(MAX_VALUES);

  function makeView(key: CacheKey, putId: Uint8Array): Uint8Array | undefined {
    const shared = getSharedByBinary?.(database.dbAddress, database.writeKey(key.bytes, keyBuffer, 0));
    if (shared === undefined || shared.length < MIN_BYTES || !hasPutId(shared, putId)) return undefined;
    return new Uint8Array(shared.buffer, shared.byteOffset, shared.length);
  }

  return {
    read(key) {
      const found = known.get(key.id);
      if (found === undefined || (typeof found === "number" && found < READS_BEFORE_VIEW)) {
        known.set(key.id, (found ?? 0) + 1);
        return undefined;
      }
      const putId = putIds.getBinaryFast(key.bytes);
      if (putId?.length !== PUT_ID_BYTES) return undefined;
      if (typeof found !== "number" && hasPutId(found, putId)) return found;
      const view = makeView(key, Uint8Array.prototype.slice.call(putId, 0, PUT_ID_BYTES));
      known.set(key.id, view ?? 0);
      return view;
    },
  };
}

/** lmdb reads keys from one buffer, which it does not show: caught while it writes one. */
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
