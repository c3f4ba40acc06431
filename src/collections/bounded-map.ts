import { LinkedList, type ListEntry } from "./linked-list.js";

/** A map of bounded size. The values that were not set or found for the longest time go first. */
export interface BoundedMap<V> {
  get(key: string): V | undefined;
  /** Sets a value, unless it is larger than one may be; then the key has none. */
  set(key: string, value: V): void;
  /** Deletes a key, and returns its value. */
  delete(key: string): V | undefined;
  clear(): void;
  /** Keys and values, which may be deleted meanwhile. */
  entries(): Iterable<readonly [key: string, value: V]>;
  readonly size: number;
  /** Bytes of all values; 0 if these are not bounded. */
  readonly byteLength: number;
}

/** Bounds of a {@link BoundedMap}: of keys, of bytes, or of both. */
interface MapBounds<V> {
  readonly maxEntries?: number;
  /** Bound of all values together. */
  readonly maxBytes?: number;
  /** Bound of one value. Default: `maxBytes`. */
  readonly maxValueBytes?: number;
  /** Default: 0 for every value. */
  readonly byteLengthOf?: (value: V) => number;
}

interface Entry<V> {
  readonly key: string;
  readonly value: V;
  readonly byteLength: number;
  /** Moves before the last one of this entry to the end of the order. */
  movedAt: number;
}

/** Entries up to which the order is exact. */
const EXACT_ENTRIES = 64;

/** Creates a map without keys. */
export function createBoundedMap<V>(bounds: MapBounds<V>): BoundedMap<V> {
  const { maxEntries = Infinity, maxBytes = Infinity, maxValueBytes = maxBytes, byteLengthOf } = bounds;
  const found = new Map<string, ListEntry<Entry<V>>>();
  /** From the entry that goes next. */
  const order = new LinkedList<Entry<V>>();
  let byteLength = 0;
  let moves = 0;

  function remove(entry: ListEntry<Entry<V>>): V {
    const { key, value, byteLength: removed } = entry.value;
    found.delete(key);
    order.remove(entry);
    byteLength -= removed;
    return value;
  }

  return {
    get(key) {
      const entry = found.get(key);
      if (entry === undefined) return undefined;
      // Of many entries, those in the younger half of the order stay where they are. So a hit seldom writes to memory.
      const isYoung = moves - entry.value.movedAt <= (found.size < EXACT_ENTRIES ? 0 : found.size >>> 1);
      if (!isYoung) {
        order.moveToEnd(entry);
        entry.value.movedAt = ++moves;
      }
      return entry.value.value;
    },
    set(key, value) {
      const before = found.get(key);
      if (before !== undefined) remove(before);
      const valueBytes = byteLengthOf?.(value) ?? 0;
      if (valueBytes > maxValueBytes) return;
      found.set(key, order.add({ key, value, byteLength: valueBytes, movedAt: ++moves }));
      byteLength += valueBytes;
      while (found.size > maxEntries || byteLength > maxBytes) remove(order.first!);
    },
    delete(key) {
      const entry = found.get(key);
      return entry && remove(entry);
    },
    clear() {
      for (const entry of found.values()) remove(entry);
    },
    *entries() {
      for (const [key, entry] of found) yield [key, entry.value.value] as const;
    },
    get size() {
      return found.size;
    },
    get byteLength() {
      return byteLength;
    },
  };
}
