/** A set that forgets what was not added or seen for long, in bounded memory. */
export interface RecentSet {
  has(id: string): boolean;
  add(id: string): void;
  clear(): void;
}

/**
 * A set of at most `limit` strings. Two generations: the older is dropped as a whole when the younger is half of the
 * limit, and what is found in the older moves to the younger.
 */
export function createRecentSet(limit: number): RecentSet {
  const generation = Math.max(1, limit >>> 1);
  let young = new Set<string>();
  let old = new Set<string>();

  function add(id: string): void {
    if (young.size >= generation) {
      old = young;
      young = new Set();
    }
    young.add(id);
  }

  return {
    has(id) {
      if (young.has(id)) return true;
      if (!old.has(id)) return false;
      add(id);
      return true;
    },
    add,
    clear() {
      young = new Set();
      old = new Set();
    },
  };
}
