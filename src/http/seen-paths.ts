/** Remembers what was asked for lately, in constant memory. */
export interface SeenPaths {
  /** Notes that `path` was asked for, and says whether it was before, among the latest few thousand. */
  note(path: string): boolean;
}

/**
 * @param slots A power of two: about how many of the latest paths are remembered. Four bytes each. Two paths may be taken
 * for one, once in four thousand million.
 */
export function createSeenPaths(slots: number): SeenPaths {
  const hashes = new Uint32Array(slots);
  const mask = slots - 1;
  return {
    note(path) {
      // FNV-1a over UTF-16 units; 0 stands for an empty slot.
      let hash = 0x811c9dc5;
      for (let i = 0; i < path.length; i++) hash = Math.imul(hash ^ path.charCodeAt(i), 0x01000193);
      hash = hash >>> 0 || 1;
      const slot = (hash ^ (hash >>> 15)) & mask;
      if (hashes[slot] === hash) return true;
      hashes[slot] = hash;
      return false;
    },
  };
}
