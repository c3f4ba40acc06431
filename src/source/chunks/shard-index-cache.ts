/** Indexes of shards inside of shards are small and many. */
const maxIndexes = 1024;
const maxBytes = 8 * 1024 * 1024;

/** The indexes read last in this thread, whatever their array: at most 1,024, at most 8 MiB together. */
export interface ShardIndexCache {
  get(key: string, version: string): DataView | undefined;
  /** Keeps an index, unless it is larger than the whole cache. */
  set(key: string, version: string, entries: DataView): void;
}

/** A least-recently-used cache with one index per shard. */
export function createShardIndexCache(): ShardIndexCache {
  // A Map keeps insertion order: the first entry is the one used longest ago.
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
      if (entries.byteLength > maxBytes) return;
      cached.set(key, { version, entries });
      byteLength += entries.byteLength;
      for (const oldest of cached.keys()) {
        if (cached.size <= maxIndexes && byteLength <= maxBytes) break;
        remove(oldest);
      }
    },
  };
}
