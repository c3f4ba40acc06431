/** A shared cache in front of the balancer, as nginx and Varnish keep one: what was least recently used goes first. */
export interface FrontCache {
  /** Looks a chunk up, and keeps it from then on. @returns True if it was there. */
  ask(chunk: number): boolean;
}

/** Creates an empty cache for `capacity` chunks; 0 keeps none. */
export function createFrontCache(capacity: number): FrontCache {
  const kept = new Set<number>();
  return {
    ask(chunk) {
      if (capacity === 0) return false;
      const isHit = kept.delete(chunk);
      if (!isHit && kept.size >= capacity) kept.delete(kept.values().next().value!);
      kept.add(chunk);
      return isHit;
    },
  };
}
