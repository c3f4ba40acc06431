/** Indexes of shards inside of shards are small and many. */
const maxIndexes = 1024;
const maxBytes = 8 * 1024 * 1024;

/** The indexes read last in this thread, whatever their array: at most 1,024, at most 8 MiB together. */
export interface ShardIndexCache {
  get(key: string, stamp: string): DataView | undefined;
  /** Keeps an index, unless it is larger than the whole cache. */
  set(key: string, stamp: string, entries: DataView): void;
}

/** A least-recently-used cache with one index per shard. */
export function createShardIndexCache(): ShardIndexCache {
  // A Map keeps insertion order: the first entry is the one used longest ago.
  const kept = new Map<string, { readonly stamp: string; readonly entries: DataView }>();
  let byteLength = 0;

  function remove(key: string): void {
    byteLength -= kept.get(key)?.entries.byteLength ?? 0;
    kept.delete(key);
  }

  return {
    get(key, stamp) {
      const found = kept.get(key);
      if (found === undefined || found.stamp !== stamp) return undefined;
      kept.delete(key);
      kept.set(key, found);
      return found.entries;
    },
    set(key, stamp, entries) {
      remove(key);
      if (entries.byteLength > maxBytes) return;
      kept.set(key, { stamp, entries });
      byteLength += entries.byteLength;
      for (const oldest of kept.keys()) {
        if (kept.size <= maxIndexes && byteLength <= maxBytes) break;
        remove(oldest);
      }
    },
  };
}
