/** Bound for many small indexes, such as those of shards within shards. */
const MAX_INDEXES = 1024;
const MAX_BYTES = 8 * 1024 * 1024;

/** The shard indexes read last in this thread, of all arrays: at most 1,024, and at most 8 MiB together. */
export interface ShardIndexCache {
  /** Returns an index if it has that version; else undefined. */
  get(key: string, version: string): DataView | undefined;
  /** Caches an index, unless it is larger than the whole cache. */
  set(key: string, version: string, entries: DataView): void;
}

/** Creates a least-recently-used cache with one index per shard. */
export function createShardIndexCache(): ShardIndexCache {
  // A Map is in insertion order: the first entry is the least recently used.
  const cached = new Map<string, { readonly version: string; readonly entries: DataView }>();
  let byteLength = 0;

  function remove(key: string): void {
    byteLength -= cached.get(key)?.entries.byteLength ?? 0;
    cached.delete(key);
  }

  return {
    get(key, version) {
      const found = cached.get(key);
      if (found === undefined || found.version !== version) return undefined;
      cached.delete(key);
      cached.set(key, found);
      return found.entries;
    },
    set(key, version, entries) {
      remove(key);
      if (entries.byteLength > MAX_BYTES) return;
      cached.set(key, { version, entries });
      byteLength += entries.byteLength;
      for (const oldest of cached.keys()) {
        if (cached.size <= MAX_INDEXES && byteLength <= MAX_BYTES) break;
        remove(oldest);
      }
    },
  };
}
