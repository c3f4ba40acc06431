/** A map of bounded bytes; the values that were not set or found for the longest time go first. */
export interface ByteBoundedMap<V> {
  get(key: string): V | undefined;
  /** Sets a value, unless it is larger than one may be; then the key has none. */
  set(key: string, value: V): void;
  /** Deletes a key, and returns its value. */
  take(key: string): V | undefined;
  readonly byteLength: number;
}

/** Bounds of a {@link ByteBoundedMap}. */
export interface ByteBounds<V> {
  /** Bound of all values together. */
  readonly maxBytes: number;
  /** Bound of one value. Default: `maxBytes`. */
  readonly maxValueBytes?: number;
  /** Bound of keys. Default: none. */
  readonly maxEntries?: number;
  readonly byteLengthOf: (value: V) => number;
}

/** Creates a map without keys. */
export function createByteBoundedMap<V>(bounds: ByteBounds<V>): ByteBoundedMap<V> {
  const { maxBytes, maxValueBytes = maxBytes, maxEntries = Number.POSITIVE_INFINITY, byteLengthOf } = bounds;
  // A Map keeps the order of insertion: the first key is the least recently used.
  const values = new Map<string, V>();
  let byteLength = 0;

  function take(key: string): V | undefined {
    const value = values.get(key);
    if (value === undefined) return undefined;
    values.delete(key);
    byteLength -= byteLengthOf(value);
    return value;
  }

  return {
    get(key) {
      const value = values.get(key);
      if (value === undefined) return undefined;
      values.delete(key);
      values.set(key, value);
      return value;
    },
    set(key, value) {
      take(key);
      const valueBytes = byteLengthOf(value);
      if (valueBytes > maxValueBytes) return;
      values.set(key, value);
      byteLength += valueBytes;
      for (const oldest of values.keys()) {
        if (values.size <= maxEntries && byteLength <= maxBytes) break;
        take(oldest);
      }
    },
    take,
    get byteLength() {
      return byteLength;
    },
  };
}
