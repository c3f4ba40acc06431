/** A map of bounded size that forgets keys which were not set or found for a long time. */
export interface RecentMap<V> {
  get(key: string): V | undefined;
  set(key: string, value: V): void;
  delete(key: string): void;
  clear(): void;
  /** At most the limit. */
  readonly size: number;
}

/**
 * Creates a map of at most `limit` keys, in two generations. When the younger one has half of the limit, the older one is
 * dropped. A key that is found in the older one moves to the younger. That is cheaper than an order updated at every access.
 */
export function createRecentMap<V>(limit: number): RecentMap<V> {
  const generation = Math.max(1, limit >>> 1);
  let young = new Map<string, V>();
  let old = new Map<string, V>();

  function set(key: string, value: V): void {
    if (young.size >= generation) {
      old = young;
      young = new Map();
    }
    young.set(key, value);
  }

  return {
    get(key) {
      const found = young.get(key);
      if (found !== undefined || old.size === 0) return found;
      const older = old.get(key);
      if (older === undefined) return undefined;
      old.delete(key);
      set(key, older);
      return older;
    },
    set(key, value) {
      old.delete(key);
      set(key, value);
    },
    delete(key) {
      young.delete(key);
      old.delete(key);
    },
    clear() {
      young = new Map();
      old = new Map();
    },
    get size() {
      return young.size + old.size;
    },
  };
}
