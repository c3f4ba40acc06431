/** A map that forgets what was not set or found for long, in bounded memory. */
export interface RecentMap<V> {
  get(key: string): V | undefined;
  set(key: string, value: V): void;
  delete(key: string): void;
  clear(): void;
  /** At most the limit. */
  readonly size: number;
}

/**
 * A map of at most `limit` keys. Two generations: the older is dropped as a whole when the younger is half of the
 * limit, and what is found in the older moves to the younger. Cheaper than an order kept at every access.
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
