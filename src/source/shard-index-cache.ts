const maxIndexes = 64;
const maxBytes = 8 * 1024 * 1024;

/** The indexes read last in this thread, whatever their array: at most 64, at most 8 MiB together. */
export interface ShardIndexCache {
  get(path: string, stamp: string): DataView | undefined;
  /** Keeps an index, unless it is larger than the whole cache. */
  set(path: string, stamp: string, entries: DataView): void;
}

/** A least-recently-used cache of one index per shard. */
export function createShardIndexCache(): ShardIndexCache {
  // A Map keeps insertion order: the first entry is the one used longest ago.
  const kept = new Map<string, { readonly stamp: string; readonly entries: DataView }>();
  let byteLength = 0;

  function remove(path: string): void {
    byteLength -= kept.get(path)?.entries.byteLength ?? 0;
    kept.delete(path);
  }

  return {
    get(path, stamp) {
      const found = kept.get(path);
      if (found === undefined || found.stamp !== stamp) return undefined;
      kept.delete(path);
      kept.set(path, found);
      return found.entries;
    },
    set(path, stamp, entries) {
      remove(path);
      if (entries.byteLength > maxBytes) return;
      kept.set(path, { stamp, entries });
      byteLength += entries.byteLength;
      for (const oldest of kept.keys()) {
        if (kept.size <= maxIndexes && byteLength <= maxBytes) break;
        remove(oldest);
      }
    },
  };
}
